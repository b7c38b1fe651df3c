"""``judgetree settings``: values in force, and where they come from."""

import json
from pathlib import Path

import pytest

from judgetree.modules.settings import Settings
from tests.app.conftest import Cli


def test_settings_are_listed_with_source_and_without_secrets(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("judgetree_topk=5\nJUDGETREE_RETRIES=7\nJUDGETREE_TIMEOUT_S=9\n", encoding="utf-8")
    monkeypatch.setenv("JUDGETREE_RETRIES", "2")
    monkeypatch.setenv("JUDGETREE_LLM_API_KEY", "sk-secret")
    monkeypatch.setenv("JUDGETREE_LLM", "http://ada:lovelace@127.0.0.1:9/v1#m")
    listed = {each["name"]: each for each in json.loads(cli("settings", "--json").out)}
    assert len(listed) == len(Settings.model_fields)
    values = {name: (each["value"], each["source"]) for name, each in listed.items()}
    assert values["JUDGETREE_RETRIES"] == ("2", "environment")
    assert values["JUDGETREE_TIMEOUT_S"] == ("9.0", ".env")
    assert values["JUDGETREE_MAX_CONCURRENCY"] == ("64", "default")
    assert values["JUDGETREE_LLM"][0].endswith("127.0.0.1:9/v1#m")
    assert all(each["meaning"] for each in listed.values())
    table = cli("settings").out
    assert "JUDGETREE_TIMEOUT_S" in table
    assert not {"sk-secret", "lovelace"} & set(table.split())
    assert "lovelace" not in table + json.dumps(listed)

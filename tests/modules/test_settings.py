"""Settings: where they come from, who wins, what never shows, and what a wrong value is told."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import HOME_NAME, Settings, find_home, load_settings
from judgetree.modules.trust import variables

SECRET = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"


def write_env(text: str) -> None:
    Path(".env").write_text(text, encoding="utf-8")


def told(error: BaseException) -> str:
    """All that a user may get to see of an error: message, causes, traceback."""
    return "".join(traceback.format_exception(error))


# --- where they come from ---


def test_env_file_is_read_and_other_variables_in_it_are_left_alone() -> None:
    write_env("JUDGETREE_LLM=openai:gpt-4o\nJUDGETREE_MAX_CONCURRENCY=3\nOPENAI_API_KEY=x\nJUDGETREE_OTHER=1\nLLM=no\n")
    settings = load_settings()
    assert (settings.llm, settings.max_concurrency) == ("openai:gpt-4o", 3)


def test_environment_wins_over_the_env_file_and_arguments_win_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    write_env("JUDGETREE_RETRIES=1\nJUDGETREE_TIMEOUT_S=1\nJUDGETREE_DURABILITY=sync\n")
    monkeypatch.setenv("JUDGETREE_RETRIES", "2")
    monkeypatch.setenv("JUDGETREE_TIMEOUT_S", "2")
    settings = load_settings(retries=3, durability=None)
    assert (settings.retries, settings.timeout_s, settings.durability) == (3, 2.0, "sync")


def test_a_key_of_others_in_the_env_file_is_said_once_to_have_no_effect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A newcomer's first ``.env`` holds only a key, and the local model was asked, without a word."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY", "JUDGETREE_LLM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(variables, "_said", set())
    write_env("OPENAI_API_KEY=sk-a\nJUDGETREE_LLM=openai:gpt-4o\n")
    load_settings()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-b")
    write_env("OPENAI_API_KEY=sk-a\n")
    load_settings()
    assert caplog.messages == []
    monkeypatch.delenv("OPENAI_API_KEY")
    load_settings()
    load_settings()
    assert caplog.messages == [
        "OPENAI_API_KEY has no effect in .env. Set it in the environment, or JUDGETREE_LLM and JUDGETREE_LLM_API_KEY."
    ]


def test_a_variable_that_is_no_setting_is_said_once_with_what_may_be_meant(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A run with a misspelt JUDGETREE_JUDGE_LLM was judged by the usual model, without a word."""
    write_env("JUDGETREE_JUDGE_LMM=openai:gpt-4o\nJUDGETREE_RETRIES=2\n")
    monkeypatch.setenv("judgetree_colour", "green")
    for name in ("DEBUG", "PORT_8000_TCP_ADDR", "SERVICE_HOST", "MILVUS_PORT"):  # the last three are Kubernetes's
        monkeypatch.setenv(f"JUDGETREE_{name}", "1")
    monkeypatch.setattr(variables, "_said", set())
    for _ in range(2):
        load_settings()
    lists_them = "`judgetree settings` lists them."
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"JUDGETREE_COLOUR is no setting and has no effect. {lists_them}",
        f"JUDGETREE_JUDGE_LMM is no setting and has no effect. Did you mean JUDGETREE_JUDGE_LLM? {lists_them}",
    ]


def test_variable_without_the_prefix_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIES", "7")
    monkeypatch.setenv("LLM", "openai:gpt-4o")
    assert (load_settings().retries, load_settings().llm) == (3, "")


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().retries = 5  # type: ignore[misc]


# --- home ---


def test_home_is_that_of_the_nearest_parent_that_has_one(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "notebooks" / "deep"
    deep.mkdir(parents=True)
    assert find_home(deep) == deep / HOME_NAME
    (tmp_path / HOME_NAME).mkdir()
    assert find_home(deep) == tmp_path / HOME_NAME
    (tmp_path / "project" / HOME_NAME).mkdir()
    assert find_home(deep) == tmp_path / "project" / HOME_NAME
    (deep.parent / HOME_NAME).write_text("a file is no home")
    assert find_home(deep) == tmp_path / "project" / HOME_NAME


def test_home_is_found_from_the_current_folder_and_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGETREE_HOME")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert load_settings().home == tmp_path / "inner" / HOME_NAME
    assert not (tmp_path / "inner" / HOME_NAME).exists()
    (tmp_path / HOME_NAME).mkdir()
    assert load_settings().home == tmp_path / HOME_NAME


def test_places_default_to_the_home_folder(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path)
    assert settings.milvus_address == str(tmp_path / "milvus.db")
    assert settings.checkpoint_url == f"sqlite:///{tmp_path}/checkpoints.sqlite"
    settings = load_settings(home=tmp_path, milvus_uri="http://127.0.0.1:19530", checkpoints="memory:")
    assert (settings.milvus_address, settings.checkpoint_url) == ("http://127.0.0.1:19530", "memory:")


def test_home_may_start_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JUDGETREE_HOME", "~/trees")
    assert load_settings().home == tmp_path / "trees"


# --- which model ---


@pytest.mark.parametrize(
    ("environment", "llm", "spec"),
    [
        ({}, "", "local:"),
        ({"OPENAI_API_KEY": "k"}, "", "openai:gpt-4o-mini"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "", "openai:gpt-4o-mini"),
        ({"DASHSCOPE_API_KEY": "k"}, "", "dashscope:qwen-plus"),
        ({"OPENAI_API_KEY": "k", "DASHSCOPE_API_KEY": "k"}, "", "openai:gpt-4o-mini"),
        ({"OPENAI_API_KEY": "k"}, "dashscope:qwen-max", "dashscope:qwen-max"),
    ],
)
def test_model_is_the_one_named_or_that_of_the_key_or_the_local_one(
    environment: dict[str, str], llm: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(llm=llm)
    assert (settings.llm_spec, settings.judge_spec) == (spec, spec)
    assert load_settings(llm=llm, judge_llm="local:").judge_spec == "local:"


# --- secrets ---


@pytest.mark.parametrize("name", ["llm_api_key", "milvus_token"])
def test_secrets_show_nowhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"JUDGETREE_{name.upper()}", SECRET)
    settings = load_settings()
    assert getattr(settings, name).get_secret_value() == SECRET
    for shown in (repr(settings), str(settings), f"{settings}", settings.model_dump_json(), str(settings.model_dump())):
        assert SECRET not in shown


@pytest.mark.parametrize(
    "name", ["checkpoints", "milvus_uri", "searxng_url", "llm", "llm_base_url", "judge_llm", "embeddings"]
)
def test_password_in_an_address_shows_nowhere(name: str) -> None:
    settings = load_settings(**{name: f"postgresql://ada:{SECRET}@db.example:5432/trees?sslmode=require"})
    assert SECRET in getattr(settings, name).revealed()
    for shown in (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())):
        assert SECRET not in shown
        assert "'postgresql://db.example:5432/trees'" in shown.replace('"', "'")


@pytest.mark.parametrize("name", ["llm", "judge_llm", "embeddings"])
def test_password_of_a_model_chosen_later_shows_nowhere(name: str) -> None:
    settings = load_settings().with_models(**{name: f"http://ada:{SECRET}@h/v1#m"})  # type: ignore[arg-type]
    assert SECRET not in repr(settings) + settings.model_dump_json()
    assert SECRET in getattr(settings, name).revealed()


def test_settings_that_are_made_again_of_their_values_keep_their_secrets() -> None:
    settings = load_settings(milvus_uri=f"http://ada:{SECRET}@h:19530")
    again = Settings.model_validate({**dict(settings), "retries": 7})
    assert again.milvus_uri.credentials() == f"ada:{SECRET}"


def test_key_pasted_into_the_name_of_a_model_shows_nowhere() -> None:
    settings = load_settings(llm=f"openai:{SECRET}", judge_llm=SECRET)
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert SECRET not in shown


def test_address_without_a_password_shows_as_it_is() -> None:
    settings = load_settings(llm="http://127.0.0.1:8000/v1#a@b:c", milvus_uri="http://[::1]:19530")
    assert json.loads(settings.model_dump_json())["llm"] == "http://127.0.0.1:8000/v1#a@b:c"
    assert "http://[::1]:19530" in repr(settings)


@pytest.mark.parametrize("name", ["max_concurrency", "durability", "timeout_s", "retries"])
def test_secret_pasted_into_the_wrong_variable_is_not_echoed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"JUDGETREE_{name.upper()}", SECRET)
    with pytest.raises(SettingsError, match=f"JUDGETREE_{name.upper()}") as caught:
        load_settings()
    assert SECRET[:12] not in told(caught.value)


@given(value=st.integers() | st.lists(st.text(min_size=1), min_size=1))
def test_wrong_value_of_a_secret_is_not_echoed(value: object) -> None:
    with pytest.raises(SettingsError, match=r"JUDGETREE_LLM_API_KEY: .*valid string") as caught:
        load_settings(llm_api_key=value)
    assert "(got " not in str(caught.value)
    assert "input_value" not in told(caught.value)


# --- wrong values ---


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max_concurrency", "0", "greater than or equal to 1"),
        ("max_concurrency", "many", "valid integer"),
        ("max_concurrency", "", "valid integer"),
        ("timeout_s", "0", "greater than 0"),
        ("timeout_s", "nan", "finite"),
        ("timeout_s", "inf", "finite"),
        ("retries", "-1", "greater than or equal to 0"),
        ("durability", "sometimes", "'sync', 'async' or 'exit'"),
        ("thinking", "maybe", "on, off or empty"),
    ],
)
def test_wrong_value_names_the_variable_the_value_and_what_is_allowed(
    name: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"JUDGETREE_{name.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    for part in (f"JUDGETREE_{name.upper()}", allowed, repr(value), ".env"):
        assert part in str(caught.value)


@pytest.mark.parametrize(("value", "thinking"), [("on", True), ("Off", False), ("", None), ("0", False)])
def test_thinking_is_a_switch(value: str, thinking: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_THINKING", value)
    assert load_settings().thinking is load_settings(thinking=value).thinking is thinking


def test_all_wrong_values_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"MAX_CONCURRENCY.*RETRIES"):
        load_settings(max_concurrency=0, retries=-1)


def test_unknown_argument_is_refused_with_those_that_exist() -> None:
    with pytest.raises(SettingsError, match=r"max_concurency.*max_concurrency"):
        load_settings(max_concurency=1)


def test_env_file_in_another_encoding_is_refused_and_named() -> None:
    Path(".env").write_bytes("JUDGETREE_LLM=openai:modèle\n".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"\.env.*UTF-8"):
        load_settings()


def test_every_setting_is_described() -> None:
    assert {name for name, field in Settings.model_fields.items() if not field.description} == set()


@pytest.mark.parametrize("address", ["http://[::1/v1#m", "http://host:port/v1#m", "http://host:99999/v1#m"])
def test_an_address_that_cannot_be_one_is_named_with_its_setting(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_LLM", address)
    with pytest.raises(SettingsError, match="JUDGETREE_LLM: Input is no address of a server"):
        load_settings()

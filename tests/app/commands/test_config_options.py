"""Options, pairs and files of a configuration, made from its keys alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from judgetree.app.commands.config_options import takes
from judgetree.graphs.config.rag_config import RagConfig
from judgetree.modules.config.config import Config, Key
from judgetree.modules.errors import SettingsError
from tests.app.conftest import Cli


class Speed(Config):
    """Speed"""

    pace: Annotated[int, Field(strict=True, ge=1), Key(common=True, metavar="N", older_flag="--gait")] = 2
    """Steps at once."""
    mood: Literal["calm", "hasty"] = "calm"
    """How."""
    sharing: str = "on"
    """With whom."""
    careful: bool | None = None
    """Whether it looks twice."""
    stops: tuple[str, ...] = ()
    """Where it rests."""
    weight: Annotated[float | None, Field(strict=True)] = None
    """How heavy it is."""


app = typer.Typer(pretty_exceptions_enable=False)
taken: list[Speed] = []


@app.command()
@takes(Speed)
def walk(where: str, *, config: Speed) -> None:
    """Walk."""
    taken.append(config)


def walked(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(app, ["home", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return taken.pop().given


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ([], {}),
        (["--pace", "3"], {"pace": 3}),
        (["--gait", "3"], {"pace": 3}),
        (["--mood", "hasty", "--no-careful"], {"mood": "hasty", "careful": False}),
        (["--stops", "inn", "--stops", "mill"], {"stops": ("inn", "mill")}),
        (
            ["--set", "pace=4", "--set", "stops=[inn]", "--set", "sharing=off"],
            {"pace": 4, "stops": ("inn",), "sharing": "off"},
        ),
        (["--set", "pace=4", "--pace", "5"], {"pace": 5}),
    ],
)
def test_a_key_is_an_option_and_a_pair(arguments: list[str], given: dict[str, object]) -> None:
    assert walked(*arguments) == given


def test_pairs_win_over_the_file_and_options_over_pairs(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("pace: 7\nmood: hasty\nsharing: off\n", encoding="utf-8")
    assert walked("--config", str(file)) == {"pace": 7, "mood": "hasty", "sharing": "off"}
    assert walked("--config", str(file), "--set", "pace=8", "--mood", "calm") == {
        "pace": 8,
        "mood": "calm",
        "sharing": "off",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "pase=4"], r"The configuration is not usable: pase: .*Did you mean 'pace'\? Keys: pace, mood"),
        (["--set", "pace"], r"--set 'pace' is not KEY=VALUE"),
        (["--set", "stops=[inn"], r"the value is no YAML"),
        (["--set", "pace=0"], r"pace: Input should be greater than or equal to 1 \(it is 0\)"),
        (["--set", "pace=true"], "pace: Input should be a valid integer"),
        (["--config", "none.yaml"], r"The configuration none\.yaml cannot be read"),
    ],
)
def test_a_wrong_key_says_what_is_allowed(arguments: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        walked(*arguments)


READ = {
    "pace": [("010", 10), ("1_000", 1000), ("+5", 5), ("0x10", 16)],
    "careful": [("yes", True), ("no", False), ("on", True), ("off", False), ("true", True), ("~", None)],
    "sharing": [
        *((text, text) for text in ("4.1", "010", "1e3", "true", "no", "2026-11-27", "12:30", "=", "0x10", "-3")),
        *((text, text) for text in ("local:", "http://h/v1#m: x", "a # b", "{a}", "!!binary aGk=", "<<")),
        ("'4.1'", "4.1"),
        (" a b ", "a b"),
    ],
    "weight": [("1e-1", 0.1), (".5", 0.5), ("010", 10.0)],
}
"""Texts of a pair, by key, and what they mean."""
REFUSED = {"pace": ["1e3", "4.0", "12:30", "0b11", "true", "~", "2026-11-27"], "weight": ["12:30", "1,5"]}


@pytest.mark.parametrize(("name", "text", "value"), [(name, *pair) for name, pairs in READ.items() for pair in pairs])
def test_a_typed_value_is_what_the_key_has(name: str, text: str, value: object) -> None:
    assert walked("--set", f"{name}={text}") == {name: value}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in REFUSED.items() for text in texts])
def test_a_value_that_could_mean_something_else_is_refused(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: Input should be"):
        walked("--set", f"{name}={text}")


def test_a_number_where_a_file_wants_a_text_is_to_be_quoted(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("sharing: 4.10\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"sharing: .*\(it is 4\.1\): write it in quotes\."):
        walked("--config", str(file))


@pytest.mark.parametrize(
    "command",
    [
        ("ask", "Which?", "-c", "notes"),
        ("chat", "-c", "notes"),
        ("serve",),
        ("eval", "record", "folder", "--dataset", "hotpotqa:x.json"),
    ],
)
def test_a_list_is_refused_where_nothing_is_swept(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("topk: [3, 5]\n", encoding="utf-8")
    said = "topk=[3, 5] lists values, of which `judgetree eval run` makes a grid: give one here."
    cli(*command, "--set", "topk=[3,5]").refused(said)
    cli(*command, "--config", str(file)).refused(said)


def test_a_list_in_a_pair_is_swept(cli: Cli, tmp_path: Path) -> None:
    data = ("--dataset", f"hotpotqa:{tmp_path}/none.json", "--out", str(tmp_path / "out"))
    assert "[1/2] topk 3" in cli("eval", "run", *data, "--set", "topk=[3,5]").err


def test_only_common_keys_stand_in_the_help() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "--pace" in text
    assert "Default 2." in text
    assert not any(flag in text for flag in ("--mood", "--gait", "--stops", "--careful"))


def test_the_help_of_ask_is_short(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = cli("ask", "--help").out
    assert len(text.splitlines()) <= 90
    assert sum(line.lstrip("│ ").startswith("--") for line in text.splitlines()) <= 15, "with --help itself"


def test_config_lists_every_key(cli: Cli) -> None:
    listed = json.loads(cli("config", "--json").out)
    assert [each["name"] for each in listed] == list(RagConfig.model_fields)
    assert all(each["meaning"] and each["group"] for each in listed)
    runs = {each["name"]: each for each in json.loads(cli("config", "--runs", "--json").out)}
    assert (runs["topk"]["default"], runs["concurrency"]["group"]) == ("3", "Run")
    assert "evidence_ranker" in cli("config").out

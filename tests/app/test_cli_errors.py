from __future__ import annotations

import ast
from pathlib import Path

import pytest

from judgetree.app.cli import main
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.terminal.exit_status import explain, report
from judgetree.modules.errors import BudgetSpent, ModelCallError, ModelSetupError, UnknownThread
from tests.app.conftest import CHAIN, COLLECTION, Cli


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ((), "Give a question"),
        (("--resume",), "--thread-id"),
        (("--resume", "--thread-id", "nobody"), "judgetree threads"),
        (("What?",), "-c NAME"),
        (("What?", "-c", "nothing"), "Collections: notes"),
        (("What?", "-c", "no-name!"), "Allowed: letters"),
        (("  ", "-c", COLLECTION), "question is empty"),
        (("What?", "-c", COLLECTION, "--system", "wise"), "judge"),
        (("What?", "-c", COLLECTION, "--search-type", "deep"), "hybrid"),
        (("What?", "-c", COLLECTION, "--strategy", "skim"), "map_rerank"),
        (("What?", "-c", COLLECTION, "--topk", "0"), "topk"),
        (("What?", "-c", COLLECTION, "--max-depth", "-1"), "max-depth"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(cli: Cli, home: Path, arguments: tuple[str, ...], advice: str) -> None:
    cli("ask", *arguments).refused(advice)


@pytest.mark.parametrize(
    ("variable", "value", "advice"),
    [
        ("JUDGETREE_LLM", "openai:gpt-4o-mini", "OPENAI_API_KEY"),
        ("JUDGETREE_LLM", "gpt-4o-mini", "JUDGETREE_LLM"),
        ("JUDGETREE_EMBEDDINGS", "local:unheard", "local:minilm"),
        ("JUDGETREE_EMBEDDINGS", "local:minilm", "local:use"),
        ("JUDGETREE_CHECKPOINTS", "mysql://localhost", "sqlite:///"),
        ("JUDGETREE_MILVUS_URI", "folder", ".db"),
        ("JUDGETREE_RETRIES", "many", "JUDGETREE_RETRIES"),
    ],
)
def test_a_wrong_setting_is_told_with_its_remedy(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, advice: str
) -> None:
    monkeypatch.setenv(variable, value)
    done = cli("ask", "What?", "-c", COLLECTION).refused(advice)
    assert len(done.err.splitlines()) <= 2


def test_a_model_that_the_endpoint_refuses_is_a_user_error(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    scripted.responses = lambda request: ChatReply(text="no such model", status=404)
    cli("ask", CHAIN.question, "-c", COLLECTION).refused("no such model")


def test_a_missing_endpoint_is_a_resumable_user_error(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_LLM", "http://127.0.0.1:9/v1#nobody")
    said = ("'nobody' at http://127.0.0.1:9/v1", "the connection was refused", "start the server", "resume:")
    cli("ask", CHAIN.question, "-c", COLLECTION, "--json").refused(*said)


@pytest.mark.parametrize("name", ["home", "home/below"])
def test_an_unusable_home_folder_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / name))
    cli("ask", "What?", "-c", COLLECTION).refused(str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnknownThread("no thread"), 2),
        (ModelSetupError("no key"), 2),
        (ModelCallError("no answer"), 1),
        (BudgetSpent("no call"), 1),
        (PermissionError(13, "Permission denied", "/locked"), 2),
        (ValueError("odd"), 1),
        (KeyError("odd"), 1),
    ],
)
def test_every_error_has_its_status_and_one_line(error: Exception, status: int) -> None:
    message, found = explain(error)
    assert found == status
    assert len(message.splitlines()) == 1


def test_an_unexpected_error_names_its_type_and_the_way_to_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(ZeroDivisionError("by\nzero"), debug=False) == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in said
    assert "--debug" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("by", ["option", "variable"])
def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "variable":
        monkeypatch.setenv("JUDGETREE_DEBUG", "1")
    status = main([*(["--debug"] if by == "option" else []), "index", "nowhere", "-c", "x"])
    said = capsys.readouterr().err
    assert status == 2
    assert "Traceback" in said
    assert "LoadingError" in said


def test_a_mistyped_command_is_a_user_error(cli: Cli) -> None:
    cli("aks").refused("aks")


def test_the_version_is_printed(cli: Cli) -> None:
    import judgetree

    assert cli("--version").out == f"judgetree {judgetree.__version__}\n"


def test_no_handler_of_the_command_line_writes_past_the_shared_console() -> None:
    """One that does overwrites the lines that are redrawn; JSON lines are for programs, which redraw nothing."""
    app = Path(__file__).parents[2] / "app"
    found = {
        str(path.relative_to(app))
        for path in app.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).endswith("StreamHandler")
    }
    assert found == {"commands/serve.py"}

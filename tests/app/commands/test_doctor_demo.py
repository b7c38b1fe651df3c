from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from judgetree.app.commands.demo import QUESTION_ID, find_data, is_right
from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, Cli, write_corpus
from tests.eval.dataset_files import write_lines

REPOSITORY = Path(__file__).resolve().parents[3]


def doctor(cli: Cli) -> tuple[int, dict[str, bool], str]:
    done = cli("doctor", "--json")
    document = json.loads(done.out)
    return done.status, {check["name"]: check["works"] for check in document["checks"]}, done.out


def test_a_healthy_set_up_can_ask(cli: Cli, home: Path) -> None:
    done = cli("doctor").ok()
    assert "Questions can be asked." in done.out
    for name in ("settings", "milvus", "checkpoints", "embedder", "model"):
        assert f"ok    {name}" in done.out


def test_it_says_which_files_it_reads_and_whose_they_are(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGETREE_RETRIES")
    here = Path.cwd()
    assert f"ok    .env        none in {here}" in cli("doctor").ok().out
    (here / ".env").write_text("JUDGETREE_RETRIES=0\n")
    home.chmod(0o755)
    said = cli("doctor").ok().out
    assert f"ok    .env        {here / '.env'} of " in said
    assert ", names no code, address or file" in said
    assert f"lacks home        {home} is open to others. Unless a group shares it: chmod -R go= {home}" in said
    (here / ".env").write_text("JUDGETREE_RETRIES=0\nJUDGETREE_PROMPTS=\nJUDGETREE_SEARXNG_URL=http://127.0.0.1:9\n")
    cli("trust").ok()
    assert "trusted as it is now (judgetree trust)" in cli("doctor").ok().out
    listed = {each["name"]: each for each in json.loads(cli("settings", "--json").ok().out)}
    assert listed["JUDGETREE_SEARXNG_URL"]["file"] == str(here / ".env")


def test_secrets_are_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    monkeypatch.setenv("JUDGETREE_LLM_API_KEY", "sk-secret-2")
    monkeypatch.setenv("JUDGETREE_MILVUS_TOKEN", "root:sk-secret-3")
    monkeypatch.setenv("JUDGETREE_JUDGE_LLM", "http://ada:sk-secret-4@127.0.0.1:9/v1#nobody")
    status, checks, out = doctor(cli)
    assert "sk-secret" not in out
    assert "OPENAI_API_KEY" in out
    assert (status, checks["model"]) == (2, False)


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("JUDGETREE_LLM", "http://127.0.0.1:9/v1#nobody", "model"),
        ("JUDGETREE_LLM", "openai:no-key", "model"),
        ("JUDGETREE_JUDGE_LLM", "http://127.0.0.1:9/v1#nobody", "model"),
        ("JUDGETREE_MILVUS_URI", "http://127.0.0.1:9", "milvus"),
        ("JUDGETREE_EMBEDDINGS", "http://127.0.0.1:9/v1#nobody", "embedder"),
        ("JUDGETREE_EMBEDDINGS", "local:unheard", "embedder"),
        ("JUDGETREE_PROMPTS", "none.yaml", "prompts"),
    ],
)
def test_a_fault_is_found(cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str) -> None:
    monkeypatch.setenv(variable, value)
    status, checks, out = doctor(cli)
    assert status == 2
    assert [check for check, works in checks.items() if not works] == [name]
    if value.endswith("#nobody"):
        assert "the connection was refused" in out
        assert "To do: start the server, or correct the address" in out


def test_a_proxy_that_nothing_is_asked_through_is_no_fault(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    done = cli("doctor").ok()
    assert (
        "ok    proxies     ALL_PROXY=socks5://127.0.0.1:9; no address of the settings is asked through them" in done.out
    )
    assert "example.org" not in done.out


@pytest.mark.parametrize("spec", ["http://models.invalid/v1#m", "completion:http://models.invalid/v1#m"])
def test_a_proxy_is_named_with_the_address_that_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.setenv("JUDGETREE_JUDGE_LLM", spec)
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    _, checks, out = doctor(cli)
    assert checks["proxies"]
    assert "http://models.invalid/v1 through the proxy http://127.0.0.1:9" in out
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    status, checks, out = doctor(cli)
    assert (status, checks["proxies"]) == (2, False)
    assert "add models.invalid to NO_PROXY" in out


def test_settings_that_cannot_be_read_are_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_DURABILITY", "sometimes")
    cli("doctor").refused("JUDGETREE_DURABILITY")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_corpus(folder / "standards")
    write_question(folder, "40 mm")
    return folder


def write_question(folder: Path, answer: str) -> None:
    write_lines(folder, {**asdict(CHAIN), "answer": answer}, name="standards_qa.jsonl")


def test_the_scripted_demo_answers_recurses_and_draws(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = cli("demo", "--scripted", "--data", str(data), "--out", str(out))
    assert (done.status, done.out) == (0, "40 mm\n")
    assert "It asked 2 further questions." in done.err
    assert "The answer is right." in done.err
    assert sorted(file.name for file in out.iterdir()) == ["tree.html", "tree.svg"]


def test_the_demo_says_when_the_answer_is_wrong(cli: Cli, data: Path, scripted: ScriptedServer) -> None:
    write_question(data, "50 mm")
    done = cli("demo", "--data", str(data))
    assert (done.status, done.out) == (1, "40 mm\n")
    assert "The answer is wrong: the documents say '50 mm'." in done.err


def test_the_demo_fails_when_the_model_does(cli: Cli, data: Path, scripted: ScriptedServer) -> None:
    scripted.configure(faults={"500": 1.0})
    done = cli("demo", "--data", str(data))
    assert (done.status, done.out) == (1, "")
    assert "resume:" in done.err


def test_the_demo_needs_its_data(cli: Cli, tmp_path: Path, data: Path) -> None:
    cli("demo", "--scripted").refused("--data")
    (data / "standards_qa.jsonl").write_text(
        '{"id": "other", "lang": "en", "question": "?", "answer": "", "type": "unanswerable"}'
    )
    assert QUESTION_ID in cli("demo", "--scripted", "--data", str(data)).err


def test_an_unusable_out_folder_is_refused_before_indexing(cli: Cli, data: Path) -> None:
    (data / "file").write_text("")
    cli("demo", "--scripted", "--data", str(data), "--out", str(data / "file" / "below")).refused("--out")
    assert cli("collections", "--json").out == "[]\n"


def test_the_demo_question_takes_two_steps_in_the_demo_corpus() -> None:
    question = find_data(REPOSITORY / "data").question
    assert question.is_chained
    assert is_right(f" {question.answer.upper()}.", question)
    assert not is_right("", question)

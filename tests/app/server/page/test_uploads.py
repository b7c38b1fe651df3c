"""Uploads through the form of the page in a real browser: how far they are, what cannot be read, and a question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.index.connection import connect
from judgetree.modules.index.writer_lock import LockOptions, writer_lock
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CORPUS, write_corpus
from tests.app.server.page.looking import ask, look, wait_for_answer
from tests.app.server.serving import serving
from tests.app.talks import DRUM, FIRST
from tests.driver import Page, needs_driver

pytestmark = [needs_driver, pytest.mark.slow]

NAME = "kitchen"
FIELD, CHOICE, STATE = ".upload input[type=text]", ".upload input[type=file]", ".upload-state"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    """The scripted model, which knows the questions of a dialogue."""
    with ScriptedServer([], dialogues=[DRUM]) as server:
        yield server


@pytest.fixture
def empty(model: ScriptedServer, tmp_path: Path) -> Settings:
    """Settings with a home folder without a collection."""
    home = tmp_path / "home"
    return load_settings(home=home, llm=f"{model.base_url}#scripted", embeddings="local:use", retries=0, judge_llm="")


@pytest.fixture
def site(empty: Settings) -> Iterator[str]:
    """Address of a server without a collection."""
    with serving(empty) as url:
        yield url


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with files, of which two cannot be read."""
    folder = write_corpus(tmp_path / "files", {name: CORPUS[name] for name in ("a.md", "b.md")})
    (folder / "broken.pdf").write_bytes(b"no pdf")
    (folder / "table.xlsx").write_bytes(b"\x00\xff")
    return folder


def send(page: Page, *paths: Path) -> None:
    """Choose files, which sends them."""
    page.write(CHOICE, "\n".join(map(str, paths)))


def says(words: str) -> str:
    """The condition that the form says something."""
    return f"document.querySelector('{STATE}')?.innerText.includes({json.dumps(words)})"


def test_an_uploaded_file_is_indexed_and_answers_a_question(
    page: Page, empty: Settings, files: Path, site: str
) -> None:
    page.click("[href='#/collections']")
    page.wait("document.querySelector('.upload')")
    look(page, "upload-empty")
    send(page, files / "a.md")
    page.wait(says("Name the collection first."))
    page.write(FIELD, NAME)
    with (
        closing(connect(str(empty.milvus_address))) as connection,
        writer_lock(connection, NAME, LockOptions(), on_wait=lambda _: None),
    ):
        send(page, files / "a.md")
        page.wait(says("Indexing"))
        look(page, "upload-indexing")
    page.wait("document.querySelector('.cards a')")
    page.wait(says("Indexed. It can be asked now."))
    assert page.text(".cards a") == NAME
    look(page, "upload-done")

    page.click("[href='#/']")
    ask(page, FIRST)
    wait_for_answer(page)
    assert "the drum" in page.text(".answer")
    assert page.text(".source-name").split("\n") == ["Norm A", "a.md"]


def test_a_conversation_goes_on_in_its_collection_and_new_ones_not_in_that_of_an_evaluation(
    page: Page, files: Path, site: str
) -> None:
    with httpx.Client(base_url=site, timeout=60) as http:
        for name in ("eval_attic", NAME):
            text = (files / "a.md").read_bytes()
            job = http.post(f"/v1/collections/{name}/documents", files={"files": ("a.md", text)}).json()
            http.get(f"/v1/jobs/{job['id']}", headers={"Accept": "text/event-stream"})  # until it is indexed
    chosen = "document.querySelector('.picker select')?.value"
    page.reload()
    page.wait(f"{chosen} === '{NAME}'")
    ask(page, FIRST)
    wait_for_answer(page)
    choose = "select.value = 'eval_attic'; select.dispatchEvent(new Event('change'))"
    page.run(f"const select = document.querySelector('.picker select'); {choose}")
    page.wait(f"{chosen} === 'eval_attic'")
    page.reload()
    page.wait("document.querySelector('.turn')")
    page.wait(f"{chosen} === '{NAME}'")


def test_what_cannot_be_read_says_why_and_the_rest_is_indexed(page: Page, files: Path) -> None:
    page.click("[href='#/collections']")
    page.wait("document.querySelector('.upload')")
    page.write(FIELD, NAME)
    send(page, files / "broken.pdf", files / "table.xlsx", files / "b.md")
    page.wait(says("2 of 3 files could not be read; the others are indexed. broken.pdf: "))
    page.wait(says("The type of 'table.xlsx' cannot be read."))
    look(page, "upload-failed")

    page.click(".cards a")
    page.wait("document.querySelectorAll('.files tbody tr').length === 1")
    page.write("[role=search] input", "drum")
    send(page, files / "table.xlsx")
    page.wait(says("The type of 'table.xlsx' cannot be read. Allowed: pdf, md"))
    assert [words for words in page.console() if "422" not in words] == []
    send(page, files / "a.md")
    page.wait(says("a.md: Indexed."))
    assert page.run("return document.querySelectorAll('.files tbody tr').length") == 2
    assert page.run("return document.querySelector('[role=search] input').value") == "drum"
    send(page, files / "broken.pdf")
    page.wait(says("1 of 1 files could not be read. broken.pdf: "))
    page.run(f"document.querySelector('{STATE}').scrollIntoView({{ block: 'end' }})")
    look(page, "upload-refused")
    page.appear(width=360, height=780, dark=True)
    look(page, "upload-refused-phone-dark")


def test_passages_of_one_file_are_named_and_grouped_by_their_titles(
    page: Page, files: Path, site: str, model: ScriptedServer
) -> None:
    """Each row of a file is a document of its own."""
    rows = [
        {"title": "Norm A, register", "text": "Norm A names the drum."},
        {"title": "Norm A, register", "text": "Norm A also lists ladders and vessels."},
        {"title": "خزان الضغط", "text": "Norm A was printed in a second edition."},
    ]
    (files / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    page.click("[href='#/collections']")
    page.write(FIELD, NAME)
    send(page, files / "corpus.jsonl")
    page.wait(says("Indexed. It can be asked now."))
    page.click("[href='#/']")
    page.wait("document.querySelector('.example')?.innerText.includes('Norm A, register')")
    model.responses = lambda request: (
        ChatReply(text="It is **the drum** [1].") if request.prompt.kind == "read" else None
    )
    try:
        page.write(".picker select:nth-of-type(2)", "naive")
        ask(page, FIRST)
        wait_for_answer(page)
    finally:
        model.responses = None

    def texts(selector: str) -> list[str]:
        return cast(
            list[str], page.run(f"return [...document.querySelectorAll({selector!r})].map((one) => one.innerText)")
        )

    named = [text.split("\n") for text in texts(".source-name")]
    assert sorted(named) == [["Norm A, register", "corpus.jsonl"], ["خزان الضغط", "corpus.jsonl"]]
    assert [text.split("\n")[0] for text in sorted(texts(".source-chip"))] == ["1", "2", "3"]
    assert texts(".source-chip.cited") == ["1\ncited"]
    assert texts(".node .answer") == ["→ It is the drum [1]."]
    assert set(texts(".node .source")) == {"Norm A, register", "خزان الضغط"}
    look(page, "ask-titles")

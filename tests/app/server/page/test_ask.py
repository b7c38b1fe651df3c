"""The view "Ask" in a real browser: chat, growing tree, sources, branches, reload, languages and colours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.server.page.looking import ask, look, wait_for_answer
from tests.app.server.page.relay import relaying
from tests.driver import Page, needs_driver

QUESTION = "What is the highest service temperature of the gasket in a KV-133 Rating F40 flange?"
SUB_QUESTION = "What is the maximum temperature for Dorsan according to KV-207?"
CHINESE = "YL506的B2型吊厢，吊臂下端所穿的零件要有多高的抗剪强度？"
PLAIN = "Which material closes the joint at Rating F40 of KV-133?"
NEXT = "How hot may Dorsan become?"
CARDS = "[...document.querySelectorAll('.node')].map((card) => card.className)"


@contextmanager
def held(model: ScriptedServer, words: str) -> Iterator[threading.Event]:
    """Let the model answer no request with these words until the event is set, at the latest at the end."""
    going = threading.Event()

    def hold(request: ReceivedRequest) -> ChatReply | None:
        if any(words in str(message) for message in request.messages):
            assert going.wait(60)
        return None

    model.responses = hold
    try:
        yield going
    finally:
        going.set()
        model.responses = None


@needs_driver
@pytest.mark.slow
def test_the_tree_of_a_question_grows_beside_the_chat(page: Page, model: ScriptedServer) -> None:
    with held(model, SUB_QUESTION) as going:
        ask(page, QUESTION)
        page.wait("document.querySelector('.tree-pane.live .node.query')")
        page.wait("document.querySelector('.node.chunk.verdict-1')")
        page.wait("document.querySelectorAll('.node.query.open').length === 2")
        page.wait("document.querySelectorAll('.node.chunk.verdict-pending').length === 3")
        assert page.run("return document.querySelector('.tree-pane').classList.contains('live')") is True
        assert page.run("return document.querySelector('.stop').hidden") is False
        look(page, "ask-growing")
        going.set()
        wait_for_answer(page)
    assert "212 °C" in page.text(".answer")
    page.wait("document.querySelectorAll('.node.query.answered').length === 2")  # the tree comes by a stream of its own
    page.wait("document.querySelector('.conversations .current')")
    look(page, "ask-answered")


@needs_driver
@pytest.mark.slow
def test_the_state_says_when_the_answer_is_written(page: Page, model: ScriptedServer) -> None:
    going = threading.Event()

    def hold(request: ReceivedRequest) -> ChatReply | None:
        if request.prompt.kind == "read":
            assert going.wait(60)
        return None

    model.responses = hold
    try:
        ask(page, PLAIN)
        page.wait("document.querySelector('.basis.running')?.innerText === 'Writing the answer …'")
        going.set()
        wait_for_answer(page)
    finally:
        going.set()
        model.responses = None


@needs_driver
@pytest.mark.slow
def test_a_stopped_question_is_answered_from_what_was_found(page: Page, model: ScriptedServer) -> None:
    with held(model, SUB_QUESTION):
        ask(page, QUESTION)
        page.wait("document.querySelectorAll('.node.chunk.verdict-pending').length === 3")
        page.click(".stop")
        wait_for_answer(page)
    page.wait("document.querySelector('.node .note')")
    look(page, "ask-stopped")


@needs_driver
@pytest.mark.slow
def test_a_node_and_a_source_open_and_a_reload_brings_all_back(page: Page, model: ScriptedServer) -> None:
    def think(request: ReceivedRequest) -> ChatReply | None:
        is_answer = request.prompt.kind == "read" and request.prompt.query == QUESTION
        return ChatReply(text="At most 212 °C.", reasoning="KV-207 speaks of Dorsan.") if is_answer else None

    model.responses = think
    ask(page, QUESTION)
    wait_for_answer(page)
    model.responses = None
    page.click(".sources li:last-child .source-chip")
    page.wait("document.querySelector('dialog .document')?.innerText.includes('withstands up to 212 °C')")
    look(page, "ask-source")
    page.press("Escape")
    page.click(".node.chunk.verdict-1")
    page.wait("document.querySelector('.details')")
    words = page.text(".details")
    assert SUB_QUESTION in words
    assert "holds a needed fact" in words
    assert "1 call" in words
    look(page, "ask-node")

    page.click("details.thinking summary")
    assert page.text("details.thinking p") == "KV-207 speaks of Dorsan."
    before = page.run(f"return {{ cards: {CARDS}, address: location.hash }}")
    page.reload()
    page.wait("document.querySelector('.details') && document.querySelector('.conversations .current')")
    page.wait("!document.querySelector('.node.new')")
    assert page.run(f"return {{ cards: {CARDS}, address: location.hash }}") == before
    assert "212 °C" in page.text(".answer")
    assert SUB_QUESTION in page.text(".details")
    page.click("details.thinking summary")
    assert page.text("details.thinking p") == "KV-207 speaks of Dorsan."


@needs_driver
@pytest.mark.slow
def test_a_turn_branches_and_branches_are_switched_renamed_and_undone(page: Page) -> None:
    ask(page, PLAIN)
    wait_for_answer(page)
    ask(page, NEXT)
    wait_for_answer(page)
    page.click(".turn [aria-label='Edit the question']")
    page.run("document.querySelector('.composer textarea').value = ''")
    ask(page, QUESTION)
    wait_for_answer(page)
    questions = "return [...document.querySelectorAll('.question > h3')].map((one) => one.innerText)"
    assert page.run(questions) == [QUESTION]
    assert page.text(".switch") == "2 of 2"
    look(page, "ask-branch")

    page.click("[aria-label='Earlier version']")
    page.wait("document.querySelectorAll('.turn').length === 2")
    assert page.run(questions) == [PLAIN, NEXT]
    page.reload()
    page.wait("document.querySelectorAll('.turn').length === 2")
    page.click(".turn:last-child [aria-label='Delete this turn']")
    page.click("dialog .danger")
    page.wait("document.querySelectorAll('.turn').length === 1")
    look(page, "ask-deleted")
    page.click(".notice button")
    page.wait("document.querySelectorAll('.turn').length === 2")
    page.click(".turn:last-child [aria-label='Delete this turn']")
    page.click("dialog .danger")
    page.wait("document.querySelector('.notice')")
    page.click("[href='#/runs']")  # ends the time to take it back
    page.wait("document.querySelector('.runs') && !document.querySelector('.notice')")
    page.wait("performance.getEntriesByType('resource').some((one) => one.name.endsWith('/undo'))")
    page.run("history.back()")
    page.wait("document.querySelectorAll('.turn').length === 1")
    page.click("[aria-label='Rename this branch']")
    page.wait("document.querySelector('dialog input')")
    page.run("document.querySelector('dialog input').value = 'first'")
    page.press("Enter")
    page.wait("document.querySelector('.branches select')?.value === 'first'")


@needs_driver
@pytest.mark.slow
def test_a_deletion_takes_the_turn_that_was_shown_and_no_other(page: Page, site: str) -> None:
    for question in (PLAIN, NEXT, QUESTION):
        ask(page, question)
        wait_for_answer(page)
    questions = "return [...document.querySelectorAll('.question > h3')].map((one) => one.innerText)"
    count = "document.querySelectorAll('.turn').length === %d && document.querySelector('.notice')"

    def delete_last() -> None:
        page.click(".turn:last-child [aria-label='Delete this turn']")
        page.click("dialog .danger")

    delete_last()
    page.wait(count % 2)
    delete_last()  # the one before is deleted at once, and this one is offered too
    page.wait(count % 1)
    page.click(".notice button")
    page.wait("document.querySelectorAll('.turn').length === 2")
    assert page.run(questions) == [PLAIN, NEXT]

    delete_last()
    page.wait(count % 1)
    name = str(page.run("return location.hash.split(/[/?]/)[2]"))
    asked = httpx.post(
        f"{site}/v1/conversations/{name}/questions", json={"question": QUESTION, "model": "standards/naive"}, timeout=60
    )
    assert asked.status_code == 200, "asked in another tab"
    page.run("window.dispatchEvent(new Event('pagehide'))")
    page.wait("document.querySelectorAll('.turn').length === 3")
    assert page.run(questions) == [PLAIN, NEXT, QUESTION]
    said = [each for each in page.console() if "/v1/trees/" not in each]  # that of a turn may be read as it is deleted
    assert len(said) == 1
    assert "/undo - Failed to load resource: the server responded with a status of 400" in said[0]


@needs_driver
@pytest.mark.slow
def test_a_deletion_without_a_server_warns_once_and_the_turn_stays(page: Page) -> None:
    ask(page, PLAIN)
    wait_for_answer(page)
    place = page.run("return location.hash")
    page.click(".turn:last-child [aria-label='Delete this turn']")
    page.click("dialog .danger")
    page.wait("document.querySelectorAll('.turn').length === 0")
    page.run("window.online = window.fetch; window.tried = 0")
    page.run("window.fetch = () => { window.tried += 1; return Promise.reject(new TypeError('offline')); }")
    page.run("location.hash = '#/c/another'")  # the turn is deleted now, and list and conversation are read
    page.wait("window.tried >= 4 && document.querySelector('.notice.alarm')")
    notices = "return [...document.querySelectorAll('.notice')].map((one) => one.innerText)"
    assert page.run(notices) == ["The server cannot be reached: offline"]
    page.run(f"window.fetch = window.online; location.hash = '{place}'")
    page.wait("document.querySelectorAll('.turn').length === 1")


@needs_driver
@pytest.mark.slow
def test_an_answer_is_made_again_as_another_version(page: Page) -> None:
    ask(page, PLAIN)
    wait_for_answer(page)
    page.click("[aria-label='Answer again']")
    page.wait("document.querySelector('.switch')")
    wait_for_answer(page)
    assert page.text(".switch") == "2 of 2"
    assert page.text(".answer") == "Dorsan"


@needs_driver
@pytest.mark.slow
def test_escape_takes_an_edit_back_and_the_tab_has_the_name_of_the_conversation(page: Page) -> None:
    assert page.run("return document.title") == "judgetree"
    ask(page, PLAIN)
    wait_for_answer(page)
    assert page.run("return document.title") == f"{PLAIN} · judgetree"
    page.click("[aria-label='Edit the question']")
    assert page.run("return document.querySelector('.place').checkVisibility()") is True
    page.press("Escape")
    assert page.run("return document.querySelector('.place').checkVisibility()") is False
    assert page.run("return document.querySelector('.composer textarea').value") == ""
    assert page.run("return document.activeElement.matches('.composer textarea')") is True
    page.click("[href='#/']")
    page.wait("document.title === 'judgetree'")


@needs_driver
@pytest.mark.slow
def test_the_tree_is_walked_and_searched_by_keys(page: Page) -> None:
    ask(page, QUESTION)
    wait_for_answer(page)
    page.run("document.querySelector('.node').focus()")
    page.wait("!document.querySelector('.node.new')")
    focused = "return document.activeElement.className.replace(' current', '')"
    page.press("ArrowRight")
    assert page.run(focused) == "node chunk verdict-0"
    page.press("ArrowLeft")
    assert page.run(focused) == "node query answered leading"
    page.press("ArrowLeft")
    page.wait("document.querySelectorAll('.node').length === 1")
    page.press("ArrowRight")
    page.wait("document.querySelectorAll('.node').length > 1")
    page.press("Enter")
    page.wait("document.querySelector('.details')")
    page.press("Escape")
    page.wait("!document.querySelector('.details')")
    page.press("/")
    page.write(".tree-find input", "withstands")
    page.wait("document.querySelector('.tree-find [role=status]').innerText.includes('match')")
    assert page.run("return document.querySelectorAll('.node:not(.dim)').length") == 1
    page.press("Enter")
    page.wait("document.querySelector('.node.current.verdict-2')")


@needs_driver
@pytest.mark.slow
def test_the_page_speaks_chinese_on_dark_and_on_a_phone(page: Page) -> None:
    page.appear(width=360, height=780, dark=True)
    page.run("[...document.querySelectorAll('.bar button')].find((one) => one.lang === 'zh-CN').click()")
    page.wait("document.querySelector('.composer textarea')?.placeholder.startsWith('向资料')")
    ask(page, CHINESE)
    wait_for_answer(page)
    assert "385兆帕" in page.text(".answer")
    look(page, "ask-phone-dark-chinese")
    page.click("[data-side=tree]")
    page.wait("document.querySelector('.tree-frame.outline .node')")
    look(page, "tree-phone-dark-chinese")
    page.click(".node.chunk.verdict-1")
    page.wait("document.querySelector('.details')")
    look(page, "node-phone-dark-chinese")
    page.appear(dark=True)
    look(page, "ask-dark-chinese")
    page.appear(width=360, height=780)
    look(page, "node-phone-light-chinese")


@needs_driver
@pytest.mark.slow
def test_a_question_has_limits_of_its_own(page: Page) -> None:
    page.click("[aria-label='Limits']")
    page.wait("document.querySelector('dialog form')")
    assert page.run("return document.querySelector('dialog input[max=\"60\"]').placeholder") == "at most 60"
    look(page, "ask-limits")
    page.write("dialog label:has([max='3']) input", "0")
    page.run("document.querySelector('dialog label:nth-child(3) select').value = 'best_first'")
    page.press("Enter")
    page.wait("!document.querySelector('dialog')")
    ask(page, QUESTION)
    wait_for_answer(page)
    assert page.run("return document.querySelectorAll('.node.query').length") == 1
    page.reload()
    page.wait("document.querySelector('[aria-label=\"Limits: 2 chosen\"]')")


@pytest.mark.slow
@needs_driver
def test_a_question_goes_on_after_a_lost_connection(page: Page, site: str, model: ScriptedServer) -> None:
    with relaying(site) as relay, held(model, SUB_QUESTION) as going:
        page.open(f"{relay.url}/")
        ask(page, QUESTION)
        page.wait("document.querySelectorAll('.node.chunk.verdict-pending').length === 3")
        relay.cut()
        page.wait("document.querySelector('.failure')")
        look(page, "ask-lost")
        going.set()
        page.click(".failure .primary")
        page.wait("document.querySelector('.answer')?.innerText.includes('212 °C')")
        wait_for_answer(page)
        assert page.run("return document.querySelectorAll('.turn').length") == 1
        page.wait("document.querySelectorAll('.node.query.answered').length === 2")
        assert all("ERR_" in said for said in page.console())
        page.open("about:blank")


@needs_driver
@pytest.mark.slow
def test_calls_of_programs_are_shown_by_a_switch(page: Page, site: str) -> None:
    body = {"model": "standards/naive", "messages": [{"role": "user", "content": PLAIN}]}
    assert httpx.post(f"{site}/v1/chat/completions", json=body, timeout=60).status_code == 200
    shown = (
        "return [...document.querySelectorAll('.conversations .name')].filter((each) => each.textContent === %r).length"
    )
    page.open(f"{site}/?again")
    page.wait("document.querySelector('.sidebar label input') && !document.querySelector('.sidebar label').hidden")
    before = page.run(shown % PLAIN)
    page.click(".sidebar label input")
    page.wait(f"(() => {{ {shown % PLAIN} }})() === {before + 1}")
    assert "call" in page.text(".sidebar label")
    look(page, "ask-calls")
    page.click(".sidebar label input")
    page.wait(f"(() => {{ {shown % PLAIN} }})() === {before}")


@needs_driver
@pytest.mark.slow
def test_a_first_visit_shows_what_will_grow_and_offers_a_question(page: Page, model: ScriptedServer) -> None:
    page.wait("document.activeElement === document.querySelector('.composer textarea')")
    page.wait("document.querySelector('.example button')")
    assert "sub-question" in str(page.run("return document.querySelector('.growing').getAttribute('aria-label')"))
    look(page, "ask-first")
    offered = page.text(".example button")
    before = model.requests
    page.click(".example button")
    assert page.run("return document.querySelector('.composer textarea').value") == offered
    assert model.requests == before
    page.run("document.querySelector('.skip').focus()")
    look(page, "ask-skip")
    page.press("Enter")
    assert page.run("return [document.activeElement.id, location.hash]") == ["main", ""]
    page.appear(width=390, height=844, dark=True)
    look(page, "ask-first-phone-dark")


@pytest.mark.slow
@needs_driver
def test_a_reload_and_a_second_tab_show_the_running_question_and_cost_nothing(
    page: Page, model: ScriptedServer
) -> None:
    is_growing = "document.querySelectorAll('.turn.live + *').length === 0 && document.querySelector('.turn.live')"
    has_tree = "document.querySelectorAll('.node.chunk.verdict-pending').length === 3"
    before = model.requests
    with held(model, SUB_QUESTION) as going:
        ask(page, QUESTION)
        page.wait(has_tree)
        page.reload()
        page.wait(f"{is_growing} && {has_tree}")
        address = str(page.run("return location.href"))
        first = page.open_tab(address)
        page.wait(f"{is_growing} && {has_tree}")
        look(page, "ask-second-tab")
        going.set()
        wait_for_answer(page)
        assert "212 °C" in page.text(".answer")
        page.close_tab()
        page.turn_to(first)
        wait_for_answer(page)
        assert "212 °C" in page.text(".answer")
    spent = model.requests - before
    page.run("location.hash = '#/'")
    page.wait("document.querySelector('.welcome')")
    before = model.requests
    ask(page, QUESTION)
    wait_for_answer(page)
    alone = model.requests - before
    assert (spent["judge"], spent["read"]) == (alone["judge"], alone["read"])
    assert page.run("return document.querySelectorAll('.turn').length") == 1

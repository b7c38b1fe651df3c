"""The page on paper."""

from __future__ import annotations

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.server.page.looking import PICTURES, ask, wait_for_answer
from tests.driver import Page, needs_driver

QUESTION = "Which material closes the joint at Rating F40 of KV-133?"
LINES = 300


@needs_driver
@pytest.mark.slow
def test_a_long_answer_is_printed_whole(page: Page, model: ScriptedServer) -> None:
    def answer_at_length(request: ReceivedRequest) -> ChatReply | None:
        if request.prompt.kind != "read":
            return None
        return ChatReply(text="\n\n".join(f"Line {number} of the answer." for number in range(LINES)))

    model.responses = answer_at_length
    ask(page, QUESTION)
    wait_for_answer(page)
    model.responses = None
    page.chrome("Emulation.setEmulatedMedia", media="print")
    try:
        height = page.run("return document.documentElement.scrollHeight")
        last = page.run("return [...document.querySelectorAll('.answer p')].at(-1).getBoundingClientRect().bottom")
        assert isinstance(height, int) and isinstance(last, int | float)
        assert LINES * 20 < last <= height
        for part in ("#bar", ".composer", ".tree-pane"):
            assert page.run(f"return document.querySelector('{part}').checkVisibility()") is False
        PICTURES.mkdir(parents=True, exist_ok=True)
        (PICTURES / "printed.png").write_bytes(page.picture())
    finally:
        page.chrome("Emulation.setEmulatedMedia", media="")

"""The view "Runs" in a real browser: list, report, comparison, filtered questions, both trees of one."""

from __future__ import annotations

import pytest

from tests.app.server.page.looking import look
from tests.driver import Page, needs_driver

QUESTION = "What is the highest service temperature of the gasket in a KV-133 Rating F40 flange?"


@needs_driver
@pytest.mark.slow
def test_two_runs_are_compared(page: Page) -> None:
    page.click("[href='#/runs']")
    page.wait("document.querySelectorAll('.runs .card').length === 2")
    look(page, "runs")
    page.appear(width=340, height=780)  # 360 less a scroll bar
    wide = "[...document.querySelectorAll('.runs .card')].filter((card) => card.scrollWidth > card.clientWidth).length"
    assert page.run(f"return {wide}") == 0
    page.appear()
    for number in (1, 2):
        page.click(f".runs .card:nth-child({number}) input")
    page.click(".sheet-head .primary")
    page.wait("document.querySelector('.comparisons tbody tr')")
    assert "deep:judge" in page.text(".comparisons")
    assert page.run("return document.querySelectorAll('.comparisons table').length") == 1
    look(page, "runs-compared")
    page.appear(width=360, height=780, dark=True)
    look(page, "runs-compared-phone-dark")


@pytest.mark.slow
@needs_driver
def test_questions_that_one_system_had_right_show_both_trees(page: Page, site: str) -> None:
    page.open(f"{site}/#/runs/deep")
    page.wait("document.querySelectorAll('.questions .card').length === 4")
    look(page, "run")
    columns = "[...document.querySelectorAll('.comparisons th[scope=col]')].map((one) => one.innerText)"
    assert page.run(f"return {columns}") == ["Metric", "First", "Second", "Difference", "p", "Questions"]
    report = str(page.run("return document.querySelector('.sheet-head .button').href"))
    page.click(".filters button")
    page.wait("document.querySelectorAll('.questions .card').length === 3")
    page.reload()
    page.wait("document.querySelectorAll('.questions .card').length === 3")
    index = f"[...document.querySelectorAll('.questions .card')].find((one) => one.innerText.includes({QUESTION!r}))"
    page.run(f"{index}.querySelector('.button').click()")
    page.wait("document.querySelectorAll('.side .node.query').length === 3")
    page.wait("document.querySelector('.differences li')")
    assert "212 °C" in page.text(".differences")
    look(page, "run-both-trees")
    assert "212 °C" in page.text(".gold-answer")
    assert page.run("return document.querySelectorAll('.side:last-child .node .gold').length") > 1
    chosen = "[...document.querySelectorAll('.side select')].map((one) => one.selectedOptions[0].text)"
    assert page.run(f"return {chosen}") == ["naive", "judge"]
    page.click(".differences li:nth-child(2) button")
    page.wait("document.querySelectorAll('.side .details').length > 0")
    page.appear(width=360, height=780)
    look(page, "run-both-trees-phone")
    choose = "const box = document.querySelector('.side select'); box.value = box.options[1].value;"
    page.run(f"{choose} box.dispatchEvent(new Event('change'))")
    page.wait("document.querySelector('.differences')?.innerText.includes('alike')")
    page.open(report)
    page.wait("document.querySelector('h1')")
    assert "few.jsonl" in str(page.run("return document.body.innerText"))
    page.open(f"{site}/")

"""Triples of passages: what is asked, kept, counted and left, with a model that answers by rule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from judgetree.modules.calls.prices import Price, Prices
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError, SettingsError, WritingError
from judgetree.modules.extraction.cache import FILE_NAME, TripleCache
from judgetree.modules.extraction.extraction import aextract_triples, extract_triples
from judgetree.modules.extraction.plan import TripleModel, passage_text, plan_extraction
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.structure.passages import Passage
from judgetree.modules.structure.triples import Triple

PRICES = Prices({"chat": {"ruled": Price(prompt=1.0, completion=2.0)}})


def first_and_last(text: str) -> str:
    words = text.split()
    return json.dumps({"triples": [[words[0], "meets", words[-1]]]})


class RuledLLM:
    """Replies by a rule about the passage; its calls take ``tokens`` each."""

    model, endpoint = "ruled", "nowhere"

    def __init__(self, rule: Callable[[str], str] = first_and_last) -> None:
        self.rule = rule
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def complete(
        self, messages: Sequence[Message], *, meter: CallMeter, options: CallOptions = PLAIN_TEXT, **_: object
    ) -> Completion:
        if options.json_format == "json_schema":
            raise ModelRequestError("no schema here")
        text = messages[1][1].partition("\n")[2]
        self.asked.append(text)
        if self.gate is not None:
            await self.gate.wait()
        reply = self.rule(text)
        meter.reserve()
        meter.record(kind="chat", model=self.model, started=0.0, prompt_tokens=100, completion_tokens=50)
        return Completion(text=reply, finish_reason="stop")


def passages(*texts: str) -> list[Passage]:
    return [Passage(chunk_id=f"c{n}", text=text, metadata={"source": f"{n}.md"}) for n, text in enumerate(texts)]


def model_of(llm: RuledLLM, home: Path, **given: object) -> TripleModel:
    return TripleModel(llm=llm, home=home, prices=PRICES, **given)  # type: ignore[arg-type]


def test_a_passage_is_paid_for_once_and_a_changed_one_alone_again(tmp_path: Path) -> None:
    llm = RuledLLM()
    model = model_of(llm, tmp_path)
    given = passages("Ada met Bo", "Cy met Di", "Ada met Bo")
    plan = plan_extraction(given, model)
    assert (plan.passages, plan.calls, len(plan.kept)) == (3, 2, 0)
    report = extract_triples(plan, model)
    assert report.triples["c0"] == report.triples["c2"] == (Triple("Ada", "meets", "Bo"),)
    assert (report.calls, report.failed, report.left) == (2, (), 0)
    assert (report.prompt_tokens, report.completion_tokens, report.cost.usd) == (200, 100, pytest.approx(0.0004))

    again = plan_extraction(given, model)
    assert (again.calls, again.cost.usd) == (0, 0.0)
    assert extract_triples(again, model).triples == report.triples
    changed = plan_extraction(passages("Ada met Bo", "Cy met Eve"), model)
    assert [each.text for each in changed.asked] == ["Cy met Eve"]
    assert changed.reply_tokens == 50 // 1  # as long, for its passage, as those before
    assert llm.asked == ["Ada met Bo", "Cy met Di"]


def test_another_prompt_model_or_endpoint_asks_anew(tmp_path: Path) -> None:
    llm = RuledLLM()
    extract_triples(plan_extraction(passages("Ada met Bo"), model_of(llm, tmp_path)), model_of(llm, tmp_path))
    own = load_prompts({"triples": {"system": "List facts as JSON."}})
    assert plan_extraction(passages("Ada met Bo"), model_of(llm, tmp_path, prompts=own)).calls == 1
    for name in ("model", "endpoint"):
        other = RuledLLM()
        setattr(other, name, "another")
        assert plan_extraction(passages("Ada met Bo"), model_of(other, tmp_path)).calls == 1


def test_a_passage_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    def rule(text: str) -> str:
        if "broken" in text:
            raise ModelCallError("timed out")
        return "no JSON" if "prose" in text else first_and_last(text)

    llm = RuledLLM(rule)
    model = model_of(llm, tmp_path, at_once=1)
    given = passages("Ada met Bo", "a broken one", "only prose", "Cy met Di")
    report = extract_triples(plan_extraction(given, model), model)
    assert [(each.source, each.problem) for each in report.failed] == [
        ("1.md", "timed out"),
        ("2.md", "It holds no JSON object."),
    ]
    assert sorted(report.triples) == ["c0", "c3"]
    assert report.calls == 4  # two for the prose, which was asked again
    llm.rule = first_and_last
    assert extract_triples(plan_extraction(given, model), model).failed == ()


def test_an_endpoint_that_never_answers_ends_it_and_so_does_one_that_cannot_serve(tmp_path: Path) -> None:
    def fails(text: str) -> str:
        raise ModelCallError("timed out")

    def refuses(text: str) -> str:
        raise ModelSetupError("wrong key")

    many = passages(*(f"Number {n}" for n in range(60)))
    for rule, error, most in ((fails, ModelCallError, 28), (refuses, ModelSetupError, 8)):
        llm = RuledLLM(rule)
        model = model_of(llm, tmp_path)
        with pytest.raises(error):
            extract_triples(plan_extraction(many, model), model)
        assert len(llm.asked) <= most


def test_an_endpoint_that_dies_ends_it_and_one_text_of_many_chunks_is_one_failure(tmp_path: Path) -> None:
    def dies(text: str) -> str:
        if text.startswith("Number") and len(llm.asked) > 4:
            raise ModelCallError("timed out")
        return first_and_last(text)

    def refuses_some(text: str) -> str:
        if "Number" in text:
            raise ModelRequestError("refused")
        if text == "A header":
            raise ModelCallError("timed out")
        return first_and_last(text)

    llm = RuledLLM(dies)
    many = passages("Ada met Bo", *(f"Number {n}" for n in range(60)))
    with pytest.raises(ModelCallError):
        extract_triples(plan_extraction(many, model_of(llm, tmp_path)), model_of(llm, tmp_path, at_once=1))
    assert len(llm.asked) == 24
    refusing = model_of(RuledLLM(refuses_some), tmp_path, at_once=1)
    repeated = passages(*["A header"] * 30, "Cy met Di", *(f"Number {n}" for n in range(60)))
    report = extract_triples(plan_extraction(repeated, refusing), refusing)
    assert (len(report.failed), sorted(report.triples)) == (30 + 57, ["c30", "c31", "c32", "c33"])


def test_triples_that_cannot_be_kept_end_it(tmp_path: Path) -> None:
    (tmp_path / "triples.sqlite").mkdir()
    llm = RuledLLM()
    model = model_of(llm, tmp_path, at_once=1)
    with pytest.raises(WritingError, match=r"triples\.sqlite could not be written"):
        extract_triples(plan_extraction(passages("Ada met Bo", "Cy met Di"), model), model)
    assert len(llm.asked) == 1


def test_limits_of_passages_and_money_leave_the_rest(tmp_path: Path) -> None:
    llm = RuledLLM()
    model = model_of(llm, tmp_path, at_once=1)
    given = passages(*(f"Ada met N{n}" for n in range(9)))
    report = extract_triples(plan_extraction(given, model), model, max_passages=2)
    assert (report.calls, report.left) == (2, 7)
    report = extract_triples(plan_extraction(given, model), model, max_cost_usd=0.0005)
    assert (report.calls, report.left) == (3, 4)  # a model that reserves no amount passes the limit by a call
    unknown = model_of(llm, tmp_path)
    unpriced = TripleModel(llm=llm, home=tmp_path, prices=Prices({}))
    with pytest.raises(SettingsError, match=r"prices\.toml"):
        extract_triples(plan_extraction(given, unknown), unpriced, max_cost_usd=1.0)


def test_what_was_read_is_kept_when_the_work_is_cancelled(tmp_path: Path) -> None:
    llm = RuledLLM()
    model = model_of(llm, tmp_path, at_once=2)
    given = passages(*(f"Ada met N{n}" for n in range(6)))

    async def cancelled_halfway() -> None:
        halfway, loop = asyncio.Event(), asyncio.get_running_loop()

        def report(done: int, total: int, stage: str) -> None:
            if done == 3:
                llm.gate = asyncio.Event()  # the next calls hang
                loop.call_soon_threadsafe(halfway.set)

        work = asyncio.create_task(aextract_triples(plan_extraction(given, model), model, on_progress=report))
        await halfway.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancelled_halfway())
    assert plan_extraction(given, model).calls <= 3
    llm.gate = None
    assert len(extract_triples(plan_extraction(given, model), model).triples) == 6


def test_a_passage_is_shown_with_the_title_that_it_does_not_begin_with() -> None:
    titled = Passage(chunk_id="1", text="He was born.", metadata={"title": "Bo\nEk"})
    assert passage_text(titled) == "Bo Ek\nHe was born."
    assert passage_text(Passage(chunk_id="1", text="Bo Ek was born.", metadata={"title": "Bo Ek"})) == "Bo Ek was born."
    assert len(passage_text(Passage(chunk_id="1", text="word " * 100_000))) < 30_000


@pytest.mark.parametrize("damaged", ["garbage", "[1]", '[["a", "b"]]', '[["a", "b", ["c"]]]', b"\xff", 7])
def test_damaged_triples_are_asked_for_again(damaged: object, tmp_path: Path) -> None:
    model, given = model_of(RuledLLM(), tmp_path), passages("Ada met Bo")
    extract_triples(plan_extraction(given, model), model)
    with TripleCache(tmp_path / FILE_NAME) as cache:
        cache.attempt(lambda file: file.execute("UPDATE extracted SET triples = ?", (damaged,)), otherwise=None)
    plan = plan_extraction(given, model)
    assert plan.calls == 1
    extract_triples(plan, model)
    assert plan_extraction(given, model).calls == 0

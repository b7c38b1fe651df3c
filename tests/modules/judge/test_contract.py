"""The contract of a judge: sub-questions that can be asked on their own, and verdicts that anybody may write."""

from __future__ import annotations

import asyncio
import doctest
import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge import contract
from judgetree.modules.judge.contract import Verdict, checked_verdict, sub_question_problem
from judgetree.modules.judge.factory import create_judge, own_judge
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.contract import ChatLLM
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.settings import load_settings

QUERY = "Where was the director of Alien born?"


@pytest.mark.parametrize(
    "next_query",
    [
        "Where was Ridley Scott born?",
        "Who directed Alien?",
        "Where was the director of Aliens born?",
        "When was the passage of the Nineteenth Amendment?",
        "Who sailed through the Drake Passage first?",
        "Who signed the document known as the Petition of Right?",
        "Which library keeps the text of Beowulf?",
        "In which context was Linear B found?",
        "What did the inventor of the telephone call his device?",
        "Who is Herbert Hoover?",
        "雷德利·斯科特出生在哪里？",
        "日本文学的代表作是什么？",
        "中文中“龙”的部首是什么？",
        "历史上文明最早出现在哪里？",
        "企业应该文明经营是哪部法律规定的？",
    ],
)
def test_question_that_stands_alone_can_be_asked(next_query: str) -> None:
    assert sub_question_problem(next_query, QUERY) == ""


@pytest.mark.parametrize(
    "next_query",
    [
        "Who is the woman in this passage?",
        "Who is named in the passage?",
        "Which year does The Paragraph mean?",
        "What does that text leave open?",
        "Who wrote the above document?",
        "Who wrote this document?",
        "Who is named in the text?",
        "Where was he born?",
        "In which year did they marry?",
        "Who is her father?",
        "他出生在哪里？",
        "What else is in the given context?",
        "Who owns the company in the chunk?",
        "本文提到的导演出生在哪里？",
        "请问文中的导演是谁？",
        "这段话里的公司在哪里？",
        "该文的作者是谁？",
        "根据上文，他出生在哪里？",
    ],
)
def test_question_that_points_into_the_passage_cannot_be_asked(next_query: str) -> None:
    assert "points into the passage" in sub_question_problem(next_query, QUERY)


@given(st.sampled_from([str.lower, str.upper, str.title, str.strip, lambda text: f" {text}!? ", lambda text: text * 1]))
def test_question_that_repeats_the_query_cannot_be_asked(change: object) -> None:
    assert callable(change)
    assert "repeats" in sub_question_problem(change(QUERY), QUERY)


def test_question_that_repeats_a_chinese_query_cannot_be_asked() -> None:
    assert "repeats" in sub_question_problem("《异形》的导演出生在哪里", "《异形》的导演出生在哪里？")


@pytest.mark.parametrize("next_query", ["", " ", "\n\t", "\u3000"])
def test_question_that_is_empty_cannot_be_asked(next_query: str) -> None:
    assert "empty" in sub_question_problem(next_query, QUERY)


# --- verdicts ---


@pytest.mark.parametrize("score", [1, 1.0, np.int64(1), np.float32(1.0), np.array(1)], ids=repr)
@pytest.mark.parametrize("confidence", [0.5, np.float32(0.5), np.float64(0.5), np.array(0.5)], ids=repr)
def test_numbers_of_other_kinds_become_pythons_own(score: Any, confidence: Any) -> None:
    verdict = checked_verdict(Verdict(status="judged", score=score, confidence=confidence, next_query="Who?"))
    assert verdict == Verdict(status="judged", score=1, confidence=0.5, next_query="Who?")
    assert (type(verdict.score), type(verdict.confidence)) == (int, float)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (Verdict(status="judged", score=3), "score 3"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=-1), "score -1"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=0.5), "score 0.5"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=True), "score True"),  # type: ignore[arg-type]
        (Verdict(status="judged", score="1"), "score '1'"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=np.True_), "score "),  # type: ignore[arg-type]
        (Verdict(status="judged"), "score None"),
        (Verdict(status="judged", score=float("nan")), "score nan"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=2**64), "score 18446744073709551616"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=1, confidence=float("nan")), "confidence nan"),
        (Verdict(status="judged", score=1, confidence=1e30), "confidence 1e\\+30"),
        (Verdict(status="judged", score=1, confidence="sure"), "confidence 'sure'"),  # type: ignore[arg-type]
        (Verdict(status="sure", score=1), "status 'sure'"),  # type: ignore[arg-type]
        (Verdict(status="judged", score=1, next_query=None), "next_query None"),  # type: ignore[arg-type]
        (None, "NoneType in place of a Verdict"),
        (2, "int in place of a Verdict"),
    ],
)
def test_what_cannot_be_used_is_unknown_and_named(given: object, named: str) -> None:
    verdict = checked_verdict(given)
    assert (verdict.status, verdict.score) == ("unknown", None)
    assert verdict.problem.startswith(f"The judge gave {named}".replace("\\+", "+"))
    assert "Allowed: " in verdict.problem


def test_texts_can_be_stored() -> None:
    verdict = checked_verdict(Verdict(status="judged", score=0, reason="a\x00b\ud800"))
    assert json.dumps(verdict.reason).encode()
    assert verdict.reason == "ab?"


def test_example_of_the_docstring() -> None:
    assert doctest.testmod(contract).failed == 0


def test_a_sub_question_of_unbounded_length_is_not_asked() -> None:
    verdict = checked_verdict(Verdict(status="judged", score=1, next_query="Why? " * 1000))
    assert (verdict.score, verdict.next_query) == (1, "")
    assert verdict.problem == "next_query has 5000 characters; write one question of at most 600."


class Panic(BaseException):
    """What libraries in Rust raise; no ``Exception``."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(0), r"called sys.exit\(0\)"),
        (Panic("index"), "failed: Panic: index"),
        (asyncio.CancelledError(), "failed: CancelledError"),
    ],
)
def test_a_judge_of_one_s_own_that_exits_or_panics_fails_its_verdict_and_not_the_process(
    error: BaseException, said: str
) -> None:
    class Exiting:
        def fingerprint(self) -> dict[str, str]:
            return {}

        async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
            raise error

    judge = create_judge(Exiting(), create_llm("http://127.0.0.1:9/v1#m", load_settings(), CallGate(1)), spec="x")
    with pytest.raises(RuntimeError, match=f"Exiting.* {said}"):
        asyncio.run(judge.judge("Who?", Document(page_content=""), meter=CallMeter(node="judge")))


class Asking:
    def __init__(self, llm: ChatLLM) -> None:
        pass

    def fingerprint(self) -> dict[str, str]:
        return {}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=0)


def test_a_judge_of_one_s_own_that_takes_a_model_is_another_one_with_another_model() -> None:
    def said(model: str) -> dict[str, str]:
        llm = create_llm(f"http://127.0.0.1:9/v1#{model}", load_settings(), CallGate(1))
        return create_judge(Asking, llm, spec="x").fingerprint()

    assert said("small") == said("small") != said("large")


class Nameless:
    """A judge that forgot its fingerprint."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=2)


class NamedLater(Nameless):
    def __init__(self) -> None:
        self.fingerprint = dict


class NamedByAnother(Nameless):
    def __getattr__(self, name: str) -> object:
        return dict


@pytest.mark.parametrize("made", [Nameless, Nameless(), "tests.modules.judge.test_contract:Nameless", Verdict])
def test_what_can_be_no_judge_is_refused_before_it_is_made(made: object) -> None:
    with pytest.raises(SettingsError, match="methods fingerprint and judge of a Judge"):
        own_judge(made)


@pytest.mark.parametrize("made", [NamedLater, NamedByAnother, NamedLater(), Nameless.judge, partial(Nameless)])
def test_what_may_be_a_judge_is_not(made: object) -> None:
    assert own_judge(made) is not None


def test_a_judge_of_ours_is_none_of_one_s_own() -> None:
    assert own_judge("cascade:judge=batched") is None

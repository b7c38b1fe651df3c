"""Runs with a judge, a retriever and systems of one's own: measured, resumed and reported like the built-in ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.types import interrupt

from judgetree import RagSession, Verdict, evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.from_results import key_of
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CHAIN, CHINESE, write_corpus

PARTS = """
import os

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from judgetree import RagGraph, Verdict
from judgetree.graphs.systems import nodes
from judgetree.graphs.threads.context import RunContext
from judgetree.graphs.threads.state import RagState


class WordJudge:
    def __init__(self, llm):
        self.llm = llm

    def fingerprint(self):
        return {"words": "2"}

    async def judge(self, query, chunk, *, meter, expand=True):
        return Verdict(status="judged", score=2 if "grey" in chunk.page_content else 0)


class OneRung:
    def fingerprint(self):
        return {"rungs": "1"}

    async def asearch(self, query, *, meter):
        rung = Document(page_content="Ladders are grey.", metadata={"chunk_id": "1", "source": "deep/ladders.txt"})
        return [(rung, 1.0)]


def build_twice(**options):
    builder = StateGraph(RagState, context_schema=RunContext)
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("augment", nodes.augment)
    builder.add_node("generate", nodes.generate)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "augment")
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="twice", **options)


def answering():
    return FakeListChatModel(responses=["grey"])


def set_outside():
    return os.environ["OUTSIDE"]


class OutsideJudge(WordJudge):
    def fingerprint(self):
        return {"outside": set_outside()}


class OutsideRung(OneRung):
    def fingerprint(self):
        return {"outside": set_outside()}


class OutsidePolicy:
    def fingerprint(self):
        return {"outside": set_outside()}

    def choose(self, candidates, spent, limits):
        return candidates

    def allows_retry(self, tries):
        return False


def outside_model():
    return FakeListChatModel(responses=[set_outside()])


@tool
def shout(text: str) -> str:
    "Shout."
    return text + "!"
"""
LADDERS = "Which colour are ladders painted?"
KEYS = {"questions": [{"question": LADDERS, "answer": "grey", "sources": "deep/ladders.txt"}], "topk": 4}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    write_corpus(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("mine.py").write_text(PARTS, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    with ScriptedServer([CHAIN, CHINESE]) as server:
        yield load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


class Ladders(BaseRetriever):
    """Finds one passage, whatever is asked."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(page_content="Ladders are painted grey.", metadata={"source": "deep/ladders.txt"})]


class AskingJudge:
    """A judge that wants to ask a person."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "asking"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=interrupt(f"Does {chunk.page_content[:9]!r} help?"))


class NoJudge:
    """A judge that finds nothing useful."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "none"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=0)


@pytest.mark.slow
def test_parts_by_import_path_are_measured_like_the_built_in_ones(tmp_path: Path, settings: Settings) -> None:
    systems = ("naive", "judge", "mine:build_twice")
    keys = {**KEYS, "corpus": "./docs", "systems": systems, "judge": "mine:WordJudge", "search_type": "sparse"}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    rows = report.questions.set_index("system")
    assert list(rows.index) == list(systems)
    assert rows["tree_recall"].tolist() == [1, 1, 1]
    trees = dict(evaluation.TreeStore(tmp_path / "run").read_all())
    judged = trees[rows.loc["judge", "thread_id"]]
    assert [chunk.verdict_label for chunk in judged.chunk_nodes()].count("2") == 1
    assert (judged.fingerprint["judge.part"], judged.fingerprint["judge.own.words"]) == ("mine:WordJudge", "2")
    own = trees[rows.loc["mine:build_twice", "thread_id"]]
    assert own.fingerprint["system"] == "mine:build_twice"
    assert own.fingerprint["system.source"] == judged.fingerprint["judge.source"]
    assert "| mine:build_twice | 1 |" in report.to_markdown()
    evaluation.write_report(tmp_path / "run")
    again = evaluation.run(tmp_path / "run", out=tmp_path / "again", cache="replay", settings=settings)
    assert again.questions["prediction"].tolist() == report.questions["prediction"].tolist()


@pytest.mark.parametrize(
    "part",
    [
        {"systems": ("judge",), "judge": "mine:WordJudge", "corpus": "./docs", "search_type": "sparse"},
        {"systems": ("naive",), "retriever": "mine:OneRung"},
        {"systems": ("react",), "retriever": "mine:OneRung", "tools": ("calculator", "mine:shout")},
    ],
)
def test_anothersource_of_a_part_is_another_run(tmp_path: Path, settings: Settings, part: dict[str, object]) -> None:
    keys = {**KEYS, **part}
    evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    Path("mine.py").write_text(f"{PARTS}\n# another version\n", encoding="utf-8")
    del sys.modules["mine"]
    with pytest.raises(SettingsError, match=r"holds another run \((judge|retriever|tools)_source"):
        evaluation.run(out=tmp_path / "run", settings=settings, **keys)


@pytest.mark.parametrize("model", ["llm", "judge_llm"])
def test_another_source_of_a_model_is_another_run(tmp_path: Path, settings: Settings, model: str) -> None:
    keys = {**KEYS, "systems": ("naive",), "retriever": Ladders(), model: "mine:answering"}
    evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    Path("mine.py").write_text(PARTS.replace('["grey"]', '["green"]'), encoding="utf-8")
    del sys.modules["mine"]
    with pytest.raises(SettingsError, match=rf"holds another run \(.*{model} source: "):
        evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    again = evaluation.run(out=tmp_path / "again", settings=settings, **keys)
    assert model == "judge_llm" or again.questions["prediction"].tolist() == ["green"], "no kept reply of the old one"


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"judge": "mine:OutsideJudge"}, "own.outside"),
        ({"retriever": "mine:OutsideRung"}, "own.outside"),
        ({"policy": "mine:OutsidePolicy"}, "own.outside"),
        ({"llm": "mine:outside_model"}, "model_fields"),
        ({"judge_llm": "mine:outside_model"}, "model_fields"),
    ],
)
def test_a_complete_run_is_not_that_of_a_part_which_was_set_otherwise_from_outside(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, part: dict[str, object], name: str
) -> None:
    keys = {**KEYS, "systems": ("judge",), "judge": NoJudge(), "retriever": Ladders(), **part}
    monkeypatch.setenv("OUTSIDE", "grey")
    evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    assert evaluation.run(out=tmp_path / "run", settings=settings, **keys).questions["attempt"].tolist() == [0]
    monkeypatch.setenv("OUTSIDE", "green")
    with pytest.raises(SettingsError, match=rf"holds another run \({name}: "):
        evaluation.run(out=tmp_path / "run", settings=settings, **keys)


def test_an_accepted_change_of_a_system_is_in_the_report(tmp_path: Path, settings: Settings) -> None:
    keys = {**KEYS, "retriever": Ladders(), "systems": ("mine:build_twice",)}
    first = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    assert "changes were accepted" not in first.to_markdown()
    Path("mine.py").write_text(f"{PARTS}\n# another version\n", encoding="utf-8")
    del sys.modules["mine"]
    with pytest.raises(SettingsError, match="mine:build_twice source"):
        evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    accepting = evaluation.RunOptions(accept_changes=True)
    second = evaluation.run(out=tmp_path / "run", settings=settings, options=accepting, **keys)
    assert "changes were accepted: mine:build_twice source: " in second.to_markdown()


def test_objects_are_parts_too_and_a_retriever_of_langchain_needs_no_collection(
    tmp_path: Path, settings: Settings
) -> None:
    keys = {**KEYS, "systems": ["naive", "judge"], "judge": NoJudge(), "retriever": Ladders()}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    rows = report.questions.set_index("system")
    assert rows["tree_recall"].tolist() == [1, 1]
    assert rows.loc["judge", "status"] == "refused"
    assert evaluation.run(out=tmp_path / "run", settings=settings, **keys).questions["attempt"].tolist() == [0, 0]
    assert not (settings.home / "milvus.db").exists()


def build_by(_plan: object, **options: object) -> None:
    """Build nothing, by a plan whose kind says nothing about it."""


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"systems": ["mine"]}, "Unknown system 'mine'. Allowed: llm, naive"),
        ({"systems": [lambda **options: None]}, "is None. Name a function that builds"),
        (
            {"systems": [partial(build_by, object()), partial(build_by, object())]},
            "two parts are both named .*build_by",
        ),
        ({"systems": ["mine:nothing"]}, "has no attribute 'nothing'"),
        ({"systems": ["mine:WordJudge"]}, "cannot be made: .*missing 1 required positional argument: 'llm'"),
        ({"systems": ["judge"], "judge": "mine:START"}, "methods fingerprint and judge of a Judge"),
        ({"systems": ["naive"], "retriever": "mine:StateGraph"}, "cannot be made"),
        ({"systems": ["naive"], "retriever": "mine:RagState"}, "LangChain retriever, or an object"),
    ],
)
def test_a_part_that_is_none_is_refused_before_anything_is_asked(
    tmp_path: Path, settings: Settings, keys: dict[str, object], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        evaluation.run(out=tmp_path / "run", settings=settings, **{**KEYS, "corpus": "./docs", **keys})


class NamelessJudge:
    """A judge that forgot its fingerprint."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=2)


def test_a_judge_without_a_fingerprint_is_refused_before_anything_is_opened(tmp_path: Path, settings: Settings) -> None:
    keys = {**KEYS, "corpus": "./docs", "judge": NamelessJudge}
    for systems in (["judge"], ["naive", "judge"]):
        with pytest.raises(SettingsError, match=r"NamelessJudge.*methods fingerprint and judge"):
            evaluation.run(out=tmp_path / "run", settings=settings, **{**keys, "systems": systems})
    with (
        RagSession("none", judge=NamelessJudge, settings=settings) as session,
        pytest.raises(SettingsError, match="Nam"),
    ):
        session.ask(LADDERS)
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert not (settings.home / "milvus.db").exists(), "nothing was indexed"


def test_a_system_that_panics_fails_its_questions_by_its_name(tmp_path: Path, settings: Settings) -> None:
    panicking = PARTS.replace(
        "def build_twice", "async def panic(state, runtime):\n    raise BaseException('index')\n\n\ndef build_twice"
    ).replace('"generate", nodes.generate)', '"generate", panic)')
    Path("mine.py").write_text(panicking, encoding="utf-8")
    keys = {**KEYS, "corpus": "./docs", "systems": ["mine:build_twice"]}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    assert report.questions["error"].tolist() == ["RuntimeError: 'mine:build_twice' failed: BaseException: index"]


def test_a_question_that_is_interrupted_is_a_failed_row_that_says_so(tmp_path: Path, settings: Settings) -> None:
    keys = {**KEYS, "systems": ("naive", "judge"), "judge": AskingJudge(), "retriever": "mine:OneRung"}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    rows = report.questions.set_index("system")
    assert rows["status"].tolist() == ["refused", "failed"]
    assert "waits for an answer to: \"Does 'Ladders a' help?\"" in rows.loc["judge", "error"]


def test_tools_are_those_of_the_systems_that_use_them(tmp_path: Path, settings: Settings) -> None:
    keys = {**KEYS, "corpus": "./docs", "search_type": "sparse", "max_rec_depth": 1}
    evaluation.run(out=tmp_path / "run", settings=settings, systems=("naive", "react"), tools=["calculator"], **keys)
    trees = {tree.fingerprint["system"]: tree for _, tree in evaluation.TreeStore(tmp_path / "run").read_all()}
    assert "tool.calculator" in trees["react"].fingerprint
    assert "tool.calculator" not in trees["naive"].fingerprint
    with pytest.raises(SettingsError, match=r"another run \(tools: \['calculator'\] there, \[\] now"):
        evaluation.run(out=tmp_path / "run", settings=settings, systems=("naive", "react"), **keys)
    with pytest.raises(SettingsError, match="no system uses tools: add react to systems"):
        evaluation.run(out=tmp_path / "other", settings=settings, systems=("naive",), tools=["calculator"], **keys)


@pytest.mark.parametrize("given", ["object", "mine:answering"])
def test_a_model_of_langchain_is_measured_and_paid_once(tmp_path: Path, settings: Settings, given: str) -> None:
    llm = FakeListChatModel(responses=["grey"]) if given == "object" else given
    keys = {**KEYS, "systems": ("naive",), "retriever": "mine:OneRung", "llm": llm}
    report = evaluation.run(out=tmp_path / "run", settings=settings, **keys)
    assert report.questions["prediction"].tolist() == ["grey"]
    assert report.questions["paid_llm_calls"].tolist() == [1]
    again = evaluation.run(out=tmp_path / "again", settings=settings, **keys)
    assert again.questions["paid_llm_calls"].tolist() == [0]
    (tree,) = (tree for _, tree in evaluation.TreeStore(tmp_path / "run").read_all())
    assert "FakeListChatModel" in tree.fingerprint["reader.model_fields"]
    with pytest.raises(SettingsError, match=r"holds another run .*llm: "):
        evaluation.run(out=tmp_path / "run", settings=settings, **{**keys, "llm": settings.llm})


def test_the_result_of_a_tool_is_of_no_document() -> None:
    assert key_of({"source": "calculator", "tool": "calculator"}, "source", "c1") == "c1"
    assert key_of({"source": "calculator"}, "source", "c1") == "calculator"

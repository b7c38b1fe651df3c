"""What judgetree relies on in metrics and data sets of one's own, as checks that they can be run against."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

from ..graphs.contract_rules import ContractError, require
from ..graphs.rag.search_tree import SearchTree
from ..graphs.tree.nodes import ChunkNode, QueryNode
from ..modules.background_loop import background_loop
from ..modules.calls.usage import CallMeter
from ..modules.errors import UserError
from ..modules.parts import part_of, register_object
from ..modules.settings import load_settings
from .datasets.questions import Dataset
from .datasets.registry import load_dataset
from .rows.trees import TreeStore
from .scoring.own_metric import OwnMetric, metric_part, wants_model
from .scoring.sample import Metric, MetricSample

_CHUNK = ChunkNode(chunk_id="chunk-0", text="KS-1 needs the oil VG 68.", metadata={"source": "ks-1.md", "score": 2})
_TREE = SearchTree(root=QueryNode(thread_id="t", query="Which oil does KS-1 need?", chunks=(_CHUNK,)))
_ANSWERED = MetricSample(
    question="Which oil does KS-1 need?",
    answer="VG 68",
    gold_answers=("VG 68", "the oil VG 68"),
    evidence=("ks-1.md\nKS-1 needs the oil VG 68.",),
    chunks=(_CHUNK,),
    tree=_TREE,
    supporting=("ks-1.md",),
    system="judge",
    question_id="q1",
    type="bridge",
    hops=2,
)
_SAMPLES = (
    _ANSWERED,
    replace(_ANSWERED, answer="压力保持三十五分钟。", lang="zh"),
    replace(_ANSWERED, answer="I cannot answer this question.", status="refused"),
    replace(_ANSWERED, gold_answers=(), type="unanswerable"),
    replace(_ANSWERED, gold_answers=(), answers_known=False),
    replace(_ANSWERED, evidence=(), chunks=(), tree=None, system="llm", hops=None, type=""),
    replace(_ANSWERED, answer="word " * 20_000),
    replace(_ANSWERED, answer=""),
)
_AT_ONCE = 20


def check_metric(metric: str | Metric | type) -> None:
    """Check a metric: its range, and its scores of odd samples, alone, again and many at once.

    Give an object, made with a model of yours, in place of a class that takes ``llm``; the check takes 36 scores.

    Raises:
        ContractError: It breaks a rule.
    """
    try:
        part = metric_part(metric)
        require(not wants_model(part), "a class that takes llm is checked as an object made with one", part.name)
        own = OwnMetric(part, TreeStore(Path()), llm=None, endpoint="", settings=load_settings())
    except UserError as error:
        raise ContractError(str(error)) from error
    background_loop().run(_check_scores(own))


async def _check_scores(own: OwnMetric) -> None:
    first = [await _score(own, sample) for sample in _SAMPLES]
    again = [await _score(own, sample) for sample in _SAMPLES]
    require(again == first, "a sample has the same score each time", (first, again))
    together = await asyncio.gather(*(_score(own, _ANSWERED) for _ in range(_AT_ONCE)))
    require(set(together) == {first[0]}, "scores given at once are as alone", together)


async def _score(own: OwnMetric, sample: MetricSample) -> float | None:
    said = f"a metric scores the answer {sample.answer[:30]!r} of {len(sample.chunks)} chunks"
    try:
        return own.checked(await own.called(sample, CallMeter(node="contract")))
    except Exception as error:
        raise ContractError(f"{said} with a number or None; it raised {type(error).__name__}: {error}") from error


def check_dataset(dataset: object) -> None:
    """Check a data set, or what loads one (``module:name``, ``NAME:PATH``, a function): ids, texts, gold, sameness.

    It is loaded twice.

    Raises:
        ContractError: It breaks a rule.
    """
    first, again = _loaded(dataset), _loaded(dataset)
    require(first.digest == again.digest, "a data set is the same at every loading", (first.digest, again.digest))
    for question in first.questions:
        require(bool(question.id) and bool(question.question.strip()), "each question has an id and a text", question)
        require(all(map(str.strip, question.answers)), "no gold answer is empty", question)
    documents = {document.key: document for document in first.documents}
    for document in first.documents:
        require(bool(document.key) and bool(document.text.strip()), "each document has a key and a text", document)
    for question in first.questions if documents else ():
        missing = [key for key in sorted(question.gold) if key not in documents]
        require(not missing, f"the gold documents of {question.id!r} are in the corpus", missing)
        strange = [(key, words) for key, words in question.facts if words not in documents[key].text]
        require(not strange, f"the facts of {question.id!r} stand in their documents", strange)
    turns = Counter(question.turn.dialogue_id for question in first.questions if question.turn is not None)
    require(all(turns), "each dialogue has an id", turns)


def _loaded(given: object) -> Dataset:
    name = given if isinstance(given, str) else register_object(given)
    try:
        if not isinstance(given, str):
            part_of("dataset", name)
        return load_dataset(name)
    except UserError as error:
        raise ContractError(str(error)) from error

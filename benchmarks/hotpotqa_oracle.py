"""How often an ideal judge and reader see all the evidence of a HotpotQA question, and at how many calls.

The judge and the reader know the supporting paragraphs; graph, index and search are the real ones. There are three
judges. The one with the requirement knows which chunks were retrieved together, and scores a gold chunk 2 once all gold
is among them. The literal one knows its chunk alone, so a question of two paragraphs never gets a 2. The batched one
takes all chunks of a query in one call, and says whether they suffice.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import fmean

from langchain_core.documents import Document

from judgetree.app.scripted.answers import parse_prompt
from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset
from judgetree.evaluation.runs.gold import gold_table
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.contract import AnyJudge, Verdict
from judgetree.modules.judge.gold import sub_question
from judgetree.modules.judge.noise import Noise
from judgetree.modules.judge.noisy import NoisySetJudge, noisy_judge
from judgetree.modules.reader.prompts import REFUSAL
from judgetree.modules.retriever.contract import ChunkRetriever
from judgetree.modules.retriever.retriever import Retriever

from .corpus import ask_all
from .hotpotqa import HotpotQA, hotpotqa, without_file
from .measurement import Row

TOPK = 3
DEPTH = 1
NAIVE, NAIVE_TOLERANCE = 0.46, 0.02
LEAST_COMPLETE, MOST_CALLS = 0.92, 6.2
LITERAL_CALLS = 9.6
BATCHED_CALLS = 3.1


@dataclass(frozen=True, kw_only=True)
class Need:
    """A paragraph that a query needs; for a sub-question, any paragraph of that title."""

    title: str
    documents: tuple[CorpusDocument, ...]

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the documents."""
        return frozenset(document.key for document in self.documents)

    def text_in(self, evidence: str) -> str:
        """Return the paragraph if the evidence contains it, else ``""``; expects and returns single blanks."""
        return next((text for each in self.documents if (text := _squash(each.text)) in evidence), "")


Needs = Mapping[str, tuple[Need, ...]]
"""By query."""


def needs_of(dataset: Dataset) -> dict[str, tuple[Need, ...]]:
    """Return the needs of each question, and of each possible sub-question."""
    by_key = {document.key: document for document in dataset.documents}
    titled: defaultdict[str, dict[str, CorpusDocument]] = defaultdict(dict)
    needs = {}
    for question in dataset.questions:
        gold = [by_key[key] for key in question.supporting]
        needs[question.question] = tuple(Need(title=document.title, documents=(document,)) for document in gold)
        for document in gold:
            titled[document.title][document.key] = document
    for title, documents in titled.items():
        needs[sub_question(title)] = (Need(title=title, documents=tuple(documents.values())),)
    return needs


class RememberingRetriever:
    """Searches once per query and remembers the documents found together."""

    def __init__(self, inner: ChunkRetriever, key_field: str) -> None:
        self.key_field = key_field
        self._inner = inner
        self._hits: dict[str, list[tuple[Document, float]]] = {}

    def fingerprint(self) -> dict[str, str]:
        """Return the fingerprint of the inner retriever."""
        return self._inner.fingerprint()

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        """Search as ``ChunkRetriever.asearch``, from memory for a known query."""
        if query not in self._hits:
            self._hits[query] = await self._inner.asearch(query, meter=meter)
        return self._hits[query]

    def retrieved(self, query: str) -> frozenset[str]:
        """Return the keys of the documents found for a query."""
        return frozenset(str(chunk.metadata[self.key_field]) for chunk, _ in self._hits[query])


Seen = Callable[[str, str], AbstractSet[str]]
"""Maps query and key of a chunk to the keys of all chunks that the judge takes into account."""


class GoldJudge:
    """Scores 0 a chunk that is not gold, 2 if all gold is seen, else 1 with a question for a missing paragraph."""

    def __init__(self, needs: Needs, seen: Seen, *, key_field: str) -> None:
        self._needs = needs
        self._seen = seen
        self._key_field = key_field

    def fingerprint(self) -> dict[str, str]:
        """Return the kind; there is one data set."""
        return {"kind": "gold"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Judge a chunk as ``Judge.judge``, without a model call."""
        key, needs = str(chunk.metadata[self._key_field]), self._needs.get(query, ())
        if not any(key in need.keys for need in needs):
            return Verdict(status="judged", score=0)
        seen = self._seen(query, key)
        missing = [need.title for need in needs if not need.keys & seen]
        if not missing:
            return Verdict(status="judged", score=2)
        return Verdict(status="judged", score=1, next_query=sub_question(missing[0]) if expand else "")


class GoldReader:
    """Answers with the paragraphs that the query needs if the evidence contains them all; else refuses."""

    model = "gold"

    def __init__(self, needs: Needs) -> None:
        self._needs = needs

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **_: object) -> Completion:
        """Answer as ``ChatLLM.complete``, at once."""
        meter.reserve()
        prompt = parse_prompt(messages)
        evidence = _squash(prompt.passage)
        found = [need.text_in(evidence) for need in self._needs.get(prompt.query, ())]
        meter.record(kind="chat", model=self.model, started=time.perf_counter())
        answer = " ".join(found) if found and all(found) else REFUSAL
        return Completion(text=answer, thinking="", finish_reason="stop")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Means over the questions."""

    complete: float
    """Share of questions for which the reader saw every gold paragraph."""
    calls: float
    """Judge's and reader's calls a question."""


def figures_of(results: Iterable[RagResult], *, are_booked: bool) -> Figures:
    """Compute the figures; a verdict counts as a call, where judges that make none have not booked it."""
    asked = list(results)
    return Figures(
        complete=fmean(result.status == "answered" for result in asked),
        calls=fmean(result.usage["llm_calls"] + (0 if are_booked else _verdicts(result)) for result in asked),
    )


def _verdicts(result: RagResult) -> int:
    return sum(chunk.verdict == "judged" for chunk in result.tree.chunk_nodes())


def measure_system(
    given: HotpotQA, retriever: RememberingRetriever, *, system: str, judge: AnyJudge | None = None
) -> Figures:
    """Ask one system every question."""
    context = RagContext(
        reader=GoldReader(needs_of(given.dataset)),
        retriever=retriever,
        judge=judge,
        limits=Limits(max_rec_depth=DEPTH),
    )
    with RagSession(system=system, context=context, settings=given.settings) as session:
        results = ask_all(session, [row.question for row in given.dataset.questions])
        return figures_of(results, are_booked=isinstance(judge, NoisySetJudge))


def measure() -> list[Row]:
    """Measure naive RAG, the judge that knows the retrieved set, the literal judge, and the batched one."""
    what = f"HotpotQA, ideal judge and reader, top-k {TOPK}, depth {DEPTH}"
    required = f"≥ {LEAST_COMPLETE:.0%} at ≤ {MOST_CALLS} calls"
    given = hotpotqa()
    if given is None:
        return [without_file(f"{what}: evidence complete, calls a question", required)]
    with given.index() as index:
        searching = Retriever(index, topk=TOPK, search_type="hybrid")
        retriever = RememberingRetriever(searching, given.dataset.key_field)
        needs, key_field = needs_of(given.dataset), retriever.key_field
        knowing = GoldJudge(needs, lambda query, _: retriever.retrieved(query), key_field=key_field)
        naive = measure_system(given, retriever, system="naive")
        together = measure_system(given, retriever, system="judge", judge=knowing)
        alone = GoldJudge(needs, _alone, key_field=key_field)
        literal = measure_system(given, retriever, system="judge", judge=alone)
        batched = measure_batched(given, retriever)
    what = f"{len(given.dataset.questions)} {what}: evidence complete, calls a question"
    return [
        Row(
            f"{what}; naive",
            _text(naive),
            f"about {NAIVE:.0%}",
            holds=abs(naive.complete - NAIVE) <= NAIVE_TOLERANCE,
        ),
        Row(
            f"{what}; judge, 2 once all gold is retrieved",
            _text(together),
            required,
            holds=together.complete >= LEAST_COMPLETE and together.calls <= MOST_CALLS,
        ),
        Row(f"{what}; judge, each chunk by itself", _text(literal), f"about {LITERAL_CALLS} calls"),
        Row(
            f"{what}; judge, all chunks in one call, which stops once they suffice",
            _text(batched),
            f"≥ {LEAST_COMPLETE:.0%} at ≤ {BATCHED_CALLS} calls",
            holds=batched.complete >= LEAST_COMPLETE and batched.calls <= BATCHED_CALLS,
        ),
    ]


def measure_batched(given: HotpotQA, retriever: RememberingRetriever) -> Figures:
    """Measure the ideal judge of sets."""
    judge = noisy_judge(gold_table(given.dataset), Noise(batched=True))
    return measure_system(given, retriever, system="judge", judge=judge)


def _alone(query: str, key: str) -> frozenset[str]:
    return frozenset({key})


def _text(figures: Figures) -> str:
    return f"{figures.complete:.1%} at {figures.calls:.2f} calls"


def _squash(text: str) -> str:
    return " ".join(text.split())

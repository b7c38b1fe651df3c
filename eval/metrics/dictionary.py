"""The columns of a run's ``results.csv`` and of its report: what each means, its unit, and which way is better."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ...modules.caveats.kinds import CAVEATS
from .damage import DAMAGE_MEANINGS

Unit: TypeAlias = Literal["share", "count", "tokens", "seconds", "USD", "score", "text", "true or false"]
"""What a value is: a share is a number from 0 to 1, which tables show in per cent; a score is on a scale of its own."""
Better: TypeAlias = Literal["higher", "lower", ""]

_HOTPOTQA = "hotpot_evaluate_v1.py of HotpotQA, cmrc2018_evaluate.py of CMRC 2018"


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a column holds."""

    meaning: str
    unit: Unit
    better: Better = ""
    """Which values are better; ``""`` where none are."""
    title: str = ""
    """Heading in tables, if not the column's name."""
    source: str = ""
    """Script or paper that it follows; ``""`` if it is judgetree's own."""


def _text(meaning: str) -> Column:
    return Column(meaning=meaning, unit="text")


def _count(meaning: str, better: Better = "", title: str = "") -> Column:
    return Column(meaning=meaning, unit="count", better=better, title=title)


def _share(meaning: str, source: str = "", title: str = "", better: Better = "higher") -> Column:
    return Column(meaning=meaning, unit="share", better=better, source=source, title=title)


COLUMNS: Mapping[str, Column] = {
    # The question and its row
    "system": _text("The system that answered."),
    "question_id": _text("Id of the question in its data set."),
    "repeat": _count("Number of the repeat, from 0."),
    "attempt": _count("Number of the attempt, from 0; earlier ones were asked again."),
    "type": _text("Kind of question, as its data set names it."),
    "hops": _count("Number of facts that the answer needs, as the data set says."),
    "lang": _text("Language of the question (ISO 639-1), which selects the variant of the answer metrics."),
    "cluster": _text("First question of those that it depends on, since they share a fact; itself if it stands alone."),
    "question": _text("The question."),
    "answers": _text("Gold answers, with | between them."),
    "prediction": _text("The system's answer."),
    "status": _text("answered, refused (the answer says that it cannot be given) or failed."),
    "error": _text("Why the question failed."),
    "failure": _text("Why the answer is wrong, as far as the tree shows it (see failures.py)."),
    "completeness": _text("complete, degraded (a fault from outside took something) or failed."),
    "thread_id": _text("Thread of the search tree."),
    "code": _text("Version of judgetree that made the row, as the manifest lists it."),
    # Damage and caveats
    "damage": _text("Damage by kind, in words."),
    **{kind: _count(f"Damage: {meaning}", "lower") for kind, meaning in DAMAGE_MEANINGS.items()},
    "caveats": _text("Replies that are worse than they look, by kind, in words."),
    **{f"caveat_{kind}": _count(f"Calls with this caveat: {each.sentence}", "lower") for kind, each in CAVEATS.items()},
    # Answers
    "em": _share(
        "1 if the answer equals a gold answer, normalised, or rightly refuses; else 0.",
        _HOTPOTQA,
        "EM",
    ),
    "f1": _share("Token F1 against the gold answer that fits best.", _HOTPOTQA, "F1"),
    "precision": _share("Token precision against that gold answer.", _HOTPOTQA),
    "recall": _share("Token recall against that gold answer; of documents see recall@k.", _HOTPOTQA),
    "cover_em": _share("1 if it contains a gold answer as whole tokens, else 0.", "Mallen et al. 2023", "cover EM"),
    "number_match": _share(
        "1 if the answer gives the number of a gold answer, and no other one of its unit or without a unit, else 0; "
        "missing where no gold answer is a number.",
        title="number match",
    ),
    # Retrieval
    "recall@k": _share("Share of the gold documents among the first k documents that the question itself found."),
    "all@k": _share("1 if all gold documents are among the first k, else 0.", title="all supporting @k"),
    "ndcg@k": _share(
        "Discounted gain of the gold documents among the first k, as a share of that of the best order.",
        "Järvelin and Kekäläinen 2002",
        "nDCG@k",
    ),
    "mrr": _share("1 / rank of the first gold document that the question itself found, ranks from 1; 0 without one."),
    "tree_recall": _share("Share of the gold documents that some query of the tree found.", title="recall in the tree"),
    "tree_all": _share(
        "1 if queries of the tree found all gold documents, else 0.", title="all supporting in the tree"
    ),
    "evidence": _share(
        "1 if readers saw all gold documents on the way to the answer, else 0: in the evidence, or in that of a "
        "sub-question whose answer was handed on.",
        title="evidence complete",
    ),
    "support_precision": _share(
        "Share of gold documents among those that readers saw on the way to the answer.", _HOTPOTQA
    ),
    "support_recall": _share("Share of the gold documents that readers saw on the way to the answer.", _HOTPOTQA),
    "support_f1": _share(
        "F1 of support_precision and support_recall: HotpotQA's supporting facts, with documents for sentences.",
        _HOTPOTQA,
        "supporting F1",
    ),
    "joint_f1": _share(
        "F1 of the products of precision and of recall of answer and supporting documents.", _HOTPOTQA, "joint F1"
    ),
    "answer_in_context": _share(
        "1 if a gold answer stands in the evidence that the reader saw, else 0.",
        "Chen et al. 2017",
        "answer in the context",
    ),
    "redundancy": _share(
        "Mean similarity, by words, of each passage that was read to the one most like it.", better="lower"
    ),
    # The tree
    "sub_runs": _count("Queries below the question.", title="sub-runs"),
    "depth": _count("Level of the deepest query, or last round that found a new chunk; the question's is 0."),
    "chunks": _count("Chunks that all queries found, one counted for each query."),
    "duplicate_chunks": _count("Chunks that another query of the tree had found already."),
    "verdicts_2": _count("Chunks judged to answer their query alone."),
    "verdicts_1": _count("Chunks judged to hold a needed fact."),
    "verdicts_0": _count("Chunks judged useless."),
    "unknown_verdicts": _count("Chunks on which the judge failed."),
    "cancelled_verdicts": _count("Chunks not judged, since the budget was spent."),
    "pending_verdicts": _count("Chunks not judged; all in a system without a judge."),
    "refused_sub_answers": _count("Queries below the question that were answered with a refusal."),
    "shared_questions": _count("Sub-questions that took the answer of an equal one.", title="questions shared"),
    "saved_sub_runs": _count("Sub-runs that sharing saved.", title="sub-runs saved"),
    "saved_llm_calls": _count("Calls of chat models that sharing saved.", title="calls saved"),
    # Cost: as if no call had come out of the cache and, as paid_…, as it was paid
    "llm_calls": _count("Calls of chat models, as if the cache were empty.", "lower", "calls"),
    "cached_llm_calls": _count("Of these, those that the cache answered."),
    "estimated_llm_calls": _count("Of these, those whose tokens are estimates."),
    "prompt_tokens": Column(
        meaning="Prompt tokens of these calls.", unit="tokens", better="lower", title="prompt tokens"
    ),
    "completion_tokens": Column(
        meaning="Completion tokens of these calls, thinking included.",
        unit="tokens",
        better="lower",
        title="completion tokens",
    ),
    "cost_usd": Column(
        meaning="Cost of all calls by the price list; missing if a part is unknown.",
        unit="USD",
        better="lower",
        title="cost",
    ),
    "cost_known_usd": Column(meaning="The known part of that cost.", unit="USD", better="lower"),
    "seconds": Column(meaning="Wall time, with the recorded time of cached calls.", unit="seconds", better="lower"),
    # Conversations
    "dialogue_id": _text("The dialogue."),
    "turn": _count("Number of the turn in it, from 1."),
    "path_length": _count("Turns on its path, this one included."),
    "follow_up": Column(meaning="Whether it follows another turn.", unit="true or false"),
    "topic_switch": Column(meaning="Whether it changes the topic, as the data set says.", unit="true or false"),
    "human_rewrite": _text("Its stand-alone form by a human."),
    "conversation": _text("The conversation that it was asked in."),
    "rag_thread_id": _text("Thread of its search tree."),
    "standalone_query": _text("Its stand-alone form by the system."),
    "answered_from": _text("search or history."),
    "reused_chunks": _count("Chunks of earlier turns that it kept."),
    "own_calls": _count("Paid calls of the conversation itself, such as the rewrite.", "lower"),
    "own_cached_calls": _count("Further ones that the cache answered."),
    "own_tokens": Column(meaning="Tokens of the conversation's own calls.", unit="tokens", better="lower"),
    "rewrite_rouge1_recall": _share("ROUGE-1 recall of the rewrite against the human one.", "Lin 2004"),
    "rewrite_exact": _share("1 if both have the same words in the same order, else 0."),
    "needed_precision": _share("Precision of the earlier turns that the system took as needed."),
    "needed_recall": _share("Recall of the earlier turns that the system took as needed."),
    "needed_f1": _share("F1 of the earlier turns that the system took as needed."),
    "reuses": _share("1 if a follow-up reused chunks or an answer of earlier turns, else 0.", better=""),
    "reuses_wrongly": _share(
        "1 if history gave a wrong answer, or a chunk outlived its topic; else 0.", better="lower"
    ),
    "turn_calls": _count("Chat calls of the turn, as if the cache were empty.", "lower"),
    "turn_tokens": Column(meaning="Tokens of these calls.", unit="tokens", better="lower"),
    "FORM_recall@k": _share("recall@k of the turn in one form: raw, joined, rewrite (by the system) or human."),
    "FORM_all@k": _share("all@k of the turn in that form."),
    # Further scores
    "ragas_METRIC": Column(
        meaning="Score of a metric of RAGAS, which `judgetree eval ragas` computes.",
        unit="score",
        better="higher",
        source="ragas",
    ),
    "ragas_METRIC_missing": _text("Why that score is missing."),
    "ragas_METRIC_by": _text("Model and version of RAGAS behind it."),
    "score_NAME": Column(meaning="Score of a metric of one's own.", unit="score", better="higher"),
    "score_NAME_missing": _text("Why that score is missing."),
    "score_NAME_by": _text("What scored it."),
}
"""By name; ``k``, ``FORM``, ``METRIC`` and ``NAME`` stand for what differs. The name of a cost behind ``paid_`` is that
cost as it was paid, without the calls that the cache answered."""

_VARIANTS = (
    (re.compile(r"(?:raw|joined|rewrite|human)_(recall|all)@\d+"), r"FORM_\1@k"),
    (re.compile(r"(recall|all|ndcg)@\d+"), r"\1@k"),
    (re.compile(r"(ragas)_.+?(_missing|_by)?"), r"\1_METRIC\2"),
    (re.compile(r"(score)_.+?(_missing|_by)?"), r"\1_NAME\2"),
)


PAID = "paid_"


_PAID_MEANINGS = {
    "llm_calls": "Calls of chat models that were paid: cached ones left out.",
    "prompt_tokens": "Prompt tokens of the calls that were paid: cached ones left out.",
    "completion_tokens": "Completion tokens of the calls that were paid, thinking included: cached ones left out.",
    "cost_usd": "Cost that was paid, cached calls left out, by the price list; missing if a part is unknown.",
    "cost_known_usd": "The known part of the cost that was paid, cached calls left out.",
    "seconds": "Wall time of this run, in which cached calls took next to none.",
}


def _as_paid(name: str) -> Column | None:
    if name not in _PAID_MEANINGS:
        return None
    column = COLUMNS[name]
    return replace(column, meaning=_PAID_MEANINGS[name], title=f"{column.title or column.unit} paid")


def all_columns() -> dict[str, Column]:
    """Return all columns by name, those of what was paid included.

    >>> all_columns()["paid_llm_calls"].title
    'calls paid'
    """
    return {**COLUMNS, **{f"{PAID}{name}": found for name in _PAID_MEANINGS if (found := _as_paid(name))}}


def column_of(name: str) -> Column | None:
    """Return what a column holds, such as ``recall@3`` or ``paid_seconds``; None for an unknown one.

    >>> column_of("recall@3").unit
    'share'
    """
    if name in COLUMNS:
        return COLUMNS[name]
    if name.startswith(PAID):
        return _as_paid(name.removeprefix(PAID))
    for pattern, known in _VARIANTS:
        if (found := pattern.fullmatch(name)) is not None:
            return COLUMNS[found.expand(known)]
    return None

"""What trees teach: verdicts, supplementary questions, answers from evidence, preferences between branches."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...graphs.tree.nodes import ChunkNode, QueryNode, walk_chunks
from ...modules.calls.messages import Message
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompt, Prompts
from ...modules.judge.contract import Score
from ...modules.judge.prompts import alone_messages, judge_messages, needed_messages, sub_question_messages
from ...modules.reader.evidence import as_material
from ...modules.reader.prompts import REFUSAL, reader_messages
from ..datasets.questions import JsonScalar
from ..metrics.answers import score_answer
from .examples import Example, LeftOut, Origin
from .gold import GoldBranch, GoldTree

What = Literal["judge", "sub_question", "reader", "preference"]
Found = Iterator[Example | LeftOut]
"""Examples, and the reasons of what gives none."""

NEXT_QUESTION = Prompt(
    name="next_question",
    about="training data: which question is asked next, where several passages could ask; the reply is the question",
    system="""\
A query needs several facts. The passages give some of them. Write the one short question that should be asked next, for
a fact that is still missing. It must be understood without the passages: name things as the passages name them, use no
pronoun, and do not repeat the query. Write in the language of the query. Reply with the question only.""",
    user="Query: {query}\n\nPassages:\n{passages}",
)
"""Prompt of preferences between branches of different passages; no system sends it."""


@dataclass(frozen=True, kw_only=True)
class ExampleSource:
    """What all examples of a run share."""

    run: str
    split: str
    judge_kind: str
    """Kind of the run's judge; "logprob" is taught by its yes-or-no prompts, others by the verdict as JSON."""
    prompts: Prompts = DEFAULT_PROMPTS

    def origin(self, gold: GoldTree, node: QueryNode, chunk: ChunkNode | None, known_by: str) -> Origin:
        """Return where an example of a query, or of one of its chunks, comes from."""
        return Origin(
            run=self.run,
            thread=gold.row.thread_id,
            node=node.thread_id,
            chunk="" if chunk is None else chunk.chunk_id,
            system=gold.row.system,
            question_id=gold.row.question_id,
            split=self.split,
            gold=known_by,
        )


def judge_examples(gold: GoldTree, teaching: ExampleSource) -> Found:
    """Yield a verdict on each chunk whose right score is known.

    A verdict of 1 has the supplementary question of the run, if that led to gold. The judge's reason stays where its
    score was right.
    """
    led_on: dict[tuple[str, str], str] = {}
    for branch in gold.branches():
        if branch.found_gold:
            led_on.setdefault((branch.node.thread_id, branch.chunk.chunk_id), branch.query)
    for node, chunk in walk_chunks(gold.tree.root):
        known = gold.score_of(node, chunk)
        if known is None:
            yield "gold unknown"
            continue
        score, known_by = known
        fields: dict[str, JsonScalar] = {
            "query": node.query,
            "passage": chunk.text,
            "score": score,
            "verdict": chunk.verdict_label,
            "p_needed": chunk.p_needed,
        }
        origin = teaching.origin(gold, node, chunk, known_by)
        if teaching.judge_kind == "logprob":
            yield from _yes_or_no(fields, score, origin, teaching.prompts)
            continue
        next_query = led_on.get((node.thread_id, chunk.chunk_id), "") if score == 1 else ""
        if score == 1 and not next_query:
            yield "no sub-question that led to gold"
        else:
            verdict = {
                "reason": chunk.reason if chunk.score == score else "",
                "score": score,
                "next_query": next_query,
            }
            yield Example(
                prompt=judge_messages(node.query, chunk.text, teaching.prompts),
                reply=json.dumps(verdict, ensure_ascii=False),
                fields=fields,
                origin=origin,
            )


def _yes_or_no(fields: Mapping[str, JsonScalar], score: Score, origin: Origin, prompts: Prompts) -> Iterator[Example]:
    query, passage = str(fields["query"]), str(fields["passage"])
    asked: list[tuple[str, list[Message], bool]] = [("needed", needed_messages(query, passage, prompts), score > 0)]
    if score > 0:
        asked.append(("alone", alone_messages(query, passage, prompts), score == 2))
    for name, prompt, is_yes in asked:
        reply = "yes" if is_yes else "no"
        yield Example(prompt=prompt, reply=reply, fields={**fields, "asked": name}, origin=origin)


def sub_question_examples(gold: GoldTree, teaching: ExampleSource) -> Found:
    """Yield each supplementary question whose search found gold that was not there yet."""
    for branch in gold.branches():
        if branch.found_gold is None:
            yield "gold unknown"
        elif not branch.found_gold:
            yield "did not lead to gold"
        else:
            yield Example(
                prompt=sub_question_messages(branch.node.query, branch.chunk.text, teaching.prompts),
                reply=branch.query,
                fields={"query": branch.node.query, "passage": branch.chunk.text, "sub_question": branch.query},
                origin=teaching.origin(gold, branch.node, branch.chunk, _known_by(gold)),
            )


def reader_examples(gold: GoldTree, teaching: ExampleSource) -> Found:
    """Yield the evidence of the answer with the gold answer, or with the refusal of an unanswerable question.

    The evidence must hold all supporting facts. Where the data set names none, the reader's own answer must have been
    right.
    """
    node, question = gold.tree.root, gold.question
    if not node.evidence.strip():
        yield "no evidence"
        return
    if not question.answers_known:
        yield "no gold answer"
        return
    if question.answers and question.supporting:
        is_complete = gold.shown_gold() >= set(question.supporting)
    else:
        is_right = question.answers and score_answer(question, gold.row.prediction, refused=False).em
        is_complete = bool(is_right or not question.answers)
    if not is_complete:
        yield "evidence incomplete"
        return
    yield Example(
        prompt=reader_messages(node.query, node.evidence, teaching.prompts),
        reply=question.answers[0] if question.answers else REFUSAL,
        fields={"query": node.query, "evidence": node.evidence},
        origin=teaching.origin(gold, node, None, "answer"),
    )


def preference_examples(golds: Sequence[GoldTree], teaching: ExampleSource) -> Found:
    """Yield pairs of supplementary questions of one query: one that led to gold before one that did not.

    Questions of the same passage, in all trees of a question, stand behind the prompt that asks for one. Those of
    different passages, in one tree, stand behind a prompt that shows all passages of the query.
    """
    branches = [(gold, branch) for gold in golds for branch in gold.branches()]
    for (gold, better), (other, worse) in itertools.permutations(branches, 2):
        is_same = (better.node.query, better.chunk.text) == (worse.node.query, worse.chunk.text)
        is_beside = gold is other and better.node is worse.node
        if (is_same or is_beside) and better.found_gold and worse.found_gold is False and better.query != worse.query:
            yield _preference(gold, better, worse, teaching, is_same=is_same)


def _preference(
    gold: GoldTree, better: GoldBranch, worse: GoldBranch, teaching: ExampleSource, *, is_same: bool
) -> Example:
    node = better.node
    if is_same:
        prompt = sub_question_messages(node.query, better.chunk.text, teaching.prompts)
    else:
        passages = "\n\n".join(f"[{at}] {as_material(chunk.text)}" for at, chunk in enumerate(node.chunks, start=1))
        prompt = NEXT_QUESTION.messages(query=node.query, passages=passages)
    return Example(
        prompt=prompt,
        reply=better.query,
        rejected=worse.query,
        fields={
            "query": node.query,
            "chosen_passage": better.chunk.text,
            "rejected_passage": worse.chunk.text,
            "same_passage": is_same,
        },
        origin=teaching.origin(gold, node, better.chunk, _known_by(gold)),
    )


def _known_by(gold: GoldTree) -> str:
    return "supporting" if gold.question.supporting else "label"


def _of_each(
    of_one: Callable[[GoldTree, ExampleSource], Found],
) -> Callable[[Sequence[GoldTree], ExampleSource], Found]:
    return lambda golds, teaching: itertools.chain.from_iterable(of_one(gold, teaching) for gold in golds)


KINDS: Mapping[What, Callable[[Sequence[GoldTree], ExampleSource], Found]] = {
    "judge": _of_each(judge_examples),
    "sub_question": _of_each(sub_question_examples),
    "reader": _of_each(reader_examples),
    "preference": preference_examples,
}
"""By name; each takes the trees of one question."""

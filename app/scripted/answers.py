"""Answers of the scripted model, derived from the gold facts of a question file.

The scripted model knows every question of the file, the single-hop question of each fact, and each question that
remains after the first facts. For these it judges, asks and reads like an ideal model; other questions it does not
know. Replies are pure functions of the prompt, without network.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, get_args

from ...evaluation.datasets.standards_qa import Question, SupportingFact, gold_of, known_questions
from ...evaluation.scoring.prompts import correctness_messages
from ...modules.calls.messages import Message
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ...modules.extraction.prompts import triples_messages
from ...modules.judge.oracle import GoldFact, oracle_verdict
from ...modules.judge.prompts import (
    ASK_AGAIN,
    BATCH,
    alone_messages,
    judge_messages,
    look_up_messages,
    needed_messages,
    sub_question_messages,
)
from ...modules.memory.prompts import UNDERSTOOD
from ...modules.reader.prompts import REFUSAL, closed_book_messages, reader_messages
from .ragas import correctness_reply, is_ragas, ragas_reply
from .templates import QUERY, Template, find_script, scripts_for, template_of
from .triples import triples_reply

PromptKind = Literal[
    "judge",
    "batch",
    "needed",
    "alone",
    "sub_question",
    "look_up",
    "ask_again",
    "read",
    "closed_book",
    "correctness",
    "triples",
    "ragas",
    "other",
]
RequestKind = Literal[PromptKind, "embeddings", "rerank"]
REQUEST_KINDS: tuple[RequestKind, ...] = (*get_args(PromptKind), "embeddings", "rerank")

P_YES_WHEN_TRUE = 0.9
P_YES_WHEN_FALSE = 0.05
_NUMBERED = re.compile(r"^\[(\d+)\]\n", re.MULTILINE)
_LONGEST_LABEL = 80
"""Most characters between a resolved sub-question and its answer ("Answer:", a bullet, a score)."""


@dataclass(frozen=True, kw_only=True)
class ParsedPrompt:
    """A parsed chat request. Every field but ``kind`` may be empty."""

    kind: PromptKind
    query: str = ""
    passage: str = ""
    """The passage to judge; for ``batch`` all passages, for ``read`` the evidence, for ``correctness`` the answer, for
    ``ragas`` all of it."""
    gold: str = ""
    """Gold answers, a line each."""
    tried: str = ""
    """Sub-questions asked already, a line each."""


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """A reply of the model. A ``status`` other than 200 makes it an error response with ``text`` as its message."""

    text: str = ""
    p_yes: float | None = None
    """Probability of yes, in [0, 1], for the log probabilities of a yes/no reply; None for any other reply."""
    finish_reason: Literal["stop", "length", "content_filter"] = "stop"
    reasoning: str = ""
    """Text sent as ``reasoning_content``, as servers with a reasoning parser do."""
    status: int = 200
    counts_tokens: bool = True
    """False for an endpoint that reports no usage."""
    refusal: str = ""
    """Reason of a model that declines to answer, sent beside the text."""
    context_tokens: int | None = None
    """Context of a server that reports, and reads, no more of a prompt; None for one that reads all."""


_PASSAGE, _GOLD, _TRIED = "FIELDpassageFIELD", "FIELDgoldFIELD", "FIELDtriedFIELD"
# The query matches as little as possible, the passage as much as possible.
_GROUPS = {QUERY: "(?P<query>.*?)", _PASSAGE: "(?P<passage>.*)", _GOLD: "(?P<gold>.*?)", _TRIED: "(?P<tried>.*?)"}
_BUILDERS = "judgetree.modules.judge.prompts or judgetree.modules.reader.prompts"


@cache
def _kinds(prompts: Prompts) -> list[tuple[Template, PromptKind]]:
    built: tuple[tuple[PromptKind, list[Message]], ...] = (
        ("judge", judge_messages(QUERY, _PASSAGE, prompts)),
        ("batch", prompts.messages(BATCH, query=QUERY, passages=_PASSAGE)),
        ("needed", needed_messages(QUERY, _PASSAGE, prompts)),
        ("alone", alone_messages(QUERY, _PASSAGE, prompts)),
        ("sub_question", sub_question_messages(QUERY, _PASSAGE, prompts)),
        ("look_up", look_up_messages(QUERY, _PASSAGE, prompts)),
        ("ask_again", prompts.messages(ASK_AGAIN, query=QUERY, passage=_PASSAGE, tried=_TRIED)),
        ("read", reader_messages(QUERY, _PASSAGE, prompts)),
        ("closed_book", closed_book_messages(QUERY, prompts)),
        ("correctness", correctness_messages(QUERY, (_GOLD,), _PASSAGE)),
        ("triples", triples_messages(_PASSAGE, prompts)),
    )
    return [(template_of(messages, _GROUPS, built_by=_BUILDERS), kind) for kind, messages in built]


def parse_prompt(messages: Sequence[Message], prompts: Prompts = DEFAULT_PROMPTS) -> ParsedPrompt:
    """Recognise a request by its system message, and its examples, and parse the user message below them.

    A query with a blank line followed by ``Passage:`` is ambiguous and cut there.

    Returns:
        A prompt of kind ``other`` without fields for an unknown system message.

    Raises:
        PromptMismatch: The system message is judgetree's, but the user message does not follow its template.
    """
    if found := find_script(scripts_for(_kinds, prompts), messages):
        kind, fields = found
        return ParsedPrompt(kind=kind, **fields)
    user = next((text for role, text in messages if role == "user"), "")
    return ParsedPrompt(kind="ragas", passage=user) if is_ragas(user) else ParsedPrompt(kind="other")


@dataclass(frozen=True, kw_only=True)
class _Known:
    """Answer and facts of a question; ``facts`` is empty if nothing answers it."""

    answer: str
    facts: tuple[SupportingFact, ...]

    @cached_property
    def _quotes(self) -> tuple[str, ...]:
        return tuple(_squash(fact.quote) for fact in self.facts)

    @cached_property
    def _gold(self) -> tuple[GoldFact, ...]:
        return gold_of(self.facts)

    def judge(self, passage: str) -> tuple[int, str]:
        """Score a passage; also returns the next question for a score of 1."""
        verdict = oracle_verdict(self._gold, passage)
        return verdict.score or 0, verdict.next_query

    def is_answered_by(self, evidence: str) -> bool:
        """Return whether the evidence contains each fact: quoted, or resolved by a sub-question."""
        return bool(self.facts) and not self.missing_in(evidence)

    def missing_in(self, evidence: str) -> list[SupportingFact]:
        """List the facts missing from the evidence, in hop order."""
        return [
            fact
            for hop, fact in enumerate(self.facts)
            if not (
                self._quotes[hop] in evidence
                or _resolved(fact.question, fact.answer, evidence)
                # The evidence may answer a question that remained after an earlier hop.
                or any(_resolved(before.remaining_question, self.answer, evidence) for before in self.facts[:hop])
            )
        ]

    def facts_in(self, evidence: str) -> list[SupportingFact]:
        """List the facts in the evidence, in hop order."""
        missing = self.missing_in(evidence)
        return [fact for fact in self.facts if fact not in missing]


def _squash(text: str) -> str:
    return " ".join(text.split())


def _key(question: str) -> str:
    """Normalise a question for lookup; below the user's words, its stand-alone form counts."""
    return _squash(question.rpartition(f"\n{UNDERSTOOD}")[2]).casefold()


def _resolved(question: str, answer: str, evidence: str) -> bool:
    """Return whether the evidence contains the question with its answer right behind it.

    The answer alone is not enough: both passages of a chain name its bridge.
    """
    question, answer = _squash(question), _squash(answer)
    if not question or not answer:
        return False
    at = evidence.find(question)
    while at >= 0:
        end = at + len(question)
        if answer in evidence[end : end + _LONGEST_LABEL + len(answer)]:
            return True
        at = evidence.find(question, end)
    return False


class ScriptedAnswers:
    """An ideal judge and reader for the questions of one file. Replies are pure functions of the prompt.

    Args:
        questions: The known questions. If two rows ask the same, the facts of either are enough.
    """

    def __init__(self, questions: Iterable[Question] = ()) -> None:
        known: defaultdict[str, list[_Known]] = defaultdict(list)
        for row in questions:
            for found in known_questions(row):
                question = _Known(answer=found.answer, facts=found.facts)
                if question not in known[_key(found.question)]:
                    known[_key(found.question)].append(question)
                for fact in question.facts:
                    left = tuple(each for each in question.facts if each != fact)
                    known[_key(f"{found.question} ({fact.answer})")].append(_Known(answer=found.answer, facts=left))
        self._known = dict(known)

    def judge(self, query: str, passage: str) -> tuple[int, str]:
        """Score a passage (2 alone, 1 a needed fact, 0 useless); also returns the next question for a 1, else ``""``.

        Quotes match up to white space. Unknown queries score 0.
        """
        squashed = _squash(passage)
        verdicts = [known.judge(squashed) for known in self._known.get(_key(query), ())]
        return max(verdicts, key=lambda verdict: verdict[0], default=(0, ""))

    def judge_batch(self, query: str, passages: str) -> dict[str, object]:
        """Score numbered passages as ``judge`` does; the first useful one asks for what they lack together."""
        numbered = _NUMBERED.split(passages)
        by_number = dict(zip(map(int, numbered[1::2]), numbered[2::2], strict=True))
        scores = {number: self.judge(query, passage)[0] for number, passage in by_number.items()}
        together, next_query = self.judge(query, passages)
        asking = next((number for number, score in scores.items() if score == 1), None) if together == 1 else None
        entries = [
            {
                "passage": number,
                "score": score,
                "percent": round(100 * (P_YES_WHEN_TRUE if score else P_YES_WHEN_FALSE)),
                "next_query": next_query if number == asking else "",
            }
            for number, score in scores.items()
        ]
        return {"reason": _REASONS[together], "suffices": together == 2, "passages": entries}

    def name_in(self, query: str, passage: str) -> str:
        """Return the answer of the first needed fact in the passage; ``""`` if it has none."""
        return next((answer for _, answer in self.facts_in(query, passage)), "")

    def read(self, query: str, evidence: str) -> str:
        """Return the gold answer if the evidence contains every needed fact, else the refusal."""
        squashed = _squash(evidence)
        for known in self._known.get(_key(query), ()):
            if known.is_answered_by(squashed):
                return known.answer
        return REFUSAL

    def facts_in(self, query: str, evidence: str) -> list[tuple[str, str]]:
        """Return (question, answer) of each needed fact in the evidence, in hop order."""
        squashed = _squash(evidence)
        held = [known.facts_in(squashed) for known in self._known.get(_key(query), ())]
        return [(fact.question, fact.answer) for fact in max(held, key=len, default=[])]

    def quotes_in(self, query: str, passage: str) -> list[str]:
        """Return the quotes of the needed facts that a passage holds, in hop order."""
        squashed = _squash(passage)
        held = [known.facts_in(squashed) for known in self._known.get(_key(query), ())]
        return [fact.quote for fact in max(held, key=len, default=[])]

    def follow_up(self, query: str, evidence: str) -> str:
        """Return the question of the first missing fact; ``""`` if none is missing, or for an unknown query."""
        known = next(iter(self._known.get(_key(query), ())), None)
        return next((fact.question for fact in known.missing_in(_squash(evidence))), "") if known else ""

    def recall(self, query: str) -> str:
        """Return the gold answer without evidence; the refusal for an unknown or unanswerable question."""
        return next((known.answer for known in self._known.get(_key(query), ()) if known.facts), REFUSAL)

    def reply(self, prompt: ParsedPrompt, *, knows_by_heart: bool = False) -> ChatReply:
        """Reply to any prompt; ``knows_by_heart`` answers closed-book questions."""
        if prompt.kind == "read":
            return ChatReply(text=self.read(prompt.query, prompt.passage))
        if prompt.kind == "closed_book":
            return ChatReply(text=self.recall(prompt.query) if knows_by_heart else REFUSAL)
        if prompt.kind == "correctness":
            return ChatReply(text=correctness_reply(prompt.gold, prompt.passage))
        if prompt.kind == "triples":
            facts = dict.fromkeys(fact for known in self._known.values() for each in known for fact in each.facts)
            return ChatReply(text=triples_reply(facts, prompt.passage))
        if prompt.kind == "ragas":
            return ChatReply(text=ragas_reply(prompt.passage))
        return ChatReply(text=REFUSAL) if prompt.kind == "other" else self._reply_as_judge(prompt)

    def _reply_as_judge(self, prompt: ParsedPrompt) -> ChatReply:
        if prompt.kind == "look_up":
            return ChatReply(text=self.name_in(prompt.query, prompt.passage))
        if prompt.kind == "batch":
            return ChatReply(text=json.dumps(self.judge_batch(prompt.query, prompt.passage), ensure_ascii=False))
        score, next_query = self.judge(prompt.query, prompt.passage)
        if prompt.kind == "sub_question":
            return ChatReply(text=next_query)
        if prompt.kind == "ask_again":
            return ChatReply(text=next_query if next_query not in prompt.tried else f"Once more: {next_query}")
        if prompt.kind == "judge":
            verdict = {"reason": _REASONS[score], "score": score, "next_query": next_query}
            return ChatReply(text=json.dumps(verdict, ensure_ascii=False))
        said_yes = score >= (1 if prompt.kind == "needed" else 2)
        return ChatReply(text="yes" if said_yes else "no", p_yes=P_YES_WHEN_TRUE if said_yes else P_YES_WHEN_FALSE)


EvidenceReply = Callable[[ScriptedAnswers, str, str], str]
"""Reply to a prompt, from the model's knowledge, the query and the evidence."""


def evidence_reply(
    scripts: Sequence[tuple[Template, EvidenceReply]], answers: ScriptedAnswers, messages: Sequence[Message]
) -> ChatReply | None:
    """Reply to a prompt that shows evidence; None without a script.

    Raises:
        PromptMismatch: The system message has a script, but the user message does not follow its template.
    """
    found = find_script(scripts, messages)
    if found is None:
        return None
    script, fields = found
    evidence = "\n\n".join(filter(None, (fields.get("known", ""), fields.get("evidence", ""))))
    return ChatReply(text=script(answers, fields["query"], evidence))


_REASONS = (
    "The passage holds none of the facts that are needed.",
    "The passage holds a needed fact; another one is missing.",
    "The passage holds every fact that is needed.",
)

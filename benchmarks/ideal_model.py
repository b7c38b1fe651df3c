"""A chat model that reads and thinks like an ideal one, for comparisons of systems with ideal parts.

It knows the gold documents of the data set that ``IDEAL_DATASET`` names, such as ``hotpotqa:dev.json``. It
answers a question once the evidence has the text of all of them, and a sub-question (``gold.sub_question``) with the
documents that it asks for; a thought asks for the next one that is missing, if any is there. ``IDEAL_WRITER=.5`` makes
half of the thoughts ask for another document, as the writer of ``noisy:writer=.5`` does. ``--llm
benchmarks.ideal_model:IdealModel`` takes it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping, Sequence

from judgetree.app.scripted.answers import EvidenceReply, ParsedPrompt, parse_prompt
from judgetree.app.scripted.multistep import step_scripts
from judgetree.app.scripted.templates import find_script
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.runs.gold import gold_table
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.prompts import DEFAULT_PROMPTS
from judgetree.modules.calls.tokens import message_tokens, text_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.digests import json_digest
from judgetree.modules.judge.gold import GoldTable, Need
from judgetree.modules.judge.noise import Noise
from judgetree.modules.reader.prompts import REFUSAL

DATASET = "IDEAL_DATASET"
"""The environment variable that names the data set, as ``--dataset`` does."""
WRITER = "IDEAL_WRITER"
"""That with the probability that a thought asks for what is missing; 1."""


class IdealModel:
    """Answers at once, with estimated tokens."""

    model = "ideal"

    def __init__(self) -> None:
        self._writer = float(os.environ.get(WRITER, "1"))
        self._answers = _known(os.environ[DATASET], self._writer)

    def fingerprint(self) -> dict[str, str]:
        """Return the digest of what it knows, and how often its questions are right."""
        return {"gold": self._answers.digest, "writer": str(self._writer)}

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **_: object) -> Completion:
        """Answer as ``ChatLLM.complete``."""
        meter.reserve()
        started = time.perf_counter()
        text = self._reply(messages)
        tokens = {"prompt_tokens": message_tokens(messages), "completion_tokens": text_tokens(text)}
        meter.record(kind="chat", model=self.model, started=started, **tokens)
        return Completion(text=text, thinking="", finish_reason="stop")

    def _reply(self, messages: Sequence[Message]) -> str:
        found: tuple[EvidenceReply, dict[str, str]] | None = find_script(step_scripts(DEFAULT_PROMPTS), messages)
        if found is not None:
            reply, fields = found
            return reply(self._answers, fields["query"], fields["evidence"])  # type: ignore[arg-type]
        prompt: ParsedPrompt = parse_prompt(messages)
        return self._answers.read(prompt.query, prompt.passage) if prompt.kind == "read" else REFUSAL


class IdealAnswers:
    """What an ideal reader says, as ``ScriptedAnswers`` does for question files of judgetree's own."""

    def __init__(
        self, table: GoldTable, answers: Mapping[str, str], texts: Mapping[str, str], noise: Noise | None = None
    ) -> None:
        """``answers`` are by question, ``texts`` by the key of their document; ``noise`` draws its questions."""
        self._noise = noise or Noise()
        self.digest = table.digest
        self._table = table
        self._answers = answers
        self._texts = {key: _squashed(text) for key, text in texts.items()}

    def read(self, query: str, evidence: str) -> str:
        """Return the answer if the evidence holds all that the query needs, else a refusal."""
        held = self._held(query, evidence)
        found = [next((self._texts[key] for key in need.keys & held.keys()), "") for need in self._needs(query)]
        if not found or not all(found):
            return REFUSAL
        return self._answers.get(query) or " ".join(found)

    def judge(self, query: str, evidence: str) -> tuple[int, str]:
        """Return 2 if the evidence holds all that the query needs, else 1 with the question for the next part, or 0."""
        held = self._held(query, evidence)
        missing = self._table.missing(query, held.keys())
        if not held:
            return 0, ""
        return (1, self._asked(query, evidence, missing)) if missing else (2, "")

    def follow_up(self, query: str, answered: str) -> str:
        """Return the question for the next part that is missing; ``""`` if none is."""
        missing = self._table.missing(query, self._held(query, answered).keys())
        return self._asked(query, answered, missing) if missing else ""

    def _asked(self, query: str, evidence: str, missing: Sequence[str]) -> str:
        wrong = self._table.others(query, evidence)
        return self._noise.question(query, json_digest([evidence]).hex(), 1, right=missing, wrong=wrong) or missing[0]

    def _needs(self, query: str) -> Sequence[Need]:
        return self._table.needs(query)

    def _held(self, query: str, evidence: str) -> dict[str, None]:
        seen = _squashed(evidence)
        keys = (key for need in self._needs(query) for key in sorted(need.keys))
        return dict.fromkeys(key for key in keys if self._texts[key] in seen)


@functools.cache
def _known(spec: str, writer: float) -> IdealAnswers:
    dataset = load_dataset(spec)
    return IdealAnswers(
        gold_table(dataset),
        {each.question: each.answers[0] for each in dataset.questions if each.answers},
        {document.key: document.text for document in dataset.documents},
        Noise(writer=writer),
    )


def _squashed(text: str) -> str:
    return " ".join(text.split())

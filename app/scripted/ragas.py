"""The scripted model as a judge of answers, for RAGAS and ``llm_correctness``, whose replies come from comparing texts.

A statement is a sentence; a text supports it if it contains it, up to case and white space. No network, no state, and
no import of RAGAS. The kind of a prompt is the reply schema that it asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from ...modules.reader.refusals import is_refusal

_INPUT = "\n\nNow perform the same with the following input\ninput: "
_OUTPUT = "\nOutput: "
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")

Fields = Mapping[str, object]


def is_ragas(user_message: str) -> bool:
    """Return whether a message is a prompt of RAGAS."""
    return _INPUT in user_message and user_message.endswith(_OUTPUT)


def ragas_reply(user_message: str) -> str:
    """Reply to a prompt of RAGAS, as JSON in its schema; ``"{}"`` to an unknown prompt."""
    given = json.loads(user_message.rpartition(_INPUT)[2].removesuffix(_OUTPUT))
    # In the schema the titles of the parts come first, its own title last.
    titles = re.findall(r'"title": "(\w+)", "type": "object"', user_message.partition("\n\n")[0])
    reply = _REPLIES.get(titles[-1] if titles else "")
    return json.dumps(reply(given) if reply else {}, ensure_ascii=False)


def correctness_reply(gold: str, answer: str) -> str:
    """Find an answer correct that contains one of the gold answers, a line each, as JSON."""
    correct = any(_holds(answer, line.removeprefix("- ")) for line in gold.splitlines())
    return json.dumps({"reason": "scripted", "correct": int(correct)})


def _statements(given: Fields) -> Fields:
    return {"statements": _sentences(given["answer"])}


def _claims(given: Fields) -> Fields:
    return {"claims": _sentences(given["response"])}


def _verdicts(given: Fields) -> Fields:
    return {"statements": [_judged(text, given["context"], "verdict") for text in _texts(given["statements"])]}


def _attributions(given: Fields) -> Fields:
    found = [_judged(text, given["context"], "attributed") for text in _sentences(given["answer"])]
    return {"classifications": found}


def _usefulness(given: Fields) -> Fields:
    return {"reason": "scripted", "verdict": int(_holds(given["context"], given["answer"]))}


def _question(given: Fields) -> Fields:
    response = str(given["response"])
    return {"question": f"What is {response}?", "noncommittal": int(is_refusal(response))}


def _classes(given: Fields) -> Fields:
    answer, truth = _texts(given["answer"]), _texts(given["ground_truth"])
    said, true = {_squash(text) for text in answer}, {_squash(text) for text in truth}
    return {
        "TP": [_reasoned(text) for text in answer if _squash(text) in true],
        "FP": [_reasoned(text) for text in answer if _squash(text) not in true],
        "FN": [_reasoned(text) for text in truth if _squash(text) not in said],
    }


_REPLIES: Mapping[str, Callable[[Fields], Fields]] = {
    "StatementGeneratorOutput": _statements,
    "NLIStatementOutput": _verdicts,
    "AnswerRelevanceOutput": _question,
    "ContextPrecisionOutput": _usefulness,
    "ContextRecallOutput": _attributions,
    "ClassificationWithReason": _classes,
    "ClaimDecompositionOutput": _claims,
}


def _sentences(text: object) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE_END.split(str(text)) if sentence.strip()]


def _texts(given: object) -> list[str]:
    return [str(text) for text in given] if isinstance(given, Sequence) else []


def _judged(statement: str, context: object, flag: str) -> Fields:
    return {"statement": statement, "reason": "scripted", flag: int(_holds(context, statement))}


def _reasoned(statement: str) -> Fields:
    return {"statement": statement, "reason": "scripted"}


def _holds(text: object, part: object) -> bool:
    return _squash(str(part)).rstrip(".。") in _squash(str(text))


def _squash(text: str) -> str:
    return " ".join(text.split()).casefold()

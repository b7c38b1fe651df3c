"""The first sub-question of a chunk, where the judge's own call did not write one."""

from __future__ import annotations

import re
from dataclasses import replace

from ..calls.messages import CallOptions, version_of_prompts
from ..calls.prompts import DEFAULT_PROMPTS, PromptGroup, Prompts
from ..calls.usage import CallMeter
from ..errors import BudgetSpent, ModelCallError, ModelSetupError
from ..llm.contract import ChatLLM, model_fingerprint
from .contract import Verdict, sub_question_problem, usable_question
from .prompts import LOOK_UP, SUB_QUESTION, look_up_messages, sub_question_messages

AROUND_A_WORD = " \t\r\n.,:;!*_`\"'“”‘’。，！▁Ġ"
_BEFORE_A_QUESTION = re.compile(
    r"(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:\W{0,2}(?:[\w-]+ ){0,2}(?:question|query|fact|name|名称|子?问题)\W{0,2}[:：])?",
    re.IGNORECASE,
)
_WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_AROUND_A_QUESTION = _WHITE_SPACE + "\"'“”*`"
_ONE_QUESTION = CallOptions(max_tokens=64)
_ONE_NAME = CallOptions(max_tokens=24)
ASKER = PromptGroup(
    prompts=(LOOK_UP, SUB_QUESTION),
    version=version_of_prompts(look_up_messages("{query}", "{passage}"), sub_question_messages("{query}", "{passage}")),
)


class SubQuestionAsker:
    """Writes sub-questions: asks a model for the name in a passage to look up next, else for a whole question.

    Small models find a name in a passage, and seldom write a question. So the sub-question is the query with that name,
    and a written one where no name is usable.

    ::

        asker = SubQuestionAsker(llm)
    """

    def __init__(self, llm: ChatLLM, *, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._llm = llm
        self._prompts = prompts

    def fingerprint(self) -> dict[str, str]:
        """Return model and prompt version."""
        return {**model_fingerprint(self._llm), "prompt": self._prompts.version(ASKER)}

    async def asking(self, verdict: Verdict, query: str, passage: str, *, meter: CallMeter) -> Verdict:
        """Return the verdict with its sub-question, or with the problem of finding one; the score stays.

        Makes one or two calls.

        Raises:
            ModelSetupError: The model's endpoint can serve no request.
        """
        try:
            messages = look_up_messages(query, passage, self._prompts)
            completion = await self._llm.complete(messages, meter=meter, options=_ONE_NAME)
            question = query_with_name(query, name=question_in(completion.written), passage=passage)
            if not question or sub_question_problem(question, query):
                messages = sub_question_messages(query, passage, self._prompts)
                completion = await self._llm.complete(messages, meter=meter, options=_ONE_QUESTION)
                question = question_in(completion.written)
            question, problem = usable_question(question, query)
            return replace(verdict, next_query=question, problem=problem)
        except ModelSetupError:
            raise
        except (ModelCallError, BudgetSpent) as error:
            return replace(verdict, problem=str(error), budget_spent=isinstance(error, BudgetSpent) and error.limit)


def question_in(reply: str) -> str:
    """Return the first non-empty line of a small model's reply, without label, bullet or quotes.

    >>> question_in('Missing fact: "Where was Irene Maddow born?"')
    'Where was Irene Maddow born?'
    """
    first = next((line for line in reply.splitlines() if line.strip()), "")
    first = first.strip()
    label = _BEFORE_A_QUESTION.match(first)
    return first[label.end() if label else 0 :].strip(_AROUND_A_QUESTION)


def query_with_name(query: str, *, name: str, passage: str) -> str:
    """Return the query with a name that the passage adds to it; ``""`` for what it does not add.

    >>> query_with_name("Where was the founder of Orvane born?", name="Ada Korm.", passage="Ada Korm founded Orvane.")
    'Where was the founder of Orvane born? (Ada Korm)'
    >>> query_with_name("Where was the founder of Orvane born?", name="Orvane", passage="Ada Korm founded Orvane.")
    ''
    """
    name = name.strip(AROUND_A_WORD)
    is_added = _folded(name) in _folded(passage) and _folded(name) not in _folded(query)
    return f"{query} ({name})" if is_added and any(each.isalpha() for each in name) else ""


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())

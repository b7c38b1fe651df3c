"""Prompts of the systems that search in rounds, and the parsers of their replies.

IRCoT writes a chain of thought sentence by sentence, Iter-RetGen a draft answer a round, Self-Ask follow-up questions,
ReAct a thought and an action in turn, and CRAG another query where the first search found too little; the prompt of
Search-R1 is in ``tagged_prompts``. The papers use demonstrations; here all systems of a comparison get instructions of
one style, in English for every language. The parsers accept any reply and raise nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ..calls.messages import Message
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, Prompts
from .tool_inputs import text_within, tool_input

QuestionAnswer = tuple[str, str]
"""A follow-up question and its intermediate answer."""

FINAL_THOUGHT = "So the answer is:"
FINAL_ANSWER = "So the final answer is:"
FOLLOW_UP = "Follow up:"
NO_FOLLOW_UP_YET = "(no follow-up question yet)"
THOUGHT = "Thought:"
ACTION = "Action:"
SEARCH = f"{ACTION} Search"
FINISH = f"{ACTION} Finish"
OBSERVATION = "Observation:"
NOTHING_OBSERVED = "(nothing found)"
LONGEST_QUERY = 600
"""Most characters of a query that is taken from a model's reply."""

THOUGHT_SYSTEM = f"""\
You reason towards the answer of a question, one sentence at a time. You are given passages found so far and the
sentences written so far. Write the next sentence and nothing else:
- a fact from the passages that leads on towards the answer or, where the next fact is missing, what must be found out.
- It is searched for next: name things in full, use no pronoun, and do not repeat an earlier sentence.
- As soon as the answer follows, write instead: {FINAL_THOUGHT} and the answer.
Write in the language of the question; keep the words "{FINAL_THOUGHT}" as they are."""

DRAFT_SYSTEM = """\
Answer the question in at most three sentences. Use the passages where they help, and name in full the things that the
answer rests on. Where a fact is missing, write what has to be known, or your best guess: the text is used to search for
more passages. Write in the language of the question."""

FOLLOW_UP_SYSTEM = f"""\
You take a question apart into follow-up questions that need one fact each. Earlier follow-up questions are given with
their answers. Reply with one line and nothing else:
- {FOLLOW_UP} and the next question. It must be understood by itself: name things in full, use no pronoun, put earlier
  answers in, and do not repeat an earlier question. Do not answer it.
- {FINAL_ANSWER} and the answer, once no further question is needed.
Write in the language of the question; keep the words "{FOLLOW_UP}" and "{FINAL_ANSWER}" as they are."""


REACT_SYSTEM = f"""\
You answer a question by searching a collection of passages. You are given your searches so far, each with its
observation: the passages that it found. The question itself was searched for first. Reply with a thought and one
action, on two lines, and nothing else:
- {THOUGHT} in one sentence, what the observations tell and what must still be found out.
- {SEARCH}[query] to search for it. The query must be understood by itself: name things in full, use no pronoun, and
  do not repeat an earlier search. Do not write its observation.
- {FINISH}[answer] as soon as the answer follows from the observations, or searching on is of no use.
Write in the language of the question; keep the words "{THOUGHT}", "{SEARCH}" and "{FINISH}" as they are."""

REACT_TOOLS_SYSTEM = f"""\
You answer a question by searching a collection of passages and by using tools. You are given your actions so far, each
with its observation: the passages or the result that it brought. The question itself was searched for first. Reply with
a thought and one action, on two lines, and nothing else:
- {THOUGHT} in one sentence, what the observations tell and what must still be found out.
- {SEARCH}[query] to search the collection. The query must be understood by itself: name things in full, use no pronoun,
  and do not repeat an earlier search.
- {ACTION} NAME[input] to use one of the tools that are named below. Do not write the observation of an action.
- {FINISH}[answer] as soon as the answer follows from the observations, or acting on is of no use.
Write in the language of the question; keep the words "{THOUGHT}", "{ACTION}", "Search", "Finish" and the names of the
tools as they are."""

REWRITE_SYSTEM = """\
A question was searched for in a collection of passages, and what was found does not answer it. Write a better query and
nothing else: on one line, the words that a passage with the answer is likely to hold. Name things in full, keep every
name, number and date of the question, and use other words than the question where there are any. Do not answer it.
Write in the language of the question."""


@dataclass(frozen=True, kw_only=True)
class Thought:
    """One sentence of a chain of thought."""

    text: str
    """One line of at most ``LONGEST_QUERY`` characters; ``""`` for an empty reply."""
    is_last: bool
    """True if it gives the answer, or is empty."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """An action of an agent, and the passages that it was shown."""

    query: str
    passages: str
    """Rendered evidence; ``""`` if the search found nothing."""
    thought: str = ""
    """The agent's text before the action; ``""`` for the first search, which is for the question."""
    tool: str = ""
    """Name of the tool that was used; ``""`` for a search."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """An agent's next step; both texts are one line of at most ``LONGEST_QUERY`` characters."""

    thought: str
    """The text before the action; the whole reply without one."""
    query: str
    """The search query; ``""`` where the agent finishes or does nothing. With a tool, ``tool_input``."""
    tool: str = ""
    """Name of the tool; ``""`` for a search."""


THOUGHT_PROMPT = Prompt(
    name="ircot",
    about=f"ircot: next sentence of the chain of thought; {FINAL_THOUGHT} … ends it",
    system=THOUGHT_SYSTEM,
    user="Question: {query}\n\nEvidence:\n{evidence}\n\nQuestion: {query}\n\nSentences so far:\n{thoughts}",
)
DRAFT_PROMPT = Prompt(
    name="iter_retgen",
    about="iter_retgen: draft of the answer, which is searched for next",
    system=DRAFT_SYSTEM,
    user="Question: {query}\n\nEvidence:\n{evidence}\n\nQuestion: {query}",
)
FOLLOW_UP_PROMPT = Prompt(
    name="self_ask",
    about=f"self_ask: {FOLLOW_UP} … and the next question, or {FINAL_ANSWER} …",
    system=FOLLOW_UP_SYSTEM,
    user="Question: {query}\n\n{answered}",
)
REACT_PROMPT = Prompt(
    name="react",
    about=f"react: {THOUGHT} … and, on a line of its own, {SEARCH}[…] or {FINISH}[…]",
    system=REACT_SYSTEM,
    user="Question: {query}\n\n{observed}\n\nQuestion: {query}",
)
REACT_TOOLS_PROMPT = Prompt(
    name="react_tools",
    about=f"react with tools: {THOUGHT} … and, on a line of its own, {SEARCH}[…], {ACTION} and a tool, or {FINISH}[…]",
    system=REACT_TOOLS_SYSTEM,
    user="Tools:\n{tools}\n\nQuestion: {query}\n\n{observed}\n\nQuestion: {query}",
)
REWRITE_PROMPT = Prompt(
    name="crag",
    about="crag: another query for the question, where the first search found too little",
    system=REWRITE_SYSTEM,
    user="Question: {query}",
)


def thought_messages(
    query: str, evidence: str, thoughts: Sequence[str], prompts: Prompts = DEFAULT_PROMPTS
) -> list[Message]:
    """Ask for the next sentence of the chain of thought (IRCoT) after ``thoughts``."""
    so_far = "\n".join(thoughts) or "(none yet)"
    return prompts.messages(THOUGHT_PROMPT, query=query, evidence=evidence, thoughts=so_far)


def draft_messages(query: str, evidence: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for a draft of the answer (Iter-RetGen)."""
    return prompts.messages(DRAFT_PROMPT, query=query, evidence=evidence)


def follow_up_messages(
    query: str, answered: Sequence[QuestionAnswer], prompts: Prompts = DEFAULT_PROMPTS
) -> list[Message]:
    """Ask for the next follow-up question, or the end, after those in ``answered`` (Self-Ask)."""
    so_far = "\n".join(f"{FOLLOW_UP} {question}\nIntermediate answer: {answer}" for question, answer in answered)
    return prompts.messages(FOLLOW_UP_PROMPT, query=query, answered=so_far or NO_FOLLOW_UP_YET)


def react_messages(
    query: str,
    observed: Sequence[Observed],
    prompts: Prompts = DEFAULT_PROMPTS,
    *,
    tools: Mapping[str, str] = MappingProxyType({}),
) -> list[Message]:
    """Ask an agent for its next thought and action after its actions, at least one (ReAct).

    ``tools`` has the names of the agent's tools and what they do.
    """
    shown = "\n\n".join(map(_observation, observed))
    if not tools:
        return prompts.messages(REACT_PROMPT, query=query, observed=shown)
    named = "\n".join(f"{name}[input]: {what}" for name, what in tools.items())
    return prompts.messages(REACT_TOOLS_PROMPT, query=query, observed=shown, tools=named)


def rewrite_messages(query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for another query for the question (CRAG)."""
    return prompts.messages(REWRITE_PROMPT, query=query)


def _observation(action: Observed) -> str:
    thought = f"{THOUGHT} {action.thought}\n" if action.thought else ""
    done = f"{ACTION} {action.tool}" if action.tool else SEARCH
    return f"{thought}{done}[{action.query}]\n{OBSERVATION}\n{action.passages or NOTHING_OBSERVED}"


_SAYS_ANSWER = re.compile(
    r"\bthe (?:final )?answer (?:is|would be)\b|(?:最终|最後|最后)?答案(?:就|应该|應該)?(?:是|为|為)", re.I
)
_SENTENCE_END = re.compile(r"[.!?][\"”’)\]]*(?=\s+[^\sa-z])|[。！？][”」』）]*")
_ABBREVIATION = re.compile(r"(?:^|[\s(.])(?:[A-Z]|[A-Z][a-z]{1,2}|Prof|vs|approx)$")
"""Text before a full stop that ends no sentence: an initial, "Dr", "No". A few real ends are missed."""
_LONGEST_ABBREVIATION = 8
"""More characters than an abbreviation has, with the one before it."""

_LIST_MARK = re.compile(r"^\s*(?:[-*•>#]+\s+|\d+[.)]\s+)")
_SECTION = re.compile(
    r"^\W*(?:(?P<follow_up>(?:next\s+)?follow[\s-]*up(?:\s+question)?s?(?:\s*\d+)?|追问|追問|后续问题|後續問題)"
    r"|(?P<end>(?:so,?\s+)?the\s+(?:final\s+)?answer\s+is|final\s+answer|(?:最终|最終)?答案(?:是|为|為)?))"
    r"\W*[:：]\W*(?P<rest>.*)$",
    re.IGNORECASE,
)
_BROKEN_AFTER_COLON = re.compile(r"([:：])[*_ \t]*\n\s*")
_NO_QUESTION = re.compile(
    r"^\W*(?:none|no|n/?a|not needed|无|無|没有|沒有|不需要)(?:\s+(?:further|more|follow)\b.*)?\W*$", re.IGNORECASE
)

SEARCH_WORDS = ("search", "搜索", "检索", "檢索")
FINISH_WORDS = ("finish", "完成")


@cache
def _action_pattern(tools: tuple[str, ...]) -> re.Pattern[str]:
    """Match an action, also in the styles ``Action: Search(…)``, and ``Action: Search`` above ``Action Input: …``."""
    names = "|".join(map(re.escape, sorted((*SEARCH_WORDS, *FINISH_WORDS, *tools), key=len, reverse=True)))
    return re.compile(
        r"(?:^\W{0,5}|\baction\s*\d*\W{0,5}[:：]\W{0,5}|(?:行动|行動)\s*\d*\W{0,5}[:：]\W{0,5})"
        rf"(?P<name>{names})[*_`\"”」]{{0,5}}"
        r"(?:\s*(?P<opening>[\[(［【（])|\s*[:：]|\s+(?:action\s+)?input\W{0,5}[:：])\s*(?P<rest>.*)",
        re.IGNORECASE | re.MULTILINE,
    )


_THOUGHT_LABEL = re.compile(r"(?:\bthought|思考)\s*\d*\W{0,5}[:：]\W{0,5}", re.IGNORECASE)


def parse_thought(reply: str) -> Thought:
    """Return the first sentence of a reply; later ones rest on passages that the model has not seen.

    >>> parse_thought("The Dorsan gasket is described by Dr. Ruhl. So the answer is: 212 °C.")
    Thought(text='The Dorsan gasket is described by Dr. Ruhl.', is_last=False)
    >>> parse_thought("So the answer is: 212 °C.").is_last
    True
    """
    line = next((line for line in map(_unlisted, reply.splitlines()) if line), "")
    ends = (match.end() for match in _SENTENCE_END.finditer(line) if not _is_abbreviation(line, match.start()))
    sentence = one_line(line[: next(ends, None)])
    return Thought(text=sentence, is_last=not sentence or _SAYS_ANSWER.search(sentence) is not None)


def _is_abbreviation(line: str, stop: int) -> bool:
    return _ABBREVIATION.search(line[max(0, stop - _LONGEST_ABBREVIATION) : stop]) is not None


def parse_draft(reply: str) -> str:
    """Return the draft on one line of at most ``LONGEST_QUERY`` characters."""
    return one_line(reply)


def parse_follow_up(reply: str) -> str:
    """Return the first follow-up question of a reply; ``""`` if there is none or the model is done.

    Text before and after the question is ignored. A reply that is a single question counts as one.

    >>> parse_follow_up("Are follow up questions needed here: Yes.\\n**Follow up:** Who founded Rome?")
    'Who founded Rome?'
    >>> parse_follow_up("So the final answer is: Romulus")
    ''
    """
    for line in _BROKEN_AFTER_COLON.sub(r"\1 ", reply).splitlines():
        if section := _SECTION.match(line):
            question = one_line(section["rest"].rstrip("*_` ")) if section["follow_up"] else ""
            return "" if _NO_QUESTION.match(question) else question
    bare = one_line(_unlisted(reply))
    return bare if bare.endswith(("?", "？")) and "\n" not in reply.strip() else ""


def parse_action(reply: str, tools: Sequence[str] = ()) -> Action:
    """Return the first action of a reply; the rest is invented, such as observations.

    ``tools`` are the names of tools besides the search.

    >>> parse_action("Thought: The class is missing.\\nAction: Search[class of KS-1]\\nObservation: [1] Delta")
    Action(thought='The class is missing.', query='class of KS-1', tool='')
    >>> parse_action("Thought: It is Delta.\\nAction: Finish[Delta]").query
    ''
    """
    action = _action_pattern(tuple(tools)).search(reply)
    if action is None or action["name"].casefold() in FINISH_WORDS:
        return Action(thought=one_line(reply), query="")
    thought, _, _ = _THOUGHT_LABEL.split(reply[: action.start()])[-1].partition(OBSERVATION)
    thought = one_line(thought.strip("*_` \r\n"))
    tool = next((name for name in tools if name.casefold() == action["name"].casefold()), "")
    if tool:
        given = tool_input(reply[action.start("rest") :], action["opening"] or "")
        return Action(thought=thought, query=given, tool=tool)
    argument = text_within(action["rest"], action["opening"] or "").strip('"“”*_` ')
    return Action(thought=thought, query=one_line(argument))


def parse_rewrite(reply: str) -> str:
    """Return the query of a reply, its first line without marks and quotes; ``""`` for an empty one.

    >>> parse_rewrite('**Query:** "oil of pump class Delta"\\n\\nIt names the class.')
    'oil of pump class Delta'
    """
    lines = (_QUERY_LABEL.sub("", _unlisted(line)) for line in reply.splitlines())
    return next(filter(None, (one_line(line.strip(_AROUND_QUERY)) for line in lines)), "")


_QUERY_LABEL = re.compile(r"^\W{0,5}(?:(?:(?:search|better|new)\s+)?query|查询|查詢)\W{0,5}[:：]", re.IGNORECASE)
_AROUND_QUERY = " \t\"'“”`*_"


def _unlisted(line: str) -> str:
    return _LIST_MARK.sub("", line, count=1).strip()


def one_line(text: str) -> str:
    """Return a text on one line of at most ``LONGEST_QUERY`` characters."""
    return " ".join(text.split())[:LONGEST_QUERY].rstrip()

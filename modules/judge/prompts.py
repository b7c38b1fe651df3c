"""Prompts of the judges, and the versions that go into fingerprints.

The scale of verdicts is the same everywhere: 2 = answers the query alone, 1 = holds a needed fact, 0 = does not help.
Each prompt starts with its constant parts (instructions, then query, then passage), so that providers and llama.cpp can
reuse the prefix.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..calls.messages import JSON_REPAIR, Message, texts_of, version_of, version_of_prompts
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, PromptGroup, Prompts
from ..reader.evidence import as_line, as_material

SCALE = """\
2 = the passage alone answers the query
1 = the passage holds a fact that is needed, but another fact is still missing
0 = the passage does not help"""

JUDGE_SYSTEM = f"""\
You judge how far one passage helps to answer a query. Score:
{SCALE}

Reply with one JSON object and nothing else: {{"reason": string, "score": 0 | 1 | 2, "next_query": string}}.
- reason: at most 20 words.
- next_query: for score 1 only, else "". One question that asks for the fact still missing. It must be understood
  without the passage: name things as the passage names them, use no pronoun, and do not repeat the query.
Write in the language of the query."""

JUDGE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "score": {"type": "integer", "enum": [0, 1, 2]},
        "next_query": {"type": "string"},
    },
    "required": ["reason", "score", "next_query"],
    "additionalProperties": False,
}

BATCH_SYSTEM = f"""\
You judge how far numbered passages help to answer a query. Score each passage:
{SCALE}

Reply with one JSON object and nothing else: {{"reason": string, "suffices": boolean, "passages": [{{"passage": integer,
"score": 0 | 1 | 2, "percent": integer, "next_query": string}}]}}.
- reason: at most 40 words. The facts that the query needs, and the passages that hold them.
- suffices: true if all passages together answer the query.
- passages: one entry for each passage, by its number in brackets.
- percent: how likely it is that the passage holds a needed fact, 0 to 100.
- next_query: for score 1 only, where the passages do not suffice, else "". One question that asks for a fact that no
  passage holds. It must be understood without the passages: name things as they name them, use no pronoun, and do not
  repeat the query. Ask each question once: "" where another entry asks it.
Write in the language of the query."""

BATCH_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "suffices": {"type": "boolean"},
        "passages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "passage": {"type": "integer"},
                    "score": {"type": "integer", "enum": [0, 1, 2]},
                    "percent": {"type": "integer"},
                    "next_query": {"type": "string"},
                },
                "required": ["passage", "score", "percent", "next_query"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["reason", "suffices", "passages"],
    "additionalProperties": False,
}

NEEDED_SYSTEM = "You check whether a passage helps to answer a query. Reply with yes or no only."
NEEDED_QUESTION = 'Is the passage about something that must be known to answer "{query}"?'
ALONE_QUESTION = "Can the query be answered from this passage alone?"

LOOK_UP_SYSTEM = "You read a passage for a query. Reply with one name only, as the passage writes it."
LOOK_UP_QUESTION = 'Which name in the passage, not in the query, must be looked up next to answer "{query}"?'

SUB_QUESTION_SYSTEM = """\
A query needs several facts. The passage gives one of them. Write one short question that asks for the fact that is
still missing. It must be understood without the passage: name things as the passage names them, use no pronoun, and
do not repeat the query. Write in the language of the query. Reply with the question only."""

_QUERY_AND_PASSAGE = "Query: {query}\n\nPassage:\n{passage}"

JUDGE = Prompt(
    name="judge",
    about="judge generated: score of a passage; JSON with reason, score (0, 1, 2) and next_query",
    system=JUDGE_SYSTEM,
    user=_QUERY_AND_PASSAGE,
    is_json=True,
)
BATCH = Prompt(
    name="judge_batch",
    about="judge batched: scores of all passages; JSON with reason, suffices and passages (passage, score, percent, "
    "next_query)",
    system=BATCH_SYSTEM,
    user="Query: {query}\n\nPassages:\n\n{passages}",
    is_json=True,
)
NEEDED = Prompt(
    name="judge_needed",
    about="judge logprob: is the passage needed? The first word is yes or no",
    system=NEEDED_SYSTEM,
    user=f"{_QUERY_AND_PASSAGE}\n\n{NEEDED_QUESTION}",
)
ALONE = Prompt(
    name="judge_alone",
    about="judge logprob: does the passage answer the query alone? The first word is yes or no",
    system=NEEDED_SYSTEM,
    user=f"{_QUERY_AND_PASSAGE}\n\n{ALONE_QUESTION}",
)
SUB_QUESTION = Prompt(
    name="judge_sub_question",
    about="judge logprob: supplementary question, where no name is usable",
    system=SUB_QUESTION_SYSTEM,
    user=_QUERY_AND_PASSAGE,
)
LOOK_UP = Prompt(
    name="judge_look_up",
    about="judge logprob: a name of the passage, which the query gets as its supplementary question",
    system=LOOK_UP_SYSTEM,
    user=f"{_QUERY_AND_PASSAGE}\n\n{LOOK_UP_QUESTION}",
)


ASK_AGAIN = Prompt(
    name="ask_again",
    about="policies that ask a chunk again: another supplementary question, after those in {tried} found nothing",
    system="""\
A query needs several facts. The passage gives one of them. Questions that asked for the fact still missing found
nothing. Write one other short question that asks for it in another way: other words, another name, or another step. It
must be understood without the passage: name things as the passage names them, use no pronoun, and repeat neither the
query nor a question asked already. Write in the language of the query. Reply with the question only.""",
    user="Query: {query}\n\nPassage:\n{passage}\n\nAsked already:\n{tried}",
)

INSERT_BLOCK_SYSTEM = """\
An answer to a query is to be written from passages. You decide of one passage whether it belongs to that answer: it
does if it holds a fact that the answer needs, even if further facts are needed too. What only has the same subject
does not belong.

Reply with one JSON object and nothing else: {"belongs": true | false, "key_passage": string, "reason": string}.
- key_passage: where it belongs, the one or two sentences of the passage that the answer needs, copied word for word;
  else "".
- reason: at most 20 words, in the language of the query."""

INSERT_BLOCK_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "belongs": {"type": "boolean"},
        "key_passage": {"type": "string"},
        "reason": {"type": "string"},
    },
    "required": ["belongs", "key_passage", "reason"],
    "additionalProperties": False,
}

INSERT_BLOCK = Prompt(
    name="insert_block",
    about="filter before an answer: does a passage belong to it? JSON with belongs, key_passage and reason",
    system=INSERT_BLOCK_SYSTEM,
    user=_QUERY_AND_PASSAGE,
    is_json=True,
)


def insert_block_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask whether a passage belongs to the answer, as JSON (``INSERT_BLOCK_SCHEMA``)."""
    return prompts.messages(INSERT_BLOCK, query=query, passage=as_material(passage))


def judge_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for a whole verdict as JSON (``JUDGE_SCHEMA``)."""
    return prompts.messages(JUDGE, query=query, passage=as_material(passage))


def batch_messages(query: str, passages: Sequence[str], prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the verdicts of numbered passages as JSON (``BATCH_SCHEMA``).

    No passage can pass for another one: what begins like a number in brackets is indented.
    """
    numbered = (f"[{number}]\n{as_material(passage)}" for number, passage in enumerate(passages, start=1))
    return prompts.messages(BATCH, query=query, passages="\n\n".join(numbered))


def needed_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask whether the passage is needed, for yes or no; the query precedes and follows the passage."""
    return prompts.messages(NEEDED, query=query, passage=as_material(passage))


def alone_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask whether the passage answers alone, for yes or no; the prefix is that of ``needed_messages``."""
    return prompts.messages(ALONE, query=query, passage=as_material(passage))


def sub_question_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for a question about the missing fact."""
    return prompts.messages(SUB_QUESTION, query=query, passage=as_material(passage))


def look_up_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the name in the passage that leads on to the missing fact."""
    return prompts.messages(LOOK_UP, query=query, passage=as_material(passage))


def ask_again_messages(
    query: str, passage: str, tried: Sequence[str], prompts: Prompts = DEFAULT_PROMPTS
) -> list[Message]:
    """Ask for a question about the missing fact other than those in ``tried``."""
    asked = "\n".join(f"- {as_line(each)}" for each in tried)
    return prompts.messages(ASK_AGAIN, query=query, passage=as_material(passage), tried=asked)


GENERATED_JUDGE_VERSION = version_of(
    *texts_of(judge_messages("{query}", "{passage}")), JSON_REPAIR, json.dumps(JUDGE_SCHEMA)
)
LOGPROB_JUDGE_VERSION = version_of_prompts(
    needed_messages("{query}", "{passage}"),
    alone_messages("{query}", "{passage}"),
    sub_question_messages("{query}", "{passage}"),
    look_up_messages("{query}", "{passage}"),
)
BATCHED_JUDGE_VERSION = version_of(
    *texts_of(batch_messages("{query}", ["{passage}", "{passage}"])), JSON_REPAIR, json.dumps(BATCH_SCHEMA)
)
BATCHED_JUDGE = PromptGroup(prompts=(BATCH,), version=BATCHED_JUDGE_VERSION)
GENERATED_JUDGE = PromptGroup(prompts=(JUDGE,), version=GENERATED_JUDGE_VERSION)
LOGPROB_JUDGE = PromptGroup(prompts=(NEEDED, ALONE, SUB_QUESTION, LOOK_UP), version=LOGPROB_JUDGE_VERSION)

ASK_AGAIN_PROMPTS = PromptGroup(
    prompts=(ASK_AGAIN,),
    version=version_of_prompts(
        DEFAULT_PROMPTS.messages(ASK_AGAIN, query="{query}", passage="{passage}", tried="{tried}")
    ),
)

INSERT_BLOCK_PROMPTS = PromptGroup(
    prompts=(INSERT_BLOCK,),
    version=version_of(
        *texts_of(insert_block_messages("{query}", "{passage}")), JSON_REPAIR, json.dumps(INSERT_BLOCK_SCHEMA)
    ),
)

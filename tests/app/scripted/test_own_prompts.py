"""The scripted model serves prompts of one's own as it does judgetree's, and both at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from judgetree.app.scripted.endpoints import Endpoints
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from judgetree.modules.extraction.prompts import triples_messages
from judgetree.modules.judge import prompts as judge
from judgetree.modules.memory import prompts as memory
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.prompts.table import PROMPTS
from judgetree.modules.reader import multistep_prompts as rounds
from judgetree.modules.reader import prompts as reader
from judgetree.modules.reader.tagged_prompts import search_r1_messages
from tests.app.conftest import CHAIN
from tests.app.scripted.drum import chat_body
from tests.app.talks import DRUM, FIRST, NAMED, THICK, THICKNESS

SHOWN = memory.render_pairs([(FIRST, "the drum")])
BOTH = f"[1] a.md\n{NAMED.quote}\n\n[2] b.md\n{THICK.quote}"
QUERY = CHAIN.question
CALLS: Mapping[str, Callable[[Prompts], list[Message]]] = {
    "reader": lambda own: reader.reader_messages(QUERY, BOTH, own),
    "closed_book": lambda own: reader.closed_book_messages(QUERY, own),
    "map_reduce_note": lambda own: reader.note_messages(QUERY, NAMED.quote, own),
    "map_reduce_answer": lambda own: reader.combine_messages(QUERY, [NAMED.quote, THICK.quote], own),
    "refine_known": lambda own: reader.refine_messages(QUERY, NAMED.quote, THICK.quote, own),
    "refine_answer": lambda own: reader.finish_messages(QUERY, NAMED.quote, THICK.quote, own),
    "map_rerank": lambda own: reader.scored_messages(QUERY, BOTH, own),
    "digest": lambda own: reader.digest_messages(BOTH, THICKNESS, own),
    "judge": lambda own: judge.judge_messages(QUERY, NAMED.quote, own),
    "judge_batch": lambda own: judge.batch_messages(QUERY, [NAMED.quote, THICK.quote], own),
    "judge_needed": lambda own: judge.needed_messages(QUERY, NAMED.quote, own),
    "judge_alone": lambda own: judge.alone_messages(QUERY, BOTH, own),
    "judge_sub_question": lambda own: judge.sub_question_messages(QUERY, NAMED.quote, own),
    "judge_look_up": lambda own: judge.look_up_messages(QUERY, NAMED.quote, own),
    "ask_again": lambda own: judge.ask_again_messages(QUERY, NAMED.quote, ["Who?"], own),
    "insert_block": lambda own: judge.insert_block_messages(QUERY, NAMED.quote, own),
    "ircot": lambda own: rounds.thought_messages(QUERY, NAMED.quote, ["So."], own),
    "iter_retgen": lambda own: rounds.draft_messages(QUERY, NAMED.quote, own),
    "self_ask": lambda own: rounds.follow_up_messages(QUERY, [], own),
    "react": lambda own: rounds.react_messages(QUERY, [rounds.Observed(query=QUERY, passages=NAMED.quote)], own),
    "search_r1": lambda own: search_r1_messages(QUERY, [rounds.Observed(query=QUERY, passages=NAMED.quote)], own),
    "crag": lambda own: rounds.rewrite_messages(QUERY, own),
    "react_tools": lambda own: rounds.react_messages(
        QUERY,
        [rounds.Observed(query=QUERY, passages=NAMED.quote)],
        own,
        tools={"add": "adds", "web": "asks"},
    ),
    "select_turns": lambda own: memory.select_messages(SHOWN, THICKNESS, own),
    "assess_history": lambda own: memory.assess_messages(SHOWN, BOTH, THICKNESS, own),
    "condense": lambda own: memory.condense_messages(SHOWN, THICKNESS, own),
    "answer_from_knowledge": lambda own: own.messages(memory.KNOWLEDGE, query=QUERY),
    "fold_summary": lambda own: memory.summary_messages(SHOWN, own),
    "direct_answer": lambda own: memory.small_talk_messages("Hello!", own),
    "triples": lambda own: triples_messages(NAMED.quote, own),
    "web_or_rag": lambda own: memory.route_messages(QUERY, own),
}


def reordered(system: str = "") -> Prompts:
    """All prompts with their fields in another order, below an example in judgetree's own order."""
    return load_prompts(
        {
            name: {
                "system": f"{system} {name} in JSON" if system else prompt.system,
                "user": "".join(f"<{{{word}}}>\n" for word in reversed(prompt.placeholders)) + "JSON",
                "examples": [{"user": CALLS[name](DEFAULT_PROMPTS)[-1][1], "assistant": "as an example"}],
            }
            for name, prompt in PROMPTS.items()
        }
    )


@pytest.mark.parametrize("own", [reordered(), reordered("Mine:")])
@pytest.mark.parametrize("name", PROMPTS)
def test_a_reply_does_not_depend_on_the_prompt(name: str, own: Prompts) -> None:
    endpoints = Endpoints([CHAIN], dialogues=[DRUM], prompts=own)
    endpoints.configure({"knows_by_heart": True})

    def said(prompts: Prompts) -> str:
        body = json.dumps(chat_body(CALLS[name](prompts))).encode()
        answered = endpoints.handle("POST", "/v1/chat/completions", body)
        assert answered.status == 200, answered.body
        return str(json.loads(answered.body)["choices"][0]["message"]["content"])

    assert said(own) == said(DEFAULT_PROMPTS) != "I cannot answer this question."


def test_an_unknown_layout_of_a_known_prompt_names_the_option() -> None:
    own = load_prompts({"reader": {"user": "{evidence}\n{query}"}})
    messages = reader.reader_messages("q", "e", own)
    answered = Endpoints([CHAIN]).handle("POST", "/v1/chat/completions", json.dumps(chat_body(messages)).encode())
    assert answered.status == 400
    assert "--prompts" in answered.body.decode()

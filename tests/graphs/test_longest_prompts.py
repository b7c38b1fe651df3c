"""JUDGETREE_LLM_MAX_TOKENS: no prompt of any door is longer, and none is limited where it is not set."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from langchain_core.documents import Document

from judgetree.graphs.session import RagSession
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.settings import load_settings
from tests.graphs.fakes import FakeLLM, chunk

MOST = 600
PASSAGE = "The pump of unit seven needs the oil that is named in the manual of its maker. " * 120
QUESTION = "Which oil does unit seven need?"
VERDICT = json.dumps({"reason": "It names the maker.", "score": 1, "next_query": "Which oil does the maker name?"})
DOORS: dict[str, dict[str, object]] = {
    "reader": {"system": "naive"},
    "notes": {"system": "naive", "strategy": "map_reduce"},
    "growing knowledge": {"system": "naive", "strategy": "refine"},
    "answers by passage": {"system": "naive", "strategy": "map_rerank"},
    "judge and sub-questions": {"system": "judge", "judge": "generated"},
    "judge of sets": {"system": "judge", "judge": "batched"},
    "judge by probabilities": {"system": "judge", "judge": "logprob"},
    "steps of reasoning": {"system": "ircot"},
    "rounds": {"system": "iter_retgen"},
    "follow-up questions": {"system": "self_ask"},
    "agent": {"system": "react"},
    "searches between tags": {"system": "search_r1"},
    "judge and another query": {"system": "crag", "judge": "generated"},
}


class LongPassages:
    """Finds five long passages for every query."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "long"}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        return [(chunk(str(number), f"{number}. {PASSAGE}"), 1.0 - 0.1 * number) for number in range(5)]


def session(llm: FakeLLM, home: Path, most: int | None, **options: object) -> RagSession:
    settings = load_settings(checkpoints="memory:", home=home, llm_max_tokens=most)
    searching = {} if options.get("system") == "llm" else {"retriever": LongPassages()}
    return RagSession(llm=llm, settings=settings, **{**searching, **options})  # type: ignore[arg-type]


def longest(llm: FakeLLM) -> int:
    return max(map(message_tokens, llm.calls))


@pytest.mark.parametrize("door", DOORS)
def test_no_prompt_of_a_question_is_longer(door: str, tmp_path: Path) -> None:
    bound, free = FakeLLM(lambda messages: VERDICT), FakeLLM(lambda messages: VERDICT)
    with session(bound, tmp_path, MOST, **DOORS[door]) as asking, session(free, tmp_path, None, **DOORS[door]) as other:
        result = asking.ask(QUESTION)
        other.ask(QUESTION)
    assert result.status in ("answered", "refused"), result.error
    assert longest(bound) <= MOST
    assert longest(free) > MOST, "nothing is limited where the setting is not set"
    assert not any(options.is_shortened for options in free.options)
    assert asking.settings.llm_max_tokens == MOST
    assert result.tree.fingerprint["reader.context_tokens"] == str(MOST)


def test_a_long_question_and_a_model_of_one_question_are_bound(tmp_path: Path) -> None:
    own, other = FakeLLM(lambda messages: "VG 68"), FakeLLM(lambda messages: "VG 68")
    with session(own, tmp_path, MOST, system="llm") as asking:
        asking.ask(PASSAGE)
        asking.ask(PASSAGE, llm=other)
    assert (longest(own) <= MOST, longest(other) <= MOST) == (True, True)
    assert all(options.is_shortened for options in (*own.options, *other.options))


def test_turns_of_a_conversation_and_their_rewrites_are_bound(tmp_path: Path) -> None:
    llm = FakeLLM(lambda messages: "Which oil does the maker name?")
    with session(llm, tmp_path, MOST, system="naive") as asking:
        talk = asking.chat("talk")
        for asked in (QUESTION, "And why? " + PASSAGE, "And when?"):
            talk.ask(asked)
    assert longest(llm) <= MOST


def test_whoever_opens_a_model_bounds_its_prompts() -> None:
    """Files that open a model by its spec bound its prompts, or have a reason not to."""
    excused = {
        "graphs/conversation/history_aware.py": "keeps to TurnLimits",
        "app/terminal/graph_making.py": "sends one chunk a call, which the collection's chunk size bounds",
        "app/commands/doctor.py": "sends a word",
    }
    root = Path(__file__).parents[2]
    files = [file for room in ("modules", "graphs", "eval", "app") for file in (root / room).rglob("*.py")]
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    opening = {name for name, text in texts.items() if re.search(r"import .*\bcreate_(judge_)?llm\b", text)}
    assert {name for name in opening if "bounded(" not in texts[name]} == set(excused)

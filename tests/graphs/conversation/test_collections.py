"""A conversation stays with the collection that it has searched, unless it is to switch; and keeps what it needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.conversation.turn.context import ConversationOptions
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.memory import ConversationMemory
from tests.graphs.conversation.talk import (
    ANSWERS,
    CLASS,
    DOWN,
    OIL,
    SCREW,
    TABLE,
    TalkingLLM,
    open_conversations,
    saved,
    settings_in,
)
from tests.graphs.fakes import TableRetriever
from tests.modules.fake_embeddings import BagOfWordsEmbedder


def over(folder: Path, collection: str, llm: TalkingLLM, *, switch: bool = False, **changes: object) -> Conversations:
    settings = settings_in(folder, **changes)
    return Conversations(
        collection,
        system="naive",
        context=RagContext(reader=llm, retriever=TableRetriever(TABLE)),
        memory=ConversationMemory(BagOfWordsEmbedder(), uri=str(folder / "memory.db")),
        options=ConversationOptions(switch_collection=switch),
        settings=settings,
    )


@pytest.mark.parametrize("elsewhere", [{}, {"milvus_uri": "http://127.0.0.1:1"}], ids=["name", "address"])
def test_another_collection_is_refused_before_anything_is_written(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    llm = TalkingLLM()
    with over(tmp_path, "one", llm) as talks:
        talks.conversation("s").ask(CLASS)
        before = talks.conversation("s").tree()
    llm.asked()
    with over(tmp_path, "one" if elsewhere else "other", llm, **elsewhere) as talks:
        talk = talks.conversation("s")
        with pytest.raises(SettingsError, match=r"'s' searches the collection one in .*, not .*--switch-collection"):
            talk.ask("Which colour has it?")
        assert talk.tree() == before
        assert llm.asked() == []
        assert talks.conversation("t").ask(CLASS).status == "answered"


def passages_of_one() -> TableRetriever:
    return TableRetriever(TABLE)


def passages_of_another() -> TableRetriever:
    return TableRetriever(TABLE)


@pytest.mark.parametrize("kind", ["prebuilt", "own"])
def test_what_is_searched_in_place_of_a_collection_is_kept_to_as_well(kind: str, tmp_path: Path) -> None:
    def over_retriever(retriever: object) -> Conversations:
        return Conversations(
            system="naive",
            context=RagContext(reader=TalkingLLM(), retriever=TableRetriever(TABLE)),
            retriever=retriever,
            memory=ConversationMemory(BagOfWordsEmbedder(), uri=str(tmp_path / "memory.db")),
            settings=settings_in(tmp_path),
        )

    one, other = (
        (f"prebuilt:{tmp_path / 'one'}", f"prebuilt:{tmp_path / 'another'}")
        if kind == "prebuilt"
        else (passages_of_one, passages_of_another)
    )
    with over_retriever(one) as talks:
        assert saved(talks.conversation("s").ask(CLASS))["collection"].endswith("one")
    with over_retriever(other) as talks, pytest.raises(SettingsError, match=r"one, not .*another"):
        talks.conversation("s").ask("Which colour has it?")


def test_a_switch_leaves_the_evidence_of_the_old_collection_and_says_so(tmp_path: Path) -> None:
    with over(tmp_path, "one", TalkingLLM()) as talks:
        talks.conversation("s").ask(CLASS)
        one = talks.collection
    llm = TalkingLLM()
    with over(tmp_path, "other", llm, switch=True) as talks:
        talk = talks.conversation("s")
        turn = saved(talk.ask("Which colour has it?"))
        assert turn["answered_from"] == "search", "the passage of the first turn would have answered it"
        assert (turn["collection"], one) == (f"other in {tmp_path / 'milvus.db'}", f"one in {tmp_path / 'milvus.db'}")
        words = f"collection switched to {turn['collection']}, from {one}"
        tree = talk.tree()
        assert words in tree.to_text(width=400)
        assert words in tree.to_dot()
        assert words in tree.to_html(picture=False)
        talk.ask(SCREW)
        assert talk.tree().to_text(width=400).count("switched") == 1
        (summary,) = talks.summaries()
        assert summary.collection == talks.collection
    with over(tmp_path, "other", TalkingLLM()) as talks:
        assert talks.conversation("s").ask(OIL).status == "answered"


def test_an_open_turn_over_another_collection_is_not_gone_on_with(tmp_path: Path) -> None:
    llm = TalkingLLM()
    llm.broken = {"read": DOWN}
    with over(tmp_path, "one", llm) as talks:
        assert talks.conversation("s").ask(CLASS, request_id="r").status == "failed"
    with over(tmp_path, "other", TalkingLLM(), switch=True) as talks:
        result = talks.conversation("s").ask(CLASS, request_id="r")
        assert (result.resumed, result.turn and result.turn["collection"]) == (False, talks.collection)


def test_the_turns_that_a_question_needed_are_kept_and_shown(tmp_path: Path) -> None:
    with open_conversations(tmp_path, TalkingLLM()) as talks:
        talk = talks.conversation("s")
        first = talk.ask(CLASS)
        talk.ask(SCREW)
        talk.ask("And its oil?")
        llm_down = TalkingLLM()
        llm_down.broken = {"select": DOWN}
        tree = talk.tree()
    with open_conversations(tmp_path, llm_down) as talks:
        unknown = talks.conversation("s").ask("And its oil?", regenerate=True).turn
    assert [turn["needed_chat_history"] for turn in tree.turns] == [[], [], [first.turn_id]]
    assert unknown is not None
    assert (unknown["needed_chat_history"], unknown["answer"]) == (None, ANSWERS[OIL])
    for drawn in (tree.to_text(), tree.to_dot(), tree.to_html(picture=False)):
        assert drawn.count("needs turn 1") >= 1
    assert "needs turn 2" not in tree.to_text()
    assert ConversationTree.from_json(tree.to_json()) == tree
    nodes = tree.to_networkx().nodes
    assert [nodes[turn["turn_id"]]["needed_chat_history"] for turn in tree.turns] == ["", "", first.turn_id]

"""The history-aware retriever: what it searches for, and that it works in any chain, thread and loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda

import judgetree
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.conversation.history_aware import create_history_aware_retriever
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.errors import LoopReentryError, ModelCallError, ModelSetupError, SettingsError
from judgetree.modules.index.index import Index
from judgetree.modules.memory.prompts import condense_messages
from judgetree.modules.reader.prompts import REFUSAL
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings
from tests.graphs.fakes import FakeLLM
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.model_endpoints import saying

PAIRS = [("How thick is plate AX7?", "12 mm")]
MESSAGES = [SystemMessage("Be brief."), HumanMessage("How thick is plate AX7?"), AIMessage("12 mm")]
FOLLOW_UP = {"input": "And how hot may it become?", "chat_history": PAIRS}
CONDENSED = "How hot may plate AX7 become?"


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    """Over a real index with a text for the condensed question and one for the follow-up as it is."""
    folder = tmp_path_factory.mktemp("history_aware")
    (folder / "docs").mkdir()
    (folder / "docs" / "ax7.md").write_text("Plate AX7 may become 300 degrees hot.", encoding="utf-8")
    (folder / "docs" / "weather.md").write_text("And it how rainy, and it how cold.", encoding="utf-8")
    with Index(BagOfWordsEmbedder(), folder / "docs", None, "plates", uri=str(folder / "m.db"), token="") as index:
        index.get_index_done()
        yield Retriever(index, topk=1)


class EchoRetriever(BaseRetriever):
    """Finds what it was asked."""

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        return [Document(page_content=query)]


def condensing(reply: str | Exception = CONDENSED) -> FakeLLM:
    def answer(messages: Sequence[Message]) -> str:
        if isinstance(reply, Exception):
            raise reply
        return reply

    return FakeLLM(answer)


def searched(llm: FakeLLM, given: Mapping[str, object]) -> str:
    (document,) = create_history_aware_retriever(llm, EchoRetriever()).invoke(given)
    return document.page_content


def sources(documents: Sequence[Document]) -> list[str]:
    return [document.metadata["source"] for document in documents]


# --- what is searched for ---


def test_model_may_be_named_by_its_spec(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path)
    with ScriptedServer(responses=saying(ChatReply(text=CONDENSED))) as server:
        chain = judgetree.create_history_aware_retriever(
            f"{server.base_url}#scripted", EchoRetriever(), settings=settings
        )
        assert chain.invoke(FOLLOW_UP)[0].page_content == CONDENSED
    with pytest.raises(SettingsError, match="Unknown model 'gpt'"):
        judgetree.create_history_aware_retriever("gpt", EchoRetriever(), settings=settings)


def test_follow_up_finds_what_the_condensed_question_finds(retriever: Retriever) -> None:
    llm = condensing()
    documents = create_history_aware_retriever(llm, retriever).invoke(FOLLOW_UP)
    assert sources(documents) == ["ax7.md"] != sources(retriever.invoke(str(FOLLOW_UP["input"])))
    assert documents[0].metadata["rank"] == 0


@pytest.mark.parametrize("history", [PAIRS, MESSAGES])
def test_model_is_shown_the_turns_and_the_question(history: Sequence[tuple[str, str] | BaseMessage]) -> None:
    llm = condensing()
    searched(llm, {"input": "And how hot?", "chat_history": history})
    assert llm.calls == [condense_messages("Q: How thick is plate AX7?\nA: 12 mm", "And how hot?")]


@pytest.mark.parametrize("given", [{}, {"chat_history": []}, {"chat_history": None}, {"chat_history": MESSAGES[:1]}])
def test_without_history_the_question_is_the_query_and_no_call_made(given: dict[str, object]) -> None:
    llm = condensing()
    assert searched(llm, {"input": " And how hot? ", **given}) == " And how hot? "
    assert llm.calls == []


@pytest.mark.parametrize(
    "reply",
    ["", REFUSAL, ModelCallError("the answer is empty"), "Which? " * 100_000, "It is 12 mm.\nIt may be hot."],
)
def test_question_itself_is_searched_for_where_condensing_gives_no_question(reply: str | Exception) -> None:
    assert searched(condensing(reply), FOLLOW_UP) == FOLLOW_UP["input"]


def test_chatter_is_cut_off_and_a_long_history_shortened() -> None:
    llm = condensing("Sure! Here is the rewritten question: How hot may plate AX7 become?")
    given = {"input": "And how hot?", "chat_history": [("Which plate?", "word " * 50_000)]}
    assert searched(llm, given) == "How hot may plate AX7 become?"
    assert message_tokens(llm.calls[0]) <= 8192


def test_failed_condensing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        searched(condensing(ModelCallError("no answer today")), FOLLOW_UP)
    assert "no answer today" in caplog.text


def test_refused_key_is_an_error() -> None:
    with pytest.raises(ModelSetupError, match="check the key"):
        searched(condensing(ModelSetupError("check the key")), FOLLOW_UP)


def test_history_of_another_form_is_rendered_by_the_caller() -> None:
    llm = condensing()
    aware = create_history_aware_retriever(llm, EchoRetriever(), get_chat_history=lambda told: f"told: {told}")
    aware.invoke({"input": "q", "chat_history": "yesterday's talk"})
    assert llm.calls == [condense_messages("told: yesterday's talk", "q")]


@pytest.mark.parametrize("given", ["q", {}, {"input": ""}, {"input": " "}, {"input": 3}, {"query": "q"}])
def test_input_without_a_question_is_refused(given: object) -> None:
    with pytest.raises(SettingsError, match=r'Give \{"input"'):
        searched(condensing(), given)  # type: ignore[arg-type]


@pytest.mark.parametrize("history", ["text", [("q", "a", "b")], ["q"], 7])
def test_history_that_cannot_be_read_is_refused(history: object) -> None:
    with pytest.raises(SettingsError, match="chat_history"):
        searched(condensing(), {"input": "q", "chat_history": history})


# --- where it works ---

Aware = Runnable[Mapping[str, object], list[Document]]
INPUTS: list[Mapping[str, object]] = [FOLLOW_UP, {"input": "Who?"}]


async def _in_tasks(aware: Aware) -> list[list[Document]]:
    return list(await asyncio.gather(*(aware.ainvoke(given) for given in INPUTS)))


WAYS: dict[str, Callable[[Aware], list[list[Document]]]] = {
    "invoke": lambda aware: [aware.invoke(given) for given in INPUTS],
    "batch": lambda aware: aware.batch(INPUTS),
    "ainvoke": lambda aware: asyncio.run(_in_tasks(aware)),
    "abatch": lambda aware: asyncio.run(aware.abatch(INPUTS)),
    "stream": lambda aware: [next(aware.stream(given)) for given in INPUTS],
    "own loop": lambda aware: background_loop().run(_in_tasks(aware)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_invoke_gives_the_same(way: str) -> None:
    found = WAYS[way](create_history_aware_retriever(condensing(), EchoRetriever()))
    assert [[document.page_content for document in documents] for documents in found] == [[CONDENSED], ["Who?"]]


def test_model_is_called_on_one_loop_from_wherever_it_is_invoked() -> None:
    loops: set[int] = set()

    def answer(messages: Sequence[Message]) -> str:
        loops.add(id(asyncio.get_running_loop()))
        return CONDENSED

    aware = create_history_aware_retriever(FakeLLM(answer), EchoRetriever())
    aware.invoke(FOLLOW_UP)
    for _ in range(2):
        asyncio.run(aware.ainvoke(FOLLOW_UP))
    assert len(loops) == 1


def test_blocking_call_on_judgetrees_own_loop_is_refused() -> None:
    aware = create_history_aware_retriever(condensing(), EchoRetriever())

    async def block() -> None:
        aware.invoke(FOLLOW_UP)

    with pytest.raises(LoopReentryError, match="ainvoke"):
        background_loop().run(block())


def test_it_stands_in_chains_and_around_any_runnable(retriever: Retriever) -> None:
    inner = retriever | RunnableLambda(lambda documents: documents[:1])
    chain = create_history_aware_retriever(condensing(), inner) | (lambda documents: documents[0].page_content)
    assert chain.invoke(FOLLOW_UP) == "Plate AX7 may become 300 degrees hot."
    assert asyncio.run(chain.ainvoke(FOLLOW_UP)) == "Plate AX7 may become 300 degrees hot."


def test_own_prompt_condenses() -> None:
    llm = condensing()
    own = {"condense": {"system": "Rewrite.", "user": "{query} after {history}"}}
    create_history_aware_retriever(llm, EchoRetriever(), prompts=own).invoke({"input": "q", "chat_history": PAIRS[:1]})
    assert llm.calls[0][0] == ("system", "Rewrite.")
    assert llm.calls[0][1][1].startswith("q after Q: ")
    with pytest.raises(SettingsError, match="no prompt 'condens'"):
        create_history_aware_retriever(llm, EchoRetriever(), prompts={"condens": {}})


def test_a_chat_model_of_langchain_condenses() -> None:
    model = FakeListChatModel(responses=[CONDENSED])
    (document,) = create_history_aware_retriever(model, EchoRetriever()).invoke(FOLLOW_UP)
    assert document.page_content == CONDENSED

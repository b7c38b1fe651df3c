"""What one question has otherwise than its session, over a real index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from judgetree.graphs.config.given_keys import GivenKeys
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.messages import PLAIN_TEXT
from judgetree.modules.errors import SettingsError, ThreadMismatch
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings
from tests.graphs.fakes import FakeLLM
from tests.modules.fake_embeddings import BagOfWordsEmbedder

QUESTION = "Which oil does class Delta need?"


class LastFirst:
    """Gives the last document the best score: 2, 1, 0."""

    name = "test:last_first"

    def rerank(self, query: str, documents: Sequence[str], top_n: int) -> list[tuple[int, float]]:
        return [(place, float(place)) for place in reversed(range(len(documents)))][:top_n]


@pytest.fixture
def session(tmp_path: Path, reader: FakeLLM) -> Iterator[RagSession]:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("Delta", "Omega", "Sigma", "Theta"):
        (docs / f"{name}.txt").write_text(f"Class {name} needs the oil Vellin. {'Delta ' * (name == 'Delta')}")
    settings = load_settings(checkpoints=f"sqlite:///{tmp_path / 'c.sqlite'}", home=tmp_path)
    with Index({"dense": BagOfWordsEmbedder()}, docs, None, "oils", uri=str(tmp_path / "m.db"), token="") as index:
        index.get_index_done()
        services = RagContext(reader=reader, retriever=Retriever(index, topk=3))
        with RagSession(system="naive", context=services, settings=settings) as opened:
            yield opened


def test_search_of_one_question_leaves_the_others_as_they_are(session: RagSession) -> None:
    usual = [chunk.chunk_id for chunk in session.ask(QUESTION).tree.chunk_nodes()]
    assert len(usual) == 3
    few = session.ask(QUESTION, topk=1, thread_id="few")
    assert [chunk.chunk_id for chunk in few.tree.chunk_nodes()] == usual[:1]
    asked = session.ask(QUESTION, rerank=LastFirst(), rerank_input_top_n=3, score_threshold=1).tree
    assert [chunk.chunk_id for chunk in asked.chunk_nodes()] == [usual[2], usual[1]], "the third has the score 0"
    assert asked.fingerprint["retriever.ranker_params"] == '{"model": "test:last_first"}'
    assert [chunk.chunk_id for chunk in session.ask(QUESTION).tree.chunk_nodes()] == usual
    with pytest.raises(ThreadMismatch, match=r"\(topk: 1 then, 3 now\)\. Give --topk 1,"):
        session.ask(thread_id="few")


def test_thinking_of_one_question_is_the_reader_s_and_in_its_thread(session: RagSession, reader: FakeLLM) -> None:
    off = session.ask(QUESTION, thinking=False, thread_id="off").tree
    assert ([options.thinking for options in reader.options], off.fingerprint["reader.thinking"]) == ([False], "off")
    with pytest.raises(ThreadMismatch, match=r"\(thinking: off then, none now\)\. Give --no-thinking,"):
        session.ask(thread_id="off")
    session.ask(QUESTION, llm=(other := FakeLLM(lambda messages: "Vellin")), thinking=True)
    assert [options.thinking for options in other.options] == [True]


def test_sampling_and_form_of_one_question_are_the_reader_s_and_in_its_thread(
    session: RagSession, reader: FakeLLM
) -> None:
    session.ask(QUESTION, temperature=0.5, answer_form="{max_tokens: 9, stop: ['.'], seed: 3}", thread_id="nine")
    (sent,) = reader.options
    assert (sent.temperature, sent.max_tokens, sent.stop, sent.seed) == (0.5, 9, (".",), 3)
    with pytest.raises(ThreadMismatch, match=r"answer_form: \{'max_tokens': 9.* then, none now.*Give --answer-form"):
        session.ask(QUESTION, temperature=0.5, thread_id="nine")
    session.ask(QUESTION)
    assert reader.options[-1] == PLAIN_TEXT


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"topk": 0}, SettingsError),
        ({"search_type": "best"}, SettingsError),
        ({"score_threshold": "high"}, SettingsError),
        ({"temperature": 3}, SettingsError),
        ({"answer_form": "{max_tokens: 0}"}, SettingsError),
        ({"answer_form": {"json_format": "json_schema"}}, SettingsError),
        ({"judge_llm": "openai:gpt-4o"}, SettingsError),
        ({"thinking": "perhaps"}, SettingsError),
        ({"policy": "best_first"}, SettingsError),
    ],
)
def test_overrides_that_do_not_fit_are_refused(
    session: RagSession, overrides: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error, match=next(iter(overrides))):
        session.ask(QUESTION, **overrides)  # type: ignore[arg-type]


def test_one_question_may_have_a_chat_model_of_langchain(session: RagSession) -> None:
    result = session.ask(QUESTION, llm=FakeListChatModel(responses=["Ordel"]), thread_id="other")
    assert result.answer == "Ordel"
    assert result.tree.fingerprint["reader.model"] == "FakeListChatModel"
    with pytest.raises(ThreadMismatch, match=r"reader\.model_fields"):
        session.ask(QUESTION, llm=FakeListChatModel(responses=["Vellin"]), thread_id="other")


def test_models_of_one_class_with_other_settings_are_described_otherwise() -> None:
    first, same, other = (
        GivenKeys.of_question({"llm": FakeListChatModel(responses=[reply])}).described() for reply in ("a", "a", "b")
    )
    assert first == same != other


@pytest.mark.parametrize(
    "given", [5, "http://127.0.0.1:9/v1#m", FakeListChatModel, FakeListChatModel(responses=["a"]).bind()]
)
def test_what_is_no_chat_model_is_refused_with_the_remedy(given: object, session: RagSession) -> None:
    with pytest.raises(SettingsError, match=r"is no chat model\. Give a ChatLLM, or a model of LangChain"):
        RagSession(system="llm", llm=given if not isinstance(given, str) else [given])
    with pytest.raises(SettingsError, match=r"RagContext\(reader=.* Give an object with complete; .* from_langchain"):
        RagContext(reader=given)  # type: ignore[arg-type]
    if not isinstance(given, str):
        with pytest.raises(SettingsError, match="is no chat model"):
            session.ask(QUESTION, llm=given)  # type: ignore[arg-type]

"""Fusion arguments, and rerank services over real HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import pytest
from langchain_core.documents import Document

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelSetupError, SearchArgumentError, SessionError, SettingsError
from judgetree.modules.network.long_waits import LongWaits
from judgetree.modules.retriever.reordering import reranked
from judgetree.modules.retriever.rerank import (
    RANKERS,
    RERANK_SERVICES,
    DashScopeReranker,
    HttpReranker,
    RerankModel,
    RetryingReranker,
    create_reranker,
    reciprocal_rank_fusion,
    weighted_sum,
)
from judgetree.modules.wanted import in_thread
from tests.attacks.servers import BOMB, ENDLESS_JSON, OTHER, Misbehaviour, misbehaving
from tests.attacks.watch import survive
from tests.modules.rerank_server import RerankServer, serve_rerank

ENDLESS = {"drips": OTHER["drips"], "huge": ENDLESS_JSON, "bomb": BOMB}
TEXTS = ["dogs bark", "cats sleep", "cats sleep long"]


class TestFusion:
    def test_rrf_takes_its_k(self) -> None:
        assert reciprocal_rank_fusion({}, ["a"]).dict()["params"] == {"k": 60}
        assert reciprocal_rank_fusion({"k": 5}, ["a"]).dict()["params"] == {"k": 5}

    @pytest.mark.parametrize("k", [0, -1, 16_384, 2.5, "60", True])
    def test_a_k_out_of_range_is_refused(self, k: object) -> None:
        with pytest.raises(SearchArgumentError, match=f"k={k!r} is not allowed"):
            reciprocal_rank_fusion({"k": k}, ["a"])

    def test_weights_are_normalised_and_equal_by_default(self) -> None:
        assert weighted_sum({}, ["a", "b"]).dict()["params"] == {"weights": [0.5, 0.5], "norm_score": True}
        assert weighted_sum({"weights": [1, 0]}, ["a", "b"]).dict()["params"]["weights"] == [1, 0]

    @pytest.mark.parametrize(
        ("weights", "problem"),
        [
            *(
                (weights, r"does not fit the 2 fields searched \(a, b\)")
                for weights in ([0.5], [0.2, 0.3, 0.5], "ab", 3)
            ),
            *(([0.5, weight], "between 0 and 1") for weight in (-0.1, 1.1, float("nan"), "1")),
        ],
    )
    def test_weights_of_another_number_or_range_are_refused(self, weights: object, problem: str) -> None:
        with pytest.raises(SearchArgumentError, match=problem):
            weighted_sum({"weights": weights}, ["a", "b"])

    @pytest.mark.parametrize("ranker", RANKERS)
    def test_unknown_parameters_are_refused(self, ranker: str) -> None:
        with pytest.raises(SearchArgumentError, match=f"nonsense are unknown to ranker_type='{ranker}'"):
            RANKERS[ranker]({"nonsense": 1}, ["a"])


def models(server: RerankServer) -> list[HttpReranker | DashScopeReranker]:
    return [
        HttpReranker(server.url, "m", api_key="secret"),
        DashScopeReranker("m", api_key="secret", base_url=server.url),
    ]


class TestServices:
    @pytest.mark.parametrize("kind", [0, 1])
    def test_scores_come_best_first_with_positions(self, rerank_server: RerankServer, kind: int) -> None:
        ranked = models(rerank_server)[kind].rerank("cats sleep long", TEXTS, 2)
        assert ranked == [(2, 1.0), (1, pytest.approx(2 / 3))]
        assert rerank_server.keys == ["Bearer secret"]

    def test_key_is_sent_without_white_space_and_refused_where_no_header_can_hold_it(
        self, rerank_server: RerankServer
    ) -> None:
        HttpReranker(rerank_server.url, "m", api_key="secret\n").rerank("q", TEXTS, 2)
        assert rerank_server.keys == ["Bearer secret"]
        for make in (
            lambda: HttpReranker(rerank_server.url, "m", api_key="séc"),
            lambda: DashScopeReranker("m", api_key="séc"),
        ):
            with pytest.raises(SettingsError, match=r"cannot be sent: its character 2 is U\+00E9"):
                make()

    def test_each_service_has_its_shape_of_a_request(self, rerank_server: RerankServer) -> None:
        for model in models(rerank_server):
            model.rerank("q", TEXTS, 2)
        http = {"query": "q", "documents": TEXTS, "top_n": 2}
        dashscope = {
            "input": {"query": "q", "documents": TEXTS},
            "parameters": {"top_n": 2, "return_documents": False},
        }
        assert rerank_server.requests == [{"model": "m", **http}, {"model": "m", **dashscope}]

    @pytest.mark.parametrize("kind", [0, 1])
    @pytest.mark.parametrize("status", [429, 500])
    def test_a_failing_service_is_an_error(self, rerank_server: RerankServer, kind: int, status: int) -> None:
        rerank_server.status = status
        with pytest.raises(ModelCallError, match=f"answered {status}") as caught:
            models(rerank_server)[kind].rerank("q", TEXTS, 2)
        assert not isinstance(caught.value, ModelSetupError)
        assert "secret" not in str(caught.value)

    def test_a_refused_key_is_the_users_to_mend(self, rerank_server: RerankServer) -> None:
        rerank_server.status = 401
        with pytest.raises(ModelSetupError, match="answered 401"):
            models(rerank_server)[0].rerank("q", TEXTS, 2)

    @pytest.mark.parametrize(
        "results",
        [
            "no json",
            "[]",
            "{}",
            '{"results": []}',
            '{"results": [{"index": 0}]}',
            '{"results": [{"index": 3, "relevance_score": 1}]}',
            '{"results": [{"index": -1, "relevance_score": 1}]}',
            '{"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}',
            '{"results": [{"index": 0, "relevance_score": NaN}]}',
            '{"results": [{"index": 0, "relevance_score": "high"}]}',
            '{"results": [{"index": Infinity, "relevance_score": 1}]}',
            '{"results": [{"index": 0, "relevance_score": ' + "9" * 400 + "}]}",
            '{"results": ' + "[" * 100_000,
        ],
    )
    @pytest.mark.parametrize("kind", [0, 1])
    def test_a_senseless_answer_is_an_error(self, rerank_server: RerankServer, kind: int, results: str) -> None:
        rerank_server.body = results if kind == 0 or not results.startswith("{") else f'{{"output": {results}}}'
        with pytest.raises(ModelCallError):
            models(rerank_server)[kind].rerank("q", TEXTS, 2)

    @pytest.mark.parametrize("kind", [0, 1])
    @pytest.mark.parametrize("behave", ENDLESS.values(), ids=ENDLESS)
    def test_an_answer_without_an_end_is_an_error_in_time(self, kind: int, behave: Misbehaviour) -> None:
        with misbehaving(behave) as server:
            rerankers = (
                HttpReranker(f"{server.base_url}/rerank", "m", timeout_s=0.5),
                DashScopeReranker("m", api_key="k", base_url=server.base_url, timeout_s=0.5),
            )
            with pytest.raises(ModelCallError, match=r"its reply is longer|no whole reply came|its reply is packed"):
                survive(asyncio.to_thread(rerankers[kind].rerank, "q", TEXTS, 2), limit_s=10)

    @pytest.mark.parametrize("kind", [0, 1])
    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    def test_a_redirect_is_named_and_no_text_is_sent_there(
        self, rerank_server: RerankServer, kind: int, status: int
    ) -> None:
        with serve_rerank() as elsewhere:
            rerank_server.status, rerank_server.location = status, f"{elsewhere.url}?key=sk-1"
            with pytest.raises(ModelSetupError, match=f"redirects to {elsewhere.url}, where nothing is sent"):
                models(rerank_server)[kind].rerank("q", TEXTS, 2)
            assert (elsewhere.requests, len(rerank_server.requests)) == ([], 1)

    def test_unsorted_and_too_many_results_are_put_right(self, rerank_server: RerankServer) -> None:
        results = [{"index": index, "relevance_score": score} for index, score in enumerate([0.1, 7.5, -11.0])]
        rerank_server.body = json.dumps({"results": results})
        assert models(rerank_server)[0].rerank("q", TEXTS, 2) == [(1, 7.5), (0, 0.1)]

    def test_nobody_at_the_address_is_an_error(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/rerank"
            with pytest.raises(ModelSetupError, match="cannot be reached: the connection was refused"):
                HttpReranker(url, "m").rerank("q", TEXTS, 2)


class TestFurtherAttempts:
    @pytest.mark.parametrize("kind", [0, 1])
    @pytest.mark.parametrize("first", [[500], [429], [429, 503]])
    def test_a_service_that_recovers_is_asked_until_it_answers(
        self, rerank_server: RerankServer, kind: int, first: list[int]
    ) -> None:
        rerank_server.first = [*first]
        model = RetryingReranker(models(rerank_server)[kind], retries=2, backoff_s=0.01)
        assert model.rerank("cats sleep long", TEXTS, 1) == [(2, 1.0)]
        assert len(rerank_server.requests) == len(first) + 1

    @pytest.mark.parametrize("kind", [0, 1])
    @pytest.mark.parametrize("status", [503, 429])
    def test_a_service_that_fails_each_time_is_asked_no_more_than_is_allowed(
        self, rerank_server: RerankServer, kind: int, status: int
    ) -> None:
        rerank_server.status = status
        with pytest.raises(ModelCallError, match=f"answered {status}"):
            RetryingReranker(models(rerank_server)[kind], retries=2, backoff_s=0.01).rerank("q", TEXTS, 1)
        assert len(rerank_server.requests) == 3

    @pytest.mark.parametrize("kind", [0, 1])
    @pytest.mark.parametrize(
        ("status", "body"),
        [
            *((status, None) for status in (401, 400, 301)),
            *((200, body) for body in ("{}", "no json", "[]")),
        ],
    )
    def test_what_would_fail_again_is_asked_once(
        self, rerank_server: RerankServer, kind: int, status: int, body: str | None
    ) -> None:
        rerank_server.status, rerank_server.body = status, body
        rerank_server.location = "http://127.0.0.1:1/" if status == 301 else ""
        with pytest.raises(ModelCallError):
            RetryingReranker(models(rerank_server)[kind], retries=2, backoff_s=0.01).rerank("q", TEXTS, 1)
        assert len(rerank_server.requests) == 1

    def test_an_empty_account_is_told_at_once(self, rerank_server: RerankServer) -> None:
        rerank_server.status, rerank_server.body = 429, '{"error": {"code": "insufficient_quota"}}'
        with pytest.raises(ModelSetupError):
            RetryingReranker(models(rerank_server)[0], retries=2, backoff_s=0.01).rerank("q", TEXTS, 1)
        assert len(rerank_server.requests) == 1

    @pytest.mark.parametrize("kind", [0, 1])
    def test_a_reply_without_an_end_is_asked_for_once(self, kind: int, caplog: pytest.LogCaptureFixture) -> None:
        with misbehaving(ENDLESS_JSON) as server, caplog.at_level("INFO"):
            model = (
                HttpReranker(f"{server.base_url}/rerank", "m", timeout_s=5),
                DashScopeReranker("m", api_key="k", base_url=server.base_url, timeout_s=5),
            )[kind]
            with pytest.raises(ModelCallError, match="its reply is longer"):
                RetryingReranker(model, retries=2, backoff_s=0.01).rerank("q", TEXTS, 1)
        assert "The next attempt follows" not in caplog.text

    def test_nobody_at_the_address_is_asked_again(self, caplog: pytest.LogCaptureFixture) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/rerank"
            with caplog.at_level("INFO"), pytest.raises(ModelSetupError):
                RetryingReranker(HttpReranker(url, "m"), retries=2, backoff_s=0.01).rerank("q", TEXTS, 1)
        assert sum("The next attempt follows" in each.getMessage() for each in caplog.records) == 2

    @pytest.mark.parametrize("kind", [0, 1])
    def test_a_search_that_was_given_up_asks_no_more(self, rerank_server: RerankServer, kind: int) -> None:
        rerank_server.status = 503
        waits, ended = threading.Event(), threading.Event()
        model = RetryingReranker(models(rerank_server)[kind], retries=2, backoff_s=0.2)

        def search() -> None:
            try:
                model.rerank("q", TEXTS, 1)
            except SessionError:
                ended.set()

        async def give_up() -> None:
            searching = asyncio.create_task(in_thread(search))
            while not rerank_server.requests:
                await asyncio.to_thread(waits.wait, 0.01)
            searching.cancel()
            await asyncio.wait([searching])

        asyncio.run(give_up())
        assert ended.wait(60)
        assert len(rerank_server.requests) == 1

    def test_a_process_that_ends_waits_for_no_service(
        self, rerank_server: RerankServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("judgetree.modules.retriever.rerank.LONG_WAITS", waits := LongWaits())
        waits.end()
        rerank_server.status = 503
        model = RetryingReranker(models(rerank_server)[0], retries=2, backoff_s=1000)
        with pytest.raises(SessionError, match="ending"):
            reranked([(Document(page_content="a"), 1.0)], model, "q", topk=1, meter=CallMeter(node="retrieve"))


class TestSpecs:
    def test_an_address_with_a_model(self, rerank_server: RerankServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JUDGETREE_RERANK_API_KEY", "from-env")
        model = create_reranker(f"{rerank_server.url}#m")
        assert model.name == f"{rerank_server.url}#m"
        assert model.rerank("cats", TEXTS, 1) == [(1, 1.0)]
        assert rerank_server.keys == ["Bearer from-env"]

    def test_dashscope_takes_its_key_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DASHSCOPE_API_KEY", "k")
        assert create_reranker("dashscope:qwen3-rerank").name == "dashscope:qwen3-rerank"

    def test_dashscope_without_a_key_says_how_to_give_one(self) -> None:
        with pytest.raises(SettingsError, match="DASHSCOPE_API_KEY"):
            create_reranker("dashscope:gte-rerank-v2")

    def test_an_unknown_service_is_refused(self) -> None:
        with pytest.raises(SearchArgumentError, match=r"Unknown rerank model 'cohere:x'.*dashscope:MODEL"):
            create_reranker("cohere:x")

    def test_every_service_is_a_rerank_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DASHSCOPE_API_KEY", "k")
        for service in RERANK_SERVICES:
            assert isinstance(create_reranker(f"{service}://h/rerank#m"), RerankModel)

import asyncio
import json
import math

import dashscope
import httpx
import openai
import pytest
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from judgetree.app.scripted.endpoints import DASHSCOPE_RERANK
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.judge import prompts as judge_prompts
from tests.app.conftest import CHAIN
from tests.app.scripted.drum import (
    JUDGE,
    NEEDED,
    READ,
    VESSEL,
    WALL,
    Json,
    chat_body,
    http_post,
    model,
    post,
    text_of,
)


def test_a_completion_has_the_answer_and_its_usage(server: ScriptedServer) -> None:
    response = post(server, READ)
    assert text_of(response) == "40 mm"
    assert response.json()["choices"][0]["finish_reason"] == "stop"
    assert response.json()["choices"][0]["logprobs"] is None
    prompt_tokens = sum(math.ceil(len(text) / 4) for _, text in READ)
    expected = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    assert response.json()["usage"] == expected


def test_content_may_come_in_parts(server: ScriptedServer) -> None:
    messages = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in READ]
    response = http_post(f"{server.base_url}/chat/completions", json={"model": "m", "messages": messages})
    assert text_of(response) == "40 mm"


def test_langchain_streams_the_same_text_with_usage(server: ScriptedServer) -> None:
    async def stream() -> tuple[list[str], int]:
        chunks = [chunk async for chunk in model(server, stream_usage=True).astream(JUDGE)]
        usage = sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata)
        return [str(chunk.content) for chunk in chunks], usage

    pieces, output_tokens = asyncio.run(stream())
    assert "".join(pieces) == text_of(post(server, JUDGE))
    assert sum(1 for piece in pieces if piece) == output_tokens > 10


def events_of(response: httpx.Response) -> list[str]:
    return [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]


def test_usage_is_streamed_only_when_asked_for(server: ScriptedServer) -> None:
    plain = events_of(post(server, READ, stream=True))
    counted = events_of(post(server, READ, stream=True, stream_options={"include_usage": True}))
    assert plain[-1] == counted[-1] == "[DONE]"
    assert not any("usage" in json.loads(event) for event in plain[:-1])
    assert json.loads(counted[-2])["choices"] == []
    assert json.loads(counted[-2])["usage"]["completion_tokens"] == 2
    assert json.loads(counted[-3])["choices"][0]["finish_reason"] == "stop"


def test_langchain_reads_the_probability_of_yes(server: ScriptedServer) -> None:
    message = model(server, logprobs=True, top_logprobs=20).invoke(NEEDED)
    [entry] = message.response_metadata["logprobs"]["content"]
    mass = {"yes": 0.0, "no": 0.0}
    for candidate in entry["top_logprobs"]:
        mass[candidate["token"].strip().lower()] += math.exp(candidate["logprob"])
    assert entry["token"] == message.content == "yes"
    assert mass == pytest.approx({"yes": 0.9, "no": 0.1}, abs=1e-4)
    odds = [candidate["logprob"] for candidate in entry["top_logprobs"]]
    assert odds == sorted(odds, reverse=True)


def test_log_probabilities_align_with_the_text_whole_and_streamed(server: ScriptedServer) -> None:
    whole = post(server, JUDGE, logprobs=True, top_logprobs=1)
    entries = whole.json()["choices"][0]["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries) == text_of(whole)
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == text_of(whole)
    events = events_of(post(server, JUDGE, logprobs=True, top_logprobs=1, stream=True))
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert [choice["logprobs"]["content"][0] for choice in choices if choice["logprobs"]] == entries


def test_an_endpoint_may_omit_or_refuse_log_probabilities(server: ScriptedServer) -> None:
    server.configure(logprobs="omitted")
    assert post(server, NEEDED, logprobs=True).json()["choices"][0]["logprobs"] is None
    server.configure(logprobs="refused")
    assert post(server, NEEDED, logprobs=True).status_code == 400
    assert post(server, NEEDED).status_code == 200


SCHEMA_FORMAT: Json = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": judge_prompts.JUDGE_SCHEMA}}


def test_response_formats_are_accepted_or_refused_as_configured(server: ScriptedServer) -> None:
    assert post(server, JUDGE, response_format=SCHEMA_FORMAT).status_code == 200
    server.configure(refused_formats=["json_schema"])
    with pytest.raises(openai.BadRequestError, match="json_schema is not supported"):
        model(server).bind(response_format=SCHEMA_FORMAT).invoke(JUDGE)
    assert post(server, JUDGE, response_format={"type": "json_object"}).status_code == 200


def test_json_object_needs_the_word_json_in_a_message(server: ScriptedServer) -> None:
    assert post(server, READ, response_format={"type": "json_object"}).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"model": "m", "messages": []}',
        json.dumps(chat_body([("system", judge_prompts.JUDGE_SYSTEM), ("user", "Judge this!")])).encode(),
    ],
)
def test_a_malformed_request_gets_a_400_that_says_why(server: ScriptedServer, body: bytes) -> None:
    response = http_post(f"{server.base_url}/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_embeddings_are_unit_vectors_that_depend_on_the_words_alone(server: ScriptedServer) -> None:
    embedder = OpenAIEmbeddings(
        model="e", base_url=server.base_url, api_key=SecretStr("x"), check_embedding_ctx_length=False
    )
    texts = ["The drum's wall", "the  wall: drum's", "Sonne", "储罐壁厚", "储罐的壁厚", ""]
    vectors = embedder.embed_documents(texts)
    assert all(math.fsum(value * value for value in vector) == pytest.approx(1, abs=1e-5) for vector in vectors)
    assert vectors[0] == vectors[1]

    def cosine(first: int, second: int) -> float:
        return math.fsum(a * b for a, b in zip(vectors[first], vectors[second], strict=True))

    assert cosine(3, 4) > 0.6
    assert cosine(3, 4) > cosine(3, 2)
    assert server.requests["embeddings"] == 1


def test_embeddings_come_as_floats_of_the_asked_size_and_from_token_ids(server: ScriptedServer) -> None:
    def embed(**fields: object) -> list[list[float]]:
        response = http_post(f"{server.base_url}/embeddings", json={"model": "e", **fields})
        return [item["embedding"] for item in response.json()["data"]]

    assert [len(vector) for vector in embed(input=["a", "b"], dimensions=8)] == [8, 8]
    assert embed(input=[5, 6]) == embed(input=[[5, 6]]) == embed(input="5 6")


DOCUMENTS = ["Nothing of the kind.", VESSEL.quote, f"{VESSEL.quote} {WALL.quote}"]


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/compatible-api/v1/reranks"])
def test_reranking_puts_the_gold_passages_first(server: ScriptedServer, path: str) -> None:
    body: Json = {"model": "r", "query": CHAIN.question, "documents": DOCUMENTS}
    results = http_post(server.root_url + path, json=body).json()["results"]
    assert [result["index"] for result in results] == [2, 1, 0]
    assert all(0 <= result["relevance_score"] <= 1 for result in results)
    assert "document" not in results[0]
    top = http_post(server.root_url + path, json={**body, "top_n": 1, "return_documents": True}).json()["results"]
    assert [result["document"]["text"] for result in top] == [DOCUMENTS[2]]


def test_a_needed_fact_outweighs_shared_words_and_these_order_the_rest(server: ScriptedServer) -> None:
    documents = ["Sun.", "The wall of the vessel that Norm A means.", f"{'Mist and rain. ' * 9}{VESSEL.quote}"]
    body: Json = {"model": "r", "query": CHAIN.question, "documents": documents}
    results = http_post(f"{server.base_url}/rerank", json=body).json()["results"]
    assert [result["index"] for result in results] == [2, 1, 0]


def dashscope_rerank(
    server: ScriptedServer, **fields: object
) -> dashscope.api_entities.dashscope_response.ReRankResponse:
    return dashscope.TextReRank.call(
        model="gte-rerank-v2",
        query=CHAIN.question,
        documents=DOCUMENTS,
        api_key="x",
        base_address=f"{server.root_url}/api/v1",
        **fields,
    )


def test_dashscope_reranks(server: ScriptedServer) -> None:
    response = dashscope_rerank(server, top_n=2)
    assert response.status_code == 200
    assert [result.index for result in response.output.results] == [2, 1]
    assert response.usage.total_tokens > 0


def test_dashscope_sees_its_own_error_shape(server: ScriptedServer) -> None:
    server.configure(faults={"429": 1})
    response = dashscope_rerank(server)
    assert (response.status_code, response.code, response.output) == (429, "Throttling.RateQuota", None)
    assert http_post(server.root_url + DASHSCOPE_RERANK, json={"model": "r"}).json()["code"] == "InvalidParameter"

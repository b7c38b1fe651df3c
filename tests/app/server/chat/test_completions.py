"""Chat completions, asked with the clients that people use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION
from tests.app.server.serving import serving
from tests.app.talks import FIRST, PAINT, THICKNESS

MODEL = f"{COLLECTION}/judge"


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        yield client


def said(*texts: str) -> list[dict[str, str]]:
    """Messages of a user and an assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def ask(http: httpx.Client, *texts: str, chat: str = "", **more: object) -> dict[str, object]:
    headers = {"X-OpenWebUI-Chat-Id": chat} if chat else {}
    answer = http.post("/v1/chat/completions", json={"model": MODEL, "messages": said(*texts)} | more, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def chunks_of(http: httpx.Client, *texts: str, **more: object) -> list[dict[str, object]]:
    """All chunks of a stream, which ends as it should."""
    body = {"model": MODEL, "messages": said(*texts), "stream": True} | more
    lines = http.post("/v1/chat/completions", json=body).text.split("\n\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    return [json.loads(each) for each in data[:-1]]


def test_each_collection_is_a_model_under_each_system(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL, f"{COLLECTION}/naive", "fast"]
    assert client.models.retrieve(MODEL).id == MODEL


def test_an_answer_has_its_sources_and_its_tree(client: openai.OpenAI, http: httpx.Client) -> None:
    done = client.chat.completions.create(model=MODEL, messages=said(CHAIN.question))  # type: ignore[arg-type]
    message = done.choices[0].message
    assert message.content == CHAIN.answer
    assert done.choices[0].finish_reason == "stop"
    assert {a.url_citation.title for a in message.annotations or []} == {"Norm A", "Drums"}
    own = (done.model_extra or {})["judgetree"]
    assert own["status"] == "answered"
    assert own["thread_id"]
    assert done.usage is not None
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0


def test_a_stream_begins_with_the_role_and_ends_with_usage(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=said(CHAIN.question),  # type: ignore[arg-type]
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == CHAIN.answer
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None


def test_usage_comes_only_when_it_is_asked_for(http: httpx.Client) -> None:
    assert all(chunk["choices"] for chunk in chunks_of(http, FIRST))


def test_open_webui_gets_sources_and_progress(http: httpx.Client) -> None:
    events = [chunk["event"] for chunk in chunks_of(http, FIRST) if "event" in chunk]
    sources = [event["data"] for event in events if event["type"] == "source"]
    assert "Norm A names the drum." in sources[0]["document"][0]
    assert sources[0]["metadata"][0]["source"] == "Norm A"
    assert {"description": f"searched: {FIRST}", "done": False} in [event["data"] for event in events]


def test_sources_stand_behind_the_answer_where_asked_for(http: httpx.Client) -> None:
    chunks = chunks_of(http, FIRST, judgetree={"sources": "markdown"})
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])
    assert text.startswith("the drum\n\nSources:\n1. [Norm A](http://")
    assert text.endswith(f"\n\n[Search tree]({chunks[-1]['judgetree']['tree_url']})")


def test_langchain_streams_it(address: str) -> None:
    model = ChatOpenAI(model=MODEL, base_url=f"{address}/v1", api_key="none", max_retries=0)
    assert "".join(str(piece.content) for piece in model.stream(CHAIN.question)) == CHAIN.answer


def test_a_follow_up_continues_the_conversation_of_its_chat(http: httpx.Client) -> None:
    first = ask(http, FIRST, chat="one")["judgetree"]
    second = ask(http, FIRST, "the drum", THICKNESS, chat="one")
    assert second["choices"][0]["message"]["content"] == "40 mm"
    assert second["judgetree"]["parent_turn_id"] == first["turn_id"]
    assert second["judgetree"]["branch"] == "main"


def test_an_edited_and_a_repeated_message_become_branches(http: httpx.Client) -> None:
    first = ask(http, FIRST, chat="one")["judgetree"]
    ask(http, FIRST, "the drum", THICKNESS, chat="one")
    edited = ask(http, FIRST, "the drum", PAINT, chat="one")["judgetree"]
    assert (edited["parent_turn_id"], edited["branch"]) == (first["turn_id"], "branch-2")
    repeated = ask(http, FIRST, chat="one")["judgetree"]
    assert (repeated["parent_turn_id"], repeated["branch"]) == ("", "branch-3")
    assert repeated["turn_id"] != first["turn_id"]


def test_an_edited_answer_is_the_history(http: httpx.Client) -> None:
    ask(http, FIRST, chat="one")
    given = ask(http, FIRST, "the ladder", PAINT, chat="one")["judgetree"]
    assert given["parent_turn_id"] == ""
    longer = ask(http, FIRST, "the drum is wrong, it is the ladder", PAINT, chat="two")["judgetree"]
    assert longer["parent_turn_id"] == "", "an answer that begins like the one given is another answer"
    assert given["answer"] == "grey"


@pytest.mark.parametrize("chat", [{"chat_id": "one"}, {}])
def test_a_request_with_the_same_idempotency_key_gets_the_same_turn(http: httpx.Client, chat: dict[str, str]) -> None:
    body = {"model": MODEL, "messages": said(FIRST)} | chat
    answers = [http.post("/v1/chat/completions", json=body, headers={"Idempotency-Key": "a"}).json() for _ in range(2)]
    assert answers[0]["judgetree"]["turn_id"] == answers[1]["judgetree"]["turn_id"]
    for other in ({"temperature": 0.5}, {"stop": "x"}, {"response_format": {"type": "json_object"}}):
        refused = http.post("/v1/chat/completions", json=body | other, headers={"Idempotency-Key": "a"})
        assert (refused.status_code, "with other options" in refused.text) == (422, True), other
    elsewhere = body | {"messages": said(PAINT, "grey", FIRST)}
    refused = http.post("/v1/chat/completions", json=elsewhere, headers={"Idempotency-Key": "a"})
    assert (refused.status_code, "before after other messages" in refused.text) == (422, True)
    for _ in range(2):
        answer = http.post("/v1/chat/completions", json=elsewhere, headers={"Idempotency-Key": "b"})
        assert answer.status_code == 200
    for messages in (said(FIRST), said(PAINT, "red", FIRST)):
        refused = http.post(
            "/v1/chat/completions", json=body | {"messages": messages}, headers={"Idempotency-Key": "b"}
        )
        assert (refused.status_code, "before after other messages" in refused.text) == (422, True)
    naive = body | {"model": MODEL.replace("judge", "naive")}
    said_by = http.post("/v1/chat/completions", json=naive, headers={"Idempotency-Key": "a"})
    if chat:
        assert (said_by.status_code, " before of judge over " in said_by.text) == (422, True)
    else:
        turn_id = said_by.json()["judgetree"]["turn_id"]
        assert turn_id != answers[0]["judgetree"]["turn_id"], "another model answers itself"


def test_a_thread_s_history_is_the_server_s(http: httpx.Client) -> None:
    ask(http, FIRST, thread_id="one")
    assert ask(http, THICKNESS, thread_id="one")["choices"][0]["message"]["content"] == "40 mm"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (r'"messages": [{"role": "user", "content": "a\ud800"}]', 400),
        (r'"messages": [{"role": "system", "content": "\udfff"}, {"role": "user", "content": "a"}]', 400),
        (
            '"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema", "json_schema": '
            '{"schema": {"minimum": NaN}}}',
            422,
        ),
        (
            '"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema", "json_schema": '
            '{"schema": {"minimum": 1e999}}}',
            422,
        ),
    ],
)
def test_fast_is_not_asked_what_cannot_be_sent(http: httpx.Client, raw: str, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    answer = http.post("/v1/chat/completions", content=f'{{"model": "fast", {raw}}}', headers=headers)
    assert answer.status_code == status, answer.text


def test_fast_runs_no_tree(http: httpx.Client) -> None:
    done = ask(http, "Write a title.", model="fast")
    assert "judgetree" not in done
    assert done["choices"][0]["message"]["content"]
    streamed = chunks_of(http, "Write a title.", model="fast", stream_options={"include_usage": True})
    assert streamed[-1]["usage"]["total_tokens"] > 0


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"model": "notes/none"}, 404, "notes/judge"),
        ({"messages": []}, 422, "messages"),
        ({"messages": said("a", "b")}, 422, "last message must be a user's"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, 422, "needs text"),
        ({"temperature": 3}, 422, "temperature"),
        ({"max_tokens": 0}, 422, "max_tokens"),
        ({"stop": [""]}, 422, "stop"),
        ({"messages": said("long " * 5000)}, 400, "longer than 20000 characters"),
        ({"judgetree": {"topk": 0}}, 422, "topk"),
    ],
)
def test_wrong_requests_have_openai_s_errors(
    http: httpx.Client, change: dict[str, object], status: int, words: str
) -> None:
    answer = http.post("/v1/chat/completions", json={"model": MODEL, "messages": said(FIRST)} | change)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_a_failed_model_is_an_error_before_and_within_a_stream(settings: Settings) -> None:
    broken = settings.with_models(llm="http://127.0.0.1:9/v1#none")
    with serving(broken, ServerOptions()) as url, httpx.Client(base_url=url, timeout=60) as http:
        body = {"model": MODEL, "messages": said(FIRST)}
        whole = http.post("/v1/chat/completions", json=body)
        assert (whole.status_code, whole.json()["error"]["type"]) == (502, "api_error")
        lines = http.post("/v1/chat/completions", json=body | {"stream": True}).text.split("\n\n")
        last = [json.loads(line[6:]) for line in lines if line.startswith("data: {")][-1]
        assert last["error"]["type"] == "api_error"
        assert "data: [DONE]" in lines


def test_a_system_that_is_not_served_is_no_model_after_conversations_were_listed(http: httpx.Client) -> None:
    http.get("/v1/conversations")
    assert http.post("/v1/chat/completions", json={"model": "llm", "messages": said(FIRST)}).status_code == 404


def test_a_conversation_has_the_name_that_its_owner_gave_it(settings: Settings) -> None:
    with closing(KeyTables(settings)) as tables:
        _, key = KeyBook(tables).add("ada", collections=None)
    keyed = {"headers": {"Authorization": f"Bearer {key}"}, "timeout": 60}
    with serving(settings, ServerOptions(needs_keys=True)) as url, httpx.Client(base_url=url, **keyed) as http:
        assert ask(http, FIRST, chat_id="one")["judgetree"]["conversation"] == "one"
        assert [each["name"] for each in http.get("/v1/conversations").json()["data"]] == ["one"]


@pytest.mark.parametrize("model", [MODEL, "fast"])
@pytest.mark.parametrize(
    ("reply", "ended", "refusal", "caveats"),
    [
        (ChatReply(text="40"), "stop", None, {}),
        (ChatReply(text="40", finish_reason="length"), "length", None, {"reply_cut": 1}),
        (ChatReply(text="40", finish_reason="content_filter"), "content_filter", None, {"filtered": 1}),
        (ChatReply(refusal="I can't."), "stop", "I can't.", {"declined": 1}),
    ],
)
def test_an_answer_ends_as_the_reply_that_wrote_it(
    http: httpx.Client,
    scripted: ScriptedServer,
    model: str,
    reply: ChatReply,
    ended: str,
    refusal: str | None,
    caveats: dict[str, int],
) -> None:
    kinds = ("read", "other", "closed_book")
    scripted.responses = lambda request: reply if request.prompt.kind in kinds else None
    whole = ask(http, CHAIN.question, model=model)
    (choice,) = whole["choices"]
    assert (choice["finish_reason"], choice["message"]["refusal"]) == (ended, refusal)
    assert choice["message"]["content"] == (refusal or "40")
    if model != "fast":
        assert set(whole["judgetree"]["caveats"]) == set(caveats)
    chunks = [chunk["choices"][0] for chunk in chunks_of(http, CHAIN.question, model=model) if chunk["choices"]]
    assert [each["finish_reason"] for each in chunks if each["finish_reason"]] == [ended]
    assert [each["delta"]["refusal"] for each in chunks if "refusal" in each["delta"]] == ([refusal] if refusal else [])


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("{", "application/json"),
        ("[]", "application/json"),
        ("", "application/json"),
        ("{}", "application/x-www-form-urlencoded"),
        ("{}", "text/plain"),
    ],
)
def test_a_body_that_is_no_json_object_is_told_so(http: httpx.Client, body: str, kind: str) -> None:
    answer = http.post("/v1/chat/completions", content=body, headers={"Content-Type": kind})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (422, None)
    assert error["message"] == "The body is no JSON object. Send one, with the header Content-Type: application/json."


def test_a_stream_of_null_is_none(http: httpx.Client) -> None:
    assert ask(http, CHAIN.question, stream=None)["object"] == "chat.completion"

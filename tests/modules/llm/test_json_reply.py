"""JSON of a schema: the format that is asked for, and what a garbled reply still holds."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.config.models import CacheMode
from judgetree.modules.errors import BudgetSpent, CacheMiss, ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.llm.cache import CachedLLM, CompletionCache
from judgetree.modules.llm.json_reply import (
    JsonChat,
    ReplyProblem,
    ask_for_best,
    ask_until_usable,
    asked_again,
    parse_json_reply,
)
from judgetree.modules.storage.texts import storable
from tests.modules.model_endpoints import as_new, llm_at, saying

QUESTION = [("user", "What is six by nine, as JSON?")]
SCHEMA: dict[str, object] = {"type": "object", "properties": {"product": {"type": "integer"}}}
REPLY = ChatReply(text='{"product": 54}')


@pytest.fixture
def server(started_server: ScriptedServer) -> ScriptedServer:
    as_new(started_server).responses = saying(REPLY)
    return started_server


def chat_at(server: ScriptedServer) -> JsonChat:
    return JsonChat(llm_at(server.base_url, retries=0), max_tokens=77)


def complete(chat: JsonChat, meter: CallMeter | None = None) -> Completion:
    return background_loop().run(chat.complete(QUESTION, SCHEMA, meter=meter or CallMeter(node="judge")))


def at_once(chat: JsonChat, calls: int) -> list[str]:
    async def all_of_them() -> list[Completion]:
        meter = CallMeter(node="judge")
        return await asyncio.gather(*(chat.complete(QUESTION, SCHEMA, meter=meter) for _ in range(calls)))

    return [completion.text for completion in background_loop().run(all_of_them())]


class Recorder:
    """A hook that keeps the formats in which it is asked."""

    def __init__(self, *replies: ChatReply) -> None:
        self.formats: list[str] = []
        self._hook = saying(*replies)

    def __call__(self, request: ReceivedRequest) -> ChatReply:
        self.formats.append(request.response_format)
        return self._hook(request)


def test_chat_has_the_name_of_its_model() -> None:
    assert JsonChat(llm_at("http://127.0.0.1:9/v1"), max_tokens=77).model == "m"


# --- the format ---


@pytest.mark.parametrize(
    ("refused", "formats"),
    [
        (set(), ["json_schema"]),
        ({"json_schema"}, ["json_schema", "json_object"]),
        ({"json_schema", "json_object"}, ["json_schema", "json_object", "text"]),
    ],
)
def test_format_steps_down_until_it_is_taken(server: ScriptedServer, refused: set[str], formats: list[str]) -> None:
    server.responses = hook = Recorder(REPLY)
    server.configure(refused_formats=refused)
    chat, meter = chat_at(server), CallMeter(node="judge")
    assert [complete(chat, meter).text for _ in range(3)] == [REPLY.text] * 3
    assert hook.formats == [formats[-1]] * 3
    assert [(record["attempts"], record["error"]) for record in meter.records] == [(len(formats), ""), (1, ""), (1, "")]


@pytest.mark.parametrize(("refused", "refusals"), [(["json_schema"], 1), (["json_schema", "json_object"], 2)])
def test_format_is_probed_once_when_many_ask_at_once(server: ScriptedServer, refused: list[str], refusals: int) -> None:
    server.configure(refused_formats=refused)
    assert at_once(chat_at(server), 8) == [REPLY.text] * 8
    assert [entry.status for entry in server.log] == [400] * refusals + [200] * 8


def test_calls_go_side_by_side_once_the_format_is_known(server: ScriptedServer) -> None:
    def answer(_: ReceivedRequest) -> ChatReply:
        together.wait()
        return REPLY

    chat = chat_at(server)
    complete(chat)
    together = threading.Barrier(3, timeout=20)  # nobody is answered before all three have asked
    server.responses = answer
    assert at_once(chat, 3) == [REPLY.text] * 3


@pytest.mark.parametrize(
    ("status", "error", "formats"),
    [
        *((status, ModelSetupError, ["json_schema"]) for status in (401, 403, 404)),
        (400, ModelRequestError, ["json_schema", "json_object", "text"]),
    ],
)
def test_refused_call_leaves_the_best_format_to_the_next(
    server: ScriptedServer, status: int, error: type[ModelCallError], formats: list[str]
) -> None:
    server.responses = hook = Recorder(*[ChatReply(status=status, text="who are you?")] * len(formats), REPLY)
    chat = chat_at(server)
    with pytest.raises(error, match=r"who are you\?"):
        complete(chat)
    assert complete(chat).text == REPLY.text
    assert hook.formats == [*formats, "json_schema"]


def test_failure_while_probing_leaves_the_format_to_the_next(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0})
    chat = chat_at(server)
    with pytest.raises(ModelCallError):
        complete(chat)
    server.configure(faults={}, refused_formats=["json_schema"])
    assert complete(chat).text == REPLY.text


def test_budget_that_is_spent_while_probing_is_told(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(status=400, text="Bad request"))
    with pytest.raises(BudgetSpent):
        complete(chat_at(server), CallMeter(node="judge", budget=TreeBudget(limit=1)))


def test_replay_steps_down_as_the_run_did_though_refusals_are_not_kept(server: ScriptedServer, tmp_path: Path) -> None:
    server.configure(refused_formats=["json_schema"])
    llm, meter = llm_at(server.base_url, retries=0), CallMeter(node="judge")
    with CompletionCache(tmp_path / "calls.sqlite") as cache:
        paid = complete(JsonChat(CachedLLM(llm, cache, endpoint=llm.endpoint), max_tokens=77))
        asked = len(server.log)
        replayed = JsonChat(CachedLLM(llm, cache, endpoint=llm.endpoint, mode="replay"), max_tokens=77)
        assert complete(replayed) == paid
        with pytest.raises(CacheMiss):
            background_loop().run(replayed.complete([("user", "Never asked?")], SCHEMA, meter=meter))
    assert len(server.log) == asked


# --- asking again ---


@pytest.mark.parametrize(("text", "quoted"), [("fifty", "fifty"), ("", "(nothing)")])
def test_asking_again_quotes_the_reply_and_says_what_was_wrong(text: str, quoted: str) -> None:
    reply = Completion(text=text, thinking="", finish_reason="stop")
    *before, (role, said), (_, complaint) = asked_again(QUESTION, reply, "It is no number.")
    assert (before, role, said) == (QUESTION, "assistant", quoted)
    assert "It is no number." in complaint


# --- reading ---


class Product(BaseModel):
    product: int
    remark: str = ""


GOOD = json.dumps({"product": 54, "remark": "six by nine"})
DECOY = json.dumps({"product": 42})


@pytest.mark.parametrize(
    "reply",
    {
        "plain": GOOD,
        "white space": f"\n\n  {json.dumps(json.loads(GOOD), indent=2)}\n",
        "byte order mark": f"\ufeff{GOOD}",
        "thinking with a decoy": f"<think>\nPerhaps {DECOY}?\n</think>\n\n{GOOD}",
        "thinking without its opening tag": f"Perhaps {DECOY}?</think>{GOOD}",
        "fence": f"```json\n{GOOD}\n```",
        "fence without a language": f"```\n{GOOD}\n```",
        "thinking and fence": f"<think>hm</think>\n```json\n{GOOD}\n```",
        "prose around a fence": f"Sure, here {{as asked}}:\n```json\n{GOOD}\n```\nHope it {{helps}}!",
        "prose before": f"My answer: {GOOD}",
        "prose behind": f"{GOOD}\nThat is all.",
        "trailing comma": GOOD.replace("}", ",}"),
        "single quotes": GOOD.replace('"', "'"),
        "comment": GOOD.replace("54,", "54, // by heart\n"),
        "closing brace missing": GOOD.removesuffix("}"),
        "prose with braces before": f"The set {{a, b}} is asked for.\n{GOOD}",
        "prose with an open brace before a fence": f"Sure {{here:\n```json\n{GOOD}\n```",
        "list": f"[{GOOD}]",
        "object of another kind before": f'{{"thought": "hm"}}\n{GOOD}',
        "broken object that does not fit before": f'{{"thought": "hm",}}\n{GOOD}',
        "open object in the thinking": f'<think>{{"product": 42, "or</think>{GOOD}',
        "quoted tag in the thinking": f'<think>It says "</think>" there</think>{GOOD}',
        "further key": GOOD.replace("{", '{"confidence": 0.9, '),
        "fence with thinking, trailing comma": f"<think>{DECOY}</think>```json\n{GOOD.replace('}', ',}')}\n```",
    }.items(),
    ids=lambda reply: reply[0],
)
def test_object_is_found_in_a_garbled_reply(reply: tuple[str, str]) -> None:
    assert parse_json_reply(reply[1], Product) == Product(product=54, remark="six by nine")


@pytest.mark.parametrize("remark", ["R1 thinks in <think>", "up to </think>, then", "<think>six</think> by nine"])
def test_tags_of_thinking_that_a_reply_quotes_reach_its_reader(remark: str, server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text=f"<think>hm</think>{json.dumps({'product': 54, 'remark': remark})}"))
    completion = complete(chat_at(server))
    assert completion.thinking == "hm"
    assert parse_json_reply(completion.text, Product).remark == remark


@pytest.mark.parametrize("end", ["}", ",}"], ids=["sound", "to be repaired"])
@pytest.mark.parametrize("before", ["", "Sure: "])
def test_an_object_that_a_value_quotes_is_not_the_reply(before: str, end: str) -> None:
    """A passage with an object in a fence gave the verdict, where the reply had line breaks in its strings."""
    quoted = DECOY.replace('"', r"\"")
    reply = f'{before}{{"remark": "as in\n```json\n{quoted}\n```\nthere", "product": 54{end}'
    assert parse_json_reply(reply, Product) == Product(product=54, remark=f"as in\n```json\n{DECOY}\n```\nthere")


def test_quotes_left_unescaped_are_repaired() -> None:
    assert parse_json_reply('{"remark": "the "first" one", "product": 2}', Product).remark == 'the "first" one'


def test_fence_inside_a_value_is_left_alone() -> None:
    reply = json.dumps({"remark": 'says ```\n{"product": 2}\n```', "product": 0})
    assert parse_json_reply(reply, Product).product == 0


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ("", "no JSON object"),
        (" \n", "no JSON object"),
        ("It is a little more than fifty, but it is hard to say.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ("2", "no JSON object"),
        ('"{}"', "no JSON object"),
        (f"<think>Perhaps {GOOD}", "no JSON object"),
        (f"<think>Perhaps {GOOD}</think>", "no JSON object"),
        ('{"a":' * 21, "nested at most 20 deep"),
        ('{"a":' * 100_000, "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ("x{" + "[" * 100_000, "nested at most 20 deep"),
        ("{}", r"does not fit the schema \(product: Field required\)"),
        ('{"product": "many", "remark": ["none"]}', "product: .*; remark: "),
    ],
    ids=lambda value: value[:40],
)
def test_reply_that_holds_none_is_a_problem_that_says_what_is_wrong(reply: str, complaint: str) -> None:
    with pytest.raises(ReplyProblem, match=complaint):
        parse_json_reply(reply, Product)


@given(
    product=st.integers(-(2**53), 2**53),
    remark=st.text(max_size=50),
    garbling=st.sampled_from(["{}", "```json\n{}\n```", "<think>hm</think>{}", "hm</think>\n```\n{}\n```"]),
)
@example(product=54, remark="</think>", garbling="{}")
@example(product=54, remark="six <think> by </think> nine", garbling="```json\n{}\n```")
@example(product=54, remark="<think>", garbling="<think>hm</think>{}")
@example(product=54, remark="</think>", garbling="Sure! {}\nDone.")
@example(product=54, remark="</think>", garbling="Sure!\n```json\n{}\n```\nDone.")
@example(product=54, remark="</think>", garbling='<think>It says "</think>" there</think>{}')
@example(product=54, remark="```", garbling="```json\n{}\n```")
@example(product=54, remark="six ```by```", garbling="Here:\n```json\n{}\n```\nHope ```it``` helps")
def test_what_is_written_as_json_comes_back(product: int, remark: str, garbling: str) -> None:
    reply = garbling.replace("{}", json.dumps({"product": product, "remark": remark}))
    assert parse_json_reply(reply, Product) == Product(product=product, remark=storable(remark))


@pytest.mark.parametrize("end", ["}", ",}"], ids=["sound", "to be repaired"])
def test_escapes_that_no_store_keeps_are_taken_out(end: str) -> None:
    class Asked(BaseModel):
        questions: list[str]

    reply = parse_json_reply('{"questions": ["a\\u0000b", "c\\ud800d"]' + end, Asked)
    assert reply.questions == ["ab", "c?d"]


class Result(BaseModel):
    product: int


@pytest.mark.parametrize("asks", ["until_usable", "for_best"])
@pytest.mark.parametrize("texts", [("fifty",), ("fifty", '{"product": 54}')], ids=["unusable", "repaired"])
def test_a_cached_reply_that_no_parser_accepted_is_asked_for_anew_except_in_a_replay(
    asks: str, texts: tuple[str, ...], server: ScriptedServer, tmp_path: Path
) -> None:
    def read(completion: Completion) -> Result:
        return parse_json_reply(completion.text, Result)

    def asked(mode: CacheMode) -> tuple[Result | None, int]:
        """What is read by a run of its own, with at most one repair, and its calls of the endpoint."""
        before = len(server.log)
        llm, how = llm_at(server.base_url, retries=0), {"meter": CallMeter(node="judge"), "max_repairs": 1}
        with CompletionCache(tmp_path / "calls.sqlite") as cache:
            chat = JsonChat(CachedLLM(llm, cache, endpoint=llm.endpoint, mode=mode), max_tokens=77)
            try:
                if asks == "until_usable":
                    found = background_loop().run(ask_until_usable(chat, QUESTION, SCHEMA, read, **how))  # type: ignore[arg-type]
                else:
                    best = ask_for_best(chat, QUESTION, SCHEMA, lambda each, _: (read(each), ""), **how)  # type: ignore[arg-type]
                    found = background_loop().run(best)[0]
            except ReplyProblem:
                found = None
            return found, len(server.log) - before

    server.responses = saying(*(ChatReply(text=text) for text in texts))
    is_repaired = len(texts) == 2
    first = asked("write")
    assert first == (Result(product=54) if is_repaired else None, 2)
    assert asked("replay") == (first[0], 0)
    server.responses = saying(REPLY)
    assert asked("read") == (Result(product=54), 0 if is_repaired else 1)
    assert asked("write") == (Result(product=54), 0 if is_repaired else 1)
    assert asked("write") == asked("replay") == (Result(product=54), 0)

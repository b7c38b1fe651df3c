"""Chat models of one's own where a spec names a model: by import path, as objects, and what is refused."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import pytest

from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners, TextListeners
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, SettingsError
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.llm.own import OwnLLM
from judgetree.modules.parts import register_object
from judgetree.modules.settings import Settings, load_settings
from judgetree.testing import check_chat_model

MODULE = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from tests.modules.llm.test_own_llm import Mine


def make(settings):
    return Mine()


def chat():
    return FakeListChatModel(responses=["Vellin"])


def nothing():
    return 5


def leaving():
    raise SystemExit(0)


mine = Mine()
"""


class Mine:
    """The least that a model must do: answer, and record its call."""

    model = "mine"

    def __init__(self, answer: Callable[[], str] = lambda: "Vellin") -> None:
        self._answer = answer

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        started = time.perf_counter()
        text = self._answer()
        for stop in options.stop:
            text = text.partition(stop)[0]
        Listeners(**listeners).settle(text=text, thinking="")
        meter.record(kind="chat", model=self.model, started=started, prompt_tokens=3, completion_tokens=1)
        return Completion(text=text, finish_reason="stop")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    (tmp_path / "my_models.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield load_settings(home=tmp_path / "home")
    sys.modules.pop("my_models", None)


def asked(spec: str, settings: Settings) -> tuple[str, CallMeter]:
    meter = CallMeter(node="test")
    completion = asyncio.run(create_llm(spec, settings, CallGate(2)).complete([("user", "Which oil?")], meter=meter))
    return completion.text, meter


@pytest.mark.parametrize("name", ["make", "mine", "chat"])
def test_a_model_is_named_by_its_import_path(name: str, settings: Settings) -> None:
    text, meter = asked(f"my_models:{name}", settings)
    assert (text, len(meter.records)) == ("Vellin", 1)


def test_an_object_is_named_once_it_was_given(settings: Settings) -> None:
    assert asked(register_object(Mine(lambda: "Corvin")), settings)[0] == "Corvin"


def test_the_least_that_a_model_must_do_keeps_the_contract(settings: Settings) -> None:
    check_chat_model(create_llm("my_models:make", settings, CallGate(8)))


def test_versions_of_a_model_are_told_apart_in_caches_and_fingerprints(settings: Settings, tmp_path: Path) -> None:
    first = create_llm("my_models:make", settings, CallGate(2))
    (tmp_path / "my_models.py").write_text(f"{MODULE}# another version\n", encoding="utf-8")
    del sys.modules["my_models"]
    second = create_llm("my_models:make", settings, CallGate(2))
    assert isinstance(first, OwnLLM)
    assert isinstance(second, OwnLLM)
    assert first.endpoint != second.endpoint
    assert first.fields != second.fields


@dataclass
class Configured(Mine):
    """Has settings of its own."""

    style: str

    def __post_init__(self) -> None:
        super().__init__()


@pytest.mark.parametrize("told_by", ["fields", "fingerprint", "a dataclass"])
def test_objects_of_one_class_are_told_apart_by_what_they_say_of_themselves(told_by: str, settings: Settings) -> None:
    def named(style: str) -> str:
        model = Configured(style) if told_by == "a dataclass" else Mine()
        if told_by == "fields":
            model.fields = style  # type: ignore[attr-defined]
        elif told_by == "fingerprint":
            model.fingerprint = lambda: {"style": style}  # type: ignore[attr-defined]
        llm = create_llm(register_object(model), settings, CallGate(2))
        assert isinstance(llm, OwnLLM)
        return llm.endpoint

    assert named("brief") != named("long")
    assert named("brief") == named("brief")


def test_a_failure_names_the_model(settings: Settings) -> None:
    spec = register_object(Mine(lambda: {}["oil"]))
    with pytest.raises(ModelCallError, match=r"Model '.*Mine.*' failed: KeyError: 'oil'"):
        asked(spec, settings)


class Recording(Mine):
    """Records so many requests a call, and returns anything."""

    def __init__(self, requests: int, returned: object) -> None:
        super().__init__()
        self._requests, self._returned = requests, returned

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **options: object) -> Completion:  # type: ignore[override]
        for _ in range(self._requests):
            meter.record(kind="chat", model=self.model, started=0.0, prompt_tokens=3, completion_tokens=1)
        return self._returned  # type: ignore[return-value]


@pytest.mark.parametrize(("requests", "attempts", "prompt_tokens"), [(0, 1, None), (1, 1, 3), (3, 3, 9)])
def test_a_call_counts_all_that_it_records_and_never_nothing(
    requests: int, attempts: int, prompt_tokens: int | None, settings: Settings
) -> None:
    text, meter = asked(
        register_object(Recording(requests, Completion(text="a\x00b\ud800", finish_reason="stop"))), settings
    )
    (record,) = meter.records
    assert (text, record["attempts"]) == ("ab?", attempts)
    assert record["estimated"] if prompt_tokens is None else record["prompt_tokens"] == prompt_tokens


@pytest.mark.parametrize("returned", [None, "Vellin", Completion(text=None, finish_reason="stop")])  # type: ignore[arg-type]
def test_what_is_no_completion_is_a_failed_call(returned: object, settings: Settings) -> None:
    with pytest.raises(ModelCallError, match=r"Model '.*Recording.*' failed: TypeError: complete returned"):
        asked(register_object(Recording(1, returned)), settings)


@pytest.mark.parametrize(
    ("spec", "changed", "said"),
    [
        ("my_models:nothing", {}, "'my_models:nothing' gives 5. Give a ChatLLM, or a model of LangChain"),
        ("my_models:leaving", {}, "'my_models:leaving' cannot be made: SystemExit: 0"),
        ("my_models:missing", {}, "Unknown model 'my_models:missing'.*Allowed: openai:MODEL.*module:name of your own"),
        ("opnai:gpt-4o", {}, "Unknown model 'opnai:gpt-4o'.*Allowed: openai:MODEL"),
        ("my_models:chat", {"temperature": 0.5}, "is one of LangChain, which keeps its own temperature"),
        ("tests:Mine(0a1b2c3d)", {}, "was given as an object. Give it again"),
    ],
)
def test_what_is_no_model_is_refused(spec: str, changed: dict[str, object], said: str, settings: Settings) -> None:
    with pytest.raises(SettingsError, match=said):
        create_llm(spec, settings.model_copy(update=changed), CallGate(2))

"""The embedded model: what goes wrong without it, and (marked local_model) what it answers."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import DependencyError, SettingsError
from judgetree.modules.judge.prompts import needed_messages
from judgetree.modules.llm.local import LocalModel, open_local_model, start_local_model, stop_local_models
from judgetree.modules.llm.model_files import ensure_model_file


def test_missing_xllamacpp_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(DependencyError, match=r"pip install 'judgetree\[local\]'"):
        start_local_model(tmp_path / "model.gguf")


def test_file_that_llama_cpp_cannot_load_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xllamacpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(SettingsError, match=r"cannot load .*broken\.gguf"):
        open_local_model(str(broken), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_own_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        open_local_model(str(tmp_path / "absent.gguf"), tmp_path)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = ensure_model_file(tmp_path_factory.mktemp("home"))
    yield path
    stop_local_models()
    path.unlink()


@pytest.fixture(scope="module")
def model(model_file: Path) -> LocalModel:
    return start_local_model(model_file)


def chat(model: LocalModel, messages: list[Message], **params: object) -> dict[str, object]:
    body = {
        "model": model.model_name,
        "messages": [{"role": role, "content": text} for role, text in messages],
        "temperature": 0,
        **params,
    }
    request = urllib.request.Request(
        f"{model.base_url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    request.add_header("authorization", f"Bearer {model.api_key}")
    with urllib.request.urlopen(request, timeout=300) as response:
        reply: dict[str, object] = json.load(response)
    return reply


def choice(reply: dict[str, object]) -> dict[str, object]:
    choices = reply["choices"]
    assert isinstance(choices, list)
    first: dict[str, object] = choices[0]
    return first


PASSAGE = "Accra is the capital of Ghana. It lies on the Gulf of Guinea."


@pytest.mark.local_model
def test_one_process_runs_one_server_a_file(model_file: Path, model: LocalModel) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(start_local_model, [model_file] * 4)) == {model}
    assert model.base_url.startswith("http://127.0.0.1:")
    assert model.model_name == model_file.stem


@pytest.mark.local_model
def test_first_token_has_its_alternatives_in_the_shape_of_openai(model: LocalModel) -> None:
    messages = needed_messages("What is the capital of Ghana?", PASSAGE)
    reply = choice(chat(model, messages, max_tokens=1, logprobs=True, top_logprobs=20))
    logprobs = reply["logprobs"]
    assert isinstance(logprobs, dict)
    (token,) = logprobs["content"]
    alternatives = {item["token"]: item["logprob"] for item in token["top_logprobs"]}
    assert len(alternatives) == 20
    assert alternatives["Yes"] > alternatives["No"]
    assert all(logprob <= 0 for logprob in alternatives.values())


@pytest.mark.local_model
def test_prefix_of_the_last_judge_call_is_not_computed_again(model: LocalModel) -> None:
    query = "What is the capital of Ghana, and on which gulf does it lie?"
    chat(model, needed_messages(query, "Lima is the capital of Peru."), max_tokens=1)
    chat(model, [("system", "Be brief."), ("user", "Hello")], max_tokens=1)
    usage = chat(model, needed_messages(query, PASSAGE), max_tokens=1)["usage"]
    assert isinstance(usage, dict)
    assert usage["prompt_tokens_details"]["cached_tokens"] > 30


@pytest.mark.local_model
def test_schema_holds(model: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"score": {"type": "integer", "enum": [0, 1, 2]}},
        "required": ["score"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    reply = choice(chat(model, [("user", "Say hello.")], max_tokens=30, response_format=response_format))
    message = reply["message"]
    assert isinstance(message, dict)
    assert json.loads(message["content"])["score"] in (0, 1, 2)


@pytest.mark.local_model
def test_web_pages_cannot_read_the_server(model: LocalModel) -> None:
    address = model.base_url.removesuffix("/v1")
    headers = {"Origin": "https://elsewhere.example", "Authorization": f"Bearer {model.api_key}"}
    request = urllib.request.Request(f"{address}/v1/models", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.headers["Access-Control-Allow-Origin"] == ""
    for path in ("/", "/slots"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address + path, timeout=30)
        refused.value.close()


@pytest.mark.local_model
def test_other_users_of_the_machine_cannot_ask_it(model: LocalModel) -> None:
    for headers in ({}, {"Authorization": "Bearer none"}):
        request = urllib.request.Request(f"{model.base_url}/completions", b'{"prompt": "."}', headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        assert refused.value.code == 401
        refused.value.close()
    assert model.api_key not in repr(model)


@pytest.mark.local_model
def test_process_with_a_running_model_ends_quietly(model_file: Path) -> None:
    script = "import sys; from pathlib import Path; from judgetree.modules.llm.local import start_local_model; "
    script += "start_local_model(Path(sys.argv[1]), context_tokens=512)"
    ended = subprocess.run(
        [sys.executable, "-c", script, str(model_file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

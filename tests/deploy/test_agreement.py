"""What all files of ``deploy/`` say of judgetree: commands, settings, versions, times to end, and no secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from judgetree import __version__
from judgetree.app.server.application import CLOSING_S, create_app
from judgetree.app.server.safety.start import uvicorn_config
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.background.threads import LAST_WORDS_S
from judgetree.modules.settings import Settings, load_settings, without_secrets
from tests.app.conftest import every_command
from tests.deploy.files import (
    DEPLOY,
    OTHERS_NAMES,
    compose,
    container,
    env_file,
    filled_in,
    of,
    pods,
    resource,
    servers,
)

COMMANDS = every_command()
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.name != ".env")
GUIDE = (DEPLOY / "README.md").read_text(encoding="utf-8")


def parsed(words: list[str]) -> dict[str, Any]:
    """The options of a command of judgetree; it is not executed."""
    name = next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS and name)
    context = COMMANDS[name].make_context(name, words[len(name.split()) :])
    return {"": name, **context.params}


def serve_commands() -> dict[str, list[str]]:
    ((*image,),) = (each.words for each in of("CMD"))
    return {
        "Dockerfile": image,
        **{name: [filled_in(word) for word in server["command"]] for name, server in servers().items()},
        "Deployment": container(pods()["Deployment"])["args"],
    }


@pytest.mark.parametrize("file", serve_commands())
def test_the_command_of_a_container_is_one_of_judgetree(file: str) -> None:
    assert [each.words for each in of("ENTRYPOINT")] == [["judgetree"]]
    options = parsed(serve_commands()[file])
    assert (options[""], options["host"]) == ("serve", "0.0.0.0")
    assert [each.rest for each in of("EXPOSE")] == [str(options["port"])]


def test_the_check_sees_an_unknown_option() -> None:
    with pytest.raises(Exception, match="No such option: --workers"):
        parsed(["serve", "--workers=2"])


def guide_commands() -> list[list[str]]:
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL))
    blocks = re.sub(r"\s+#.*", "", blocks)
    return [line.split() for line in re.findall(r"(?:judgetree-1|-- judgetree) (.+)$", blocks, re.MULTILINE)]


@pytest.mark.parametrize("words", guide_commands(), ids=" ".join)
def test_the_guide_shows_commands_of_judgetree(words: list[str]) -> None:
    assert parsed([word.replace("/corpus", str(DEPLOY)) for word in words])[""] in {"keys add", "index"}


def test_the_guide_names_files_and_services_that_exist() -> None:
    assert len(guide_commands()) == 3
    for path in re.findall(r"(?<![\w/.])deploy/[\w./]+\w", GUIDE):
        assert path == "deploy/.env" or (DEPLOY.parent / path).exists(), path
    assert resource("Pod")["metadata"]["name"] in GUIDE


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_variable_is_a_setting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    known = {f"JUDGETREE_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"\bJUDGETREE_[A-Z_]*[A-Z]\b", text)) <= known


def environments() -> dict[str, dict[str, str]]:
    """The variables of each server, with those of the example or of the map that it is given."""
    example = env_file(DEPLOY / "env.example")
    return {
        **{
            name: example | {key: filled_in(value, **example) for key, value in server["environment"].items()}
            for name, server in servers().items()
        },
        "Deployment": dict(resource("ConfigMap")["data"]),
    }


@pytest.mark.parametrize("server", environments())
def test_the_variables_are_settings_with_values_that_judgetree_takes(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environments()[server].items():
        assert name in OTHERS_NAMES or name.removeprefix("JUDGETREE_").lower() in Settings.model_fields
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.llm == "openai:gpt-4o-mini"
    assert settings.checkpoint_url == "postgresql://postgres:5432/judgetree"
    assert settings.milvus_uri == "http://milvus:19530"
    assert settings.secrets() == (), "words of these would be starred out in messages"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_has_a_secret(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert without_secrets(text) == text
    given = re.findall(r"^\s*(\w*(?:PASSWORD|KEY|TOKEN)\w*)[:=][ ]?(.*)$", text, re.MULTILINE)
    assert [name for name, value in given if value and not re.fullmatch(r"\$\{\w+:\?[^}]+\}", value)] == []
    assert ".env" in (DEPLOY.parent / ".gitignore").read_text(encoding="utf-8").splitlines()


def images() -> list[str]:
    mine = [container(pod)["image"] for pod in pods().values()]
    return [
        *(each.rest.split()[0] for each in of("FROM")),
        *(each["image"] for each in compose()["services"].values()),
        *mine,
    ]


@pytest.mark.parametrize("image", sorted(set(images())))
def test_an_image_has_a_whole_version(image: str) -> None:
    name, _, tag = image.rpartition(":")
    assert re.match(r"v?\d+\.\d+", tag), image
    assert "judgetree" not in name or tag == __version__


def graces() -> dict[str, tuple[list[str], float]]:
    """The command of each server, and the seconds between SIGTERM and SIGKILL."""
    pod = pods()["Deployment"]
    before = container(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]
    return {
        **{
            name: (server["command"], float(server["stop_grace_period"].rstrip("s")))
            for name, server in servers().items()
        },
        "Deployment": (container(pod)["args"], pod["terminationGracePeriodSeconds"] - before),
    }


@pytest.mark.parametrize("server", graces())
def test_a_server_has_the_time_to_end(server: str) -> None:
    command, grace_s = graces()[server]
    given = parsed([filled_in(word) for word in command])["shutdown_seconds"]
    config = uvicorn_config(create_app(load_settings()), ServerOptions(max_shutdown_seconds=given))
    assert config.timeout_graceful_shutdown is not None
    assert config.timeout_graceful_shutdown + CLOSING_S + LAST_WORDS_S <= grace_s, (
        "an upload may wait for another writer"
    )

"""The files of ``deploy/``, read the way that the tests compare them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).parents[2]
DEPLOY = REPO / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OTHERS_NAMES = {
    "PATH",
    "PYTHONUNBUFFERED",
    "PGUSER",
    "PGPASSWORD",
    "POSTGRES_PASSWORD",
    "PUBLIC_NAME",
    "LISTEN",
    "PROXY_SUBNET",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
}
"""Variables that are read by Python, libpq, OpenTelemetry and the compose file itself."""


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """A line of a Dockerfile, with those that continue it."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The strings of its JSON array."""
        found = json.loads(self.rest[self.rest.index("[") :])
        assert isinstance(found, list)
        return found


def dockerfile() -> list[Instruction]:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "")
    lines = [line.partition(" ") for line in text.splitlines() if line.strip()]
    return [Instruction(name=name, rest=rest.strip()) for name, _, rest in lines]


def of(name: str) -> list[Instruction]:
    return [each for each in dockerfile() if each.name == name]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))


def servers() -> dict[str, dict[str, Any]]:
    """The services of the compose file that run judgetree."""
    return {name: each for name, each in compose()["services"].items() if "judgetree" in each["image"]}


def filled_in(text: str, **values: str) -> str:
    """A text of the compose file as Compose reads it: ``${NAME:-default}`` and ``${NAME:?message}`` replaced."""

    def value(match: re.Match[str]) -> str:
        default = match[2][2:] if match[2].startswith(":-") else "given"
        return values.get(match[1], default)

    return re.sub(r"\$\{(\w+)((?::[-?][^}]*)?)\}", value, text)


def env_file(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def resources() -> list[dict[str, Any]]:
    """Everything that the manifests make."""
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def resource(kind: str) -> dict[str, Any]:
    (found,) = (each for each in resources() if each["kind"] == kind)
    return found


def pods() -> dict[str, dict[str, Any]]:
    """The specifications of all pods, by the kind of what makes them."""
    return {"Deployment": resource("Deployment")["spec"]["template"]["spec"], "Pod": resource("Pod")["spec"]}


def container(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod["containers"]
    return dict(found)

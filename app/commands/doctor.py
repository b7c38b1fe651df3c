"""``judgetree doctor``: tries every service that a question needs, with a remedy for each that fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from ...modules.errors import DependencyError, JudgetreeError, SettingsError, reason_of
from ..terminal.exit_status import USER_ERROR
from ..terminal.terminal import busy, write_json
from .options import Json

if TYPE_CHECKING:
    from ...modules.settings import Settings

KEYS = ("OPENAI_API_KEY", "DASHSCOPE_API_KEY")
_PROBE = [("system", "You are a test."), ("user", "Reply with the word ok.")]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of one check."""

    name: str
    works: bool
    detail: str
    """What works, or what is wrong and what to do."""
    is_needed: bool = True
    """Whether every question needs it."""


def doctor(as_json: Json = False) -> None:
    """Try everything that a question needs, with a tiny model call; say what to do about what fails.

    Examples:
        judgetree doctor
    """
    with busy():
        from ...modules.settings import load_settings

    settings = load_settings()
    checks: list[Check] = []
    for check in run_checks(settings):
        checks.append(check)
        if not as_json:
            _show(check)
    can_ask = all(check.works for check in checks if check.is_needed)
    if as_json:
        write_json(
            {"can_ask": can_ask, "settings": describe_settings(settings), "checks": [asdict(check) for check in checks]}
        )
    else:
        verdict = "Questions can be asked." if can_ask else "No question can be asked until that is mended."
        _stdout().print(Text(verdict, style="bold" if can_ask else "bold red"))
    if not can_ask:
        raise typer.Exit(USER_ERROR)


def run_checks(settings: Settings) -> Iterator[Check]:
    """Run the checks one by one and yield each result."""
    from ...modules.network.proxies import named_proxies

    shown = "; ".join(f"{name}={value}" for name, value in describe_settings(settings).items())
    yield Check(name="settings", works=True, detail=shown)
    yield _env_file_check()
    if proxies := named_proxies():
        yield _try("proxies", lambda: _try_proxies(proxies, settings))
    yield _try("home", lambda: _try_home(settings.home), is_needed=False)
    if settings.prompts is not None:
        yield _try("prompts", lambda: _try_prompts(settings))
    yield _try("milvus", lambda: _try_milvus(settings))
    yield (checkpoints := _try("checkpoints", lambda: _try_checkpoints(settings)))
    if checkpoints.works and (store := _try("store", lambda: _try_store(settings), is_needed=False)).detail:
        yield store
    specs = ("local:minilm", "local:use") if settings.embeddings == "auto" else (settings.embeddings,)
    for spec in specs:
        yield _try("embedder", lambda spec=spec: _try_embedder(spec, settings))  # type: ignore[misc]
    for spec in dict.fromkeys((settings.llm_spec, settings.judge_spec)):
        yield _try("model", lambda spec=spec: _try_model(spec, settings))  # type: ignore[misc]
    yield _try("renderer", _try_renderer, is_needed=False)


def describe_settings(settings: Settings) -> dict[str, str]:
    """Return all settings that are not empty, and the keys of the environment, with secrets hidden."""
    shown = {name: str(value) for name, value in settings.model_dump(mode="json").items() if value not in ("", None)}
    return {**shown, **{key: "**********" for key in KEYS if os.environ.get(key)}}


def _env_file_check() -> Check:
    from ...modules.settings import Settings
    from ...modules.trust.consent import is_trusted
    from ...modules.trust.owners import SAFE_FOLDERS, is_named_safe, owner_of
    from ...modules.trust.usable import env_file_here, settings_in

    file = env_file_here()
    if file is None:
        return Check(name=".env", works=True, detail=f"none in {Path.cwd()}", is_needed=False)
    found = list(settings_in(file, Settings.model_fields, str(Settings.model_config["env_prefix"])))
    if is_trusted(file):
        why = "trusted as it is now (judgetree trust)"
    elif is_named_safe(file.path):
        why = f"in a folder of {SAFE_FOLDERS}"
    elif any(each.needs_consent for each in found):
        why = "what it names is set in the environment"
    else:
        why = "names no code, address or file"
    return Check(name=".env", works=True, detail=_of_owner(file.path, owner_of(file.path), why), is_needed=False)


def _try_proxies(proxies: dict[str, str], settings: Settings) -> str:
    """Return which of the addresses of the settings are asked through a proxy; a malformed one of those fails."""
    from ...modules.network.proxies import proxy_for

    shown = "; ".join(f"{name}={value}" for name, value in proxies.items())
    ways = [f"{address} through {proxy}" for address in _asked(settings) if (proxy := proxy_for(address))]
    asked = "; ".join(ways) or "no address of the settings is asked through them"
    return f"{shown}; {asked}; servers of this machine are asked directly unless JUDGETREE_PROXY_LOOPBACK is on"


def _asked(settings: Settings) -> list[str]:
    """Return the http addresses that the settings name, each once, without what a proxy is not for."""
    from ...modules.addresses import OPENAI_BASE_URL
    from ...modules.llm.factory import is_local, resolve_endpoint, without_completion
    from ...modules.llm.own import is_own

    found = [str(settings.searxng_url)]
    for spec in (settings.llm_spec, settings.judge_spec, settings.condense_llm, settings.embeddings):
        if not spec or spec == "auto" or is_local(spec) or is_own(spec):
            continue
        with suppress(SettingsError):  # the check of the model tells of it
            found.append(str(resolve_endpoint(without_completion(spec), settings).base_url or OPENAI_BASE_URL))
    return [each for each in dict.fromkeys(found) if each.startswith(("http://", "https://"))]


def _try_home(home: Path) -> str:
    from ...modules.trust.closed import is_open
    from ...modules.trust.owners import owner_of

    if not home.exists():
        return f"{home}, made at the first use"
    if opened := next((place for place in (home, *home.iterdir()) if is_open(place)), None):
        raise SettingsError(f"{opened} is open to others. Unless a group shares it: chmod -R go= {home}")
    return _of_owner(home, owner_of(home), "closed to others")


def _of_owner(place: Path, owner: str, said: str) -> str:
    return f"{place}{owner and f' of {owner}'}, {said}"


def _try(name: str, probe: Callable[[], str], *, is_needed: bool = True) -> Check:
    from ...modules.settings import without_secrets

    works = False
    try:
        with busy(f"trying: {name}"):
            works, detail = True, probe()
    except JudgetreeError as error:
        detail = str(error)
    except OSError as error:
        detail = f"{reason_of(error)}. Check the path and its permissions."
    return Check(name=name, works=works, detail=without_secrets(detail), is_needed=is_needed)


def _try_prompts(settings: Settings) -> str:
    from ...modules.prompts.reading import load_prompts

    return f"of your own in {settings.prompts}: {', '.join(load_prompts(settings.prompts)) or 'none'}"


def _try_milvus(settings: Settings) -> str:
    from ...graphs.drawing.words import count_of
    from ...modules.index.connection import connect
    from ...modules.index.schema import list_collections

    with closing(connect(settings.milvus_address, settings.milvus_token.get_secret_value())) as connection:
        names = list_collections(connection.client)
        kind = "Milvus Lite" if connection.is_lite else "Milvus"
    listed = f": {', '.join(names)}" if names else "; make one with `judgetree index`"
    return f"{kind} at {settings.milvus_address}, {count_of(len(names), 'collection')}{listed}"


def _try_checkpoints(settings: Settings) -> str:
    from ...graphs.stores.registry import store_of
    from ...modules.background_loop import background_loop
    from ..terminal.saved import open_graph

    with open_graph(settings) as graph:
        graph.list_threads(1)
    background_loop().run(store_of(settings.checkpoint_url).check_writable())
    return settings.checkpoint_url


def _try_store(settings: Settings) -> str:
    """Return what the server of the store says of itself; empty for a store without one."""
    from ...graphs.stores.registry import store_of
    from ...modules.background_loop import background_loop

    report = background_loop().run(store_of(settings.checkpoint_url).report())
    if report is None:
        return ""
    if report.warnings:
        raise SettingsError("; ".join([report.detail, *report.warnings]))
    return report.detail


def _try_embedder(spec: str, settings: Settings) -> str:
    from ...modules.embedding.embedder import create_embeddings

    embedder = create_embeddings(spec, settings.model_copy(update={"retries": 0}), cache=False)
    return f"{embedder.name}, {len(embedder.embed_query('test'))} dimensions"


def _try_model(spec: str, settings: Settings) -> str:
    from ...modules.background_loop import background_loop
    from ...modules.calls.usage import CallMeter
    from ...modules.llm.call_gate import CallGate
    from ...modules.llm.factory import create_llm

    llm = create_llm(spec, settings.model_copy(update={"retries": 0}), CallGate(1))
    meter = CallMeter(node="doctor")
    background_loop().run(llm.complete(_PROBE, meter=meter))
    return f"{spec} answered in {meter.records[0]['seconds']:.1f} s"


def _try_renderer() -> str:
    from ...graphs.drawing.svg import find_renderer

    renderer = find_renderer()
    if renderer is None:
        raise DependencyError("no program draws SVG: pip install graphviz-pure. Text, HTML and DOT work without.")
    return renderer


def _show(check: Check) -> None:
    word, style = ("ok", "green") if check.works else ("fails", "red") if check.is_needed else ("lacks", "yellow")
    line = Text(f"{word:<6}", style=style).append(f"{check.name:<12}", style="bold").append(check.detail, style="none")
    _stdout().print(line)


def _stdout() -> Console:
    return Console(highlight=False, soft_wrap=True)

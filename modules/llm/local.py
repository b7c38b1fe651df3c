"""The embedded language model: llama.cpp's own server, run in this process on a loopback port."""

from __future__ import annotations

import atexit
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DependencyError, SettingsError
from .model_files import Progress, ensure_weights, find_own_weights

if TYPE_CHECKING:
    import xllamacpp

logger = logging.getLogger(__name__)

CONTEXT_TOKENS = 4096
_CACHE_RAM_MIB = 512
"""Memory for the states of earlier prompts, about 28 kB a token: some 18,000 tokens of prefixes."""
_SILENT = -1
"""llama.cpp writes hundreds of lines to stderr at a start, and some at each call."""


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A model that answers at an address of this machine, as long as this process lives."""

    base_url: str
    """Of an OpenAI-compatible endpoint, with ``/v1``; it asks for no key."""
    model_name: str


@dataclass(frozen=True, kw_only=True)
class _Running:
    server: xllamacpp.Server
    model: LocalModel


_running: dict[Path, _Running] = {}
_starting = threading.Lock()


def open_local_model(path: str, home: Path, *, on_progress: Progress | None = None) -> LocalModel:
    """Return the model of ``local:PATH``, running; with an empty path the one whose weights are installed.

    The first time its weights are joined into ``home`` (seconds, 1.1 GB), which ``on_progress`` is told of.

    Raises:
        DependencyError: The extra ``local`` is not installed.
        SettingsError: The file is missing or not GGUF, or the home folder has no room.
    """
    weights = find_own_weights(path) if path else ensure_weights(home, on_progress=on_progress)
    return start_local_model(weights)


def start_local_model(path: Path, *, context_tokens: int = CONTEXT_TOKENS) -> LocalModel:
    """Return the server of a GGUF file, started unless this process runs it already; then its context stays as it was.

    Starting takes seconds, during which no other Python thread runs, since xllamacpp keeps the interpreter's lock.

    Raises:
        DependencyError: xllamacpp is not installed.
        SettingsError: llama.cpp cannot load the file.
    """
    path = path.resolve()
    with _starting:
        if path not in _running:
            _running[path] = _start(path, context_tokens)
        return _running[path].model


def stop_local_models() -> None:
    """Stop all servers of this process and free their memory; happens by itself at exit."""
    with _starting:
        _running.clear()


# A server that the interpreter's end takes apart may hang or crash there.
atexit.register(stop_local_models)


def _start(path: Path, context_tokens: int) -> _Running:
    try:
        import xllamacpp  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise DependencyError(
            "The embedded language model needs xllamacpp, which is not installed. Run: pip install 'judgetree[local]'. "
            "Or name another model: set JUDGETREE_LLM to openai:MODEL, dashscope:MODEL or URL#MODEL."
        ) from error
    try:
        server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), path, context_tokens))
    except RuntimeError as error:
        raise SettingsError(
            f"llama.cpp cannot load {path}: {error} Give a complete GGUF file of a chat model."
        ) from error
    # Besides warming up: a server that is stopped before its loop has begun never ends, and an answer proves the loop.
    server.handle_completions({"prompt": ".", "max_tokens": 1})
    logger.info("%s answers at %s", path.name, server.listening_address)
    return _Running(server=server, model=LocalModel(base_url=f"{server.listening_address}/v1", model_name=path.stem))


def _parameters(parameters: xllamacpp.CommonParams, path: Path, context_tokens: int) -> xllamacpp.CommonParams:
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens
    # One prompt at a time: a second one shares the cores, and makes both slower than one after the other.
    parameters.n_parallel = 1
    parameters.cache_ram_mib = _CACHE_RAM_MIB
    parameters.model_alias = {path.stem}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.warmup = False  # see _start
    parameters.verbosity = _SILENT
    # What a browser page on this machine could reach otherwise.
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cors_origins = ""
    return parameters

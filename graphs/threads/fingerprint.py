"""Fingerprints of runs, which keep a thread from continuing with another question or other settings."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence

from langchain_core.documents import Document

from ...modules.config.answer_form import USUAL_FORM
from ...modules.digests import text_digest
from ...modules.judge.sub_questions import ModelWriter
from ...modules.llm.contract import model_fingerprint, tuning_fingerprint
from ...modules.reader.prompts import (
    CLOSED_BOOK_PROMPTS,
    DIGEST,
    READER_PROMPTS,
    STRATEGY_PROMPTS,
)
from ...modules.reader.step_prompts import STEP_PROMPTS, TOOL_PROMPTS
from ..search.expansion_rule import follows_links
from .context import RagContext

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-000000000000")

_TOOL = "tool."
"""Before the name of a tool, the key of its version."""
FORK_KEY = "fork"
"""Fingerprint key of what a fork changed of another tree."""
EXTRA_INPUTS = ("reader_query", "kept_chunks", FORK_KEY)
"""Fingerprint keys of a run's inputs besides its query."""


def fingerprint_of(
    *,
    query: str,
    system: str,
    services: RagContext,
    source: str = "",
    repeat: int = 0,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Collect everything that determines a run: question, system, collection, retriever, judge, reader, limits.

    It may read the collection's content digest, so it can block. ``source`` is the digest of a system of one's own,
    ``repeat`` distinguishes repeats of one question, and ``extra`` describes further inputs (``extra_inputs``).
    """
    limits, prompts = services.limits, services.prompts
    parts = {"query": query, "system": system, "repeat": str(repeat), **(extra or {})}
    parts |= _writer_of_answers(services)
    if source:
        parts["system.source"] = source
        if prompts:  # its nodes may use any of them
            parts["prompts"] = prompts.digest
    parts["reader.prompt"] = prompts.version(READER_PROMPTS if services.retriever else CLOSED_BOOK_PROMPTS)
    parts["max_llm_calls"] = str(limits.max_llm_calls)
    amounts = ("max_tree_tokens", "max_tree_cost_usd", "max_tree_seconds")
    parts |= {name: str(getattr(limits, name)) for name in amounts if getattr(limits, name) is not None}
    if services.retriever is not None:
        parts |= {f"retriever.{key}": value for key, value in services.retriever.fingerprint().items()}
        parts |= _reading(services)
    if services.context_tokens is not None:
        parts["reader.context_tokens"] = str(services.context_tokens)
        if DIGEST.name in prompts:
            parts["reader.digest_prompt"] = prompts[DIGEST.name].version
    if services.judge is not None:
        parts |= {f"judge.{key}": value for key, value in services.judge.fingerprint().items()}
        parts |= {f"policy.{key}": value for key, value in services.policy.fingerprint().items()}
        parts |= {f"stop.{key}": value for key, value in services.stop.fingerprint().items()}
        if services.policy.allows_retry(()):
            writer = services.writer or ModelWriter(services.reader, prompts=prompts)
            parts |= {f"writer.{key}": value for key, value in writer.fingerprint().items()}
        names = ("max_rec_depth", "judge_leaves", "width", "max_sub_runs", "sharing")
        parts |= {name: str(getattr(limits, name)) for name in names}
        if follows_links(limits.expansion) and services.links is not None:
            parts["expansion"] = limits.expansion
            parts |= {f"links.{key}": value for key, value in services.links.fingerprint().items()}
    parts |= {f"{_TOOL}{tool.name}": tool.version for tool in services.tools}
    if system in STEP_PROMPTS:
        group = TOOL_PROMPTS if services.tools else STEP_PROMPTS[system]
        parts |= {"max_rec_depth": str(limits.max_rec_depth), f"{system}.prompt": prompts.version(group)}
    return parts


def _writer_of_answers(services: RagContext) -> dict[str, str]:
    reader = model_fingerprint(services.reader) | tuning_fingerprint(services.reader)
    form = {} if services.answer_form == USUAL_FORM else {"answer_form": str(services.answer_form)}
    return {f"reader.{key}": value for key, value in reader.items()} | form


def _reading(services: RagContext) -> dict[str, str]:
    """Describe which evidence the reader sees and how it takes it in, as far as that is not as by default."""
    parts = {f"reader.{key}": value for key, value in services.evidence.fingerprint().items()}
    if services.insert_block is not None:
        parts |= {f"insert_block.{key}": value for key, value in services.insert_block.fingerprint().items()}
    if services.strategy != "stuff":
        version = services.prompts.version(STRATEGY_PROMPTS[services.strategy])
        parts |= {"reader.strategy": services.strategy, "reader.strategy_prompt": version}
    return parts


def tools_of(fingerprint: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names under which the tools of a run were given."""
    versions = (version for key, version in sorted(fingerprint.items()) if key.startswith(_TOOL))
    return tuple(version.rpartition(" ")[0] or version for version in versions)


def extra_inputs(reader_query: str, kept_chunks: Sequence[Document]) -> dict[str, str]:
    """Describe the inputs of a run besides its query; empty without any."""
    parts = {"reader_query": reader_query} if reader_query else {}
    if kept_chunks:
        parts["kept_chunks"] = digest_of({str(c.metadata["chunk_id"]): c.page_content for c in kept_chunks})[:16]
    return parts


def digest_of(fingerprint: Mapping[str, str]) -> str:
    """Compute the SHA-256 of a fingerprint as 64 hexadecimal digits, independent of the order of its keys."""
    return text_digest(json.dumps(dict(fingerprint), sort_keys=True, ensure_ascii=False)).hex()


def sub_thread_id(parent_thread_id: str, chunk_id: str, next_query: str, fingerprint: str) -> str:
    """Return the thread of a sub-question, always the same for the same parent, chunk, question and settings."""
    return str(uuid.uuid5(_NAMESPACE, json.dumps([parent_thread_id, chunk_id, next_query, fingerprint])))


def thread_of_try(parent_thread_id: str, chunk_id: str, attempt: int, fingerprint: str) -> str:
    """Return the thread of a further try of a chunk, known before its question is written."""
    return str(uuid.uuid5(_NAMESPACE, json.dumps([parent_thread_id, chunk_id, attempt, fingerprint])))


def may_ask_again(fingerprint: Mapping[str, str]) -> bool:
    """Return whether chunks of a run may have several tries."""
    return any(key.startswith("writer.") for key in fingerprint)

"""The message that a thread holds another run: which keys differ, and which options give that run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...modules.config.config import typed_as
from ...modules.errors import ThreadMismatch
from ..config.rag_config import RagConfig
from ..search.policies.registry import POLICIES

_PARTS: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge.part", "judge.kind"),
    "policy": ("policy.part", "policy.name"),
    "stop": ("stop.part", "stop.name"),
    "retriever": ("retriever.part",),
}
"""Keys that choose a part, with the parts of a fingerprint that may name it."""
_MODELS: Mapping[str, str] = {
    "reader.model": "llm",
    "judge.model": "judge_llm",
    "judge.fallback_model": "judge_llm",
    "insert_block.model": "insert_block_llm",
}
"""Keys by the part of the fingerprint that has the name of their model."""
_FOLLOWERS: Mapping[str, str] = {"policy": "writer", "expansion": "links"}
"""Groups of a fingerprint that stand there with some values of another key."""
_NOT = "no-"
_GRAPHS = ("retriever.graph.graph", "links.graph")
"""Digests of graphs, in a difference of two runs with a graph of the same kind."""


@dataclass(frozen=True, kw_only=True)
class _Difference:
    """What two runs have otherwise."""

    name: str
    """The key, where there is one; else the part of the fingerprint."""
    then: object
    now: object

    @property
    def is_key(self) -> bool:
        return self.name in RagConfig.model_fields

    @property
    def words(self) -> str:
        return f"{self.name}: {_said(self.then)} then, {_said(self.now)} now"

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_left_out(self) -> bool:
        return self.then is None or self.then == RagConfig.model_fields[self.name].default

    @property
    def option(self) -> str:
        """The option that gives the key as it was."""
        if self.name in _MODELS.values():
            return f"{self.flag} with the model {self.then!s}"
        return self._switch(self.then) if self._is_switch else f"{self.flag} {shlex.quote(str(self.then))}"

    @property
    def given_now(self) -> str:
        """The option that gives the key as it is now, without its value."""
        said = self._switch(self.now) if self._is_switch else self.flag
        return f"{said} and JUDGETREE_{self.name.upper()}" if RagConfig.key(self.name).is_model else said

    @property
    def _is_switch(self) -> bool:
        return typed_as(RagConfig.model_fields[self.name].annotation) is bool

    def _switch(self, value: object) -> str:
        return self.flag if value in (True, "on") else f"--{_NOT}{self.flag[2:]}"


def check_match(thread_id: str, stored: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Check that two fingerprints are equal.

    Raises:
        ThreadMismatch: They differ; the message names each difference, and the options of the stored run.
    """
    names = sorted(name for name in stored.keys() | wanted.keys() if stored.get(name) != wanted.get(name))
    if not names:
        return
    found = [*_differences(names, stored, wanted)]
    differences = "; ".join(dict.fromkeys(each.words for each in found))
    raise ThreadMismatch(f"Thread {thread_id!r} holds another run ({differences}). {_advice(found)}")


def _advice(found: list[_Difference]) -> str:
    given = [each.option for each in found if each.is_key and not each.is_left_out]
    left_out = [each.given_now for each in found if each.is_key and each.is_left_out]
    said = [
        *(f"give {each}" for each in dict.fromkeys(given)),
        *(f"leave out {each}" for each in dict.fromkeys(left_out)),
    ]
    if not said or any(not each.is_key for each in found):
        said.append("give the question and settings of that run")
    words = f"{', '.join(said)}, or use another thread id."
    words = words[0].upper() + words[1:]
    if any("prompt" in each.name for each in found):
        words += " Prompts of your own are given by --prompts or prompts=…."
    if any(each.name in _GRAPHS for each in found):
        words += " The graph of the collection was made anew since then: make it as it was to resume that run."
    return words


def _differences(names: list[str], stored: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[_Difference]:
    """Yield what differs, without what only follows from another difference."""
    parts = [_Difference(name=key, then=_part_in(stored, key), now=_part_in(wanted, key)) for key in _PARTS]
    parts.append(_Difference(name="insert_block", then=_filters(stored), now=_filters(wanted)))
    changed = {each.name for each in parts if each.then != each.now}
    yield from (each for each in parts if each.name in changed)
    changed |= {follower for key, follower in _FOLLOWERS.items() if key in changed or key in names}
    reader = stored.get("reader.model"), wanted.get("reader.model")
    for name in names:
        then, now = stored.get(name), wanted.get(name)
        follows_reader = name.endswith("model") and name != "reader.model" and (then, now) == reader
        is_other_model = name in _MODELS and then is not None and now is not None
        if follows_reader or (name.partition(".")[0] in changed and not is_other_model):
            continue
        before, after = _value(then), _value(now)
        if isinstance(before, dict) and isinstance(after, dict):
            for key in dict.fromkeys((*before, *after)):
                if before.get(key) != after.get(key):
                    yield _Difference(name=f"{name}.{key}", then=before.get(key), now=after.get(key))
        else:
            yield _Difference(name=_key_of(name), then=before, now=after)


def _part_in(fingerprint: Mapping[str, str], key: str) -> str | None:
    """Return the judge, policy, stop or retriever of a run, a policy with its parameters; None without one."""
    name = next((fingerprint[each] for each in _PARTS[key] if each in fingerprint), None)
    if key != "policy" or name not in POLICIES:
        return name
    parameters = (each for each in sorted(fingerprint) if each.startswith("policy.") and each != "policy.name")
    typed = ",".join(f"{each.removeprefix('policy.')}={fingerprint[each]}" for each in parameters)
    return f"{name}:{typed}" if typed else name


def _filters(fingerprint: Mapping[str, str]) -> bool:
    return "insert_block.prompt" in fingerprint


def _key_of(name: str) -> str:
    """Return the key of a part of a fingerprint, else the part."""
    of, _, rest = name.partition(".")
    known = _MODELS.get(name) or (rest if of in ("reader", "retriever") else name)
    return known if known in RagConfig.model_fields else name


def _value(text: str | None) -> object:
    if text in (None, "None"):
        return None
    if text in ("True", "False"):
        return text == "True"
    try:
        return json.loads(text)
    except ValueError:
        return text


def _said(value: object) -> str:
    return "none" if value is None else str(value)

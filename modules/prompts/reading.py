"""Prompts of one's own, read from a YAML file or a mapping and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, PositiveInt, TypeAdapter, ValidationError

from ..calls.prompts import Prompt, Prompts
from ..errors import SettingsError, did_you_mean, faults_of
from ..reading.yaml_files import read_yaml
from ..storage.formats import FORMAT_KEY, check_format, format_of
from ..storage.texts import check_text
from .table import PROMPTS

GivenPrompts = Prompts | Mapping[str, object] | Path | str | None
"""Prompts of one's own: checked ones, a mapping as in a YAML file, or the path of such a file; None for none."""


def _without_last_line_ends(text: str) -> str:
    try:
        check_text("it", text)
    except SettingsError as error:
        raise ValueError(str(error)) from error
    return text.rstrip("\r\n")


_Text = Annotated[str, AfterValidator(_without_last_line_ends)]


class _OwnExample(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user: _Text
    assistant: _Text


class _OwnPrompt(BaseModel):
    model_config = ConfigDict(extra="forbid")

    system: _Text | None = None
    user: _Text | None = None
    examples: list[_OwnExample] | None = None
    max_prompt_tokens: PositiveInt | None = None


_FILE: TypeAdapter[dict[str, _OwnPrompt]] = TypeAdapter(dict[str, _OwnPrompt])


def load_prompts(given: GivenPrompts) -> Prompts:
    """Read prompts of one's own; what they leave out is judgetree's, and texts equal to judgetree's are left out.

    A mapping has the names of prompts as keys, and ``system``, ``user``, ``examples`` and ``max_prompt_tokens`` (see
    ``Prompt``) below them. Line ends at the end of a text are dropped.

    >>> own = load_prompts({"reader": {"examples": [{"user": "Evidence:\\nAda is 7.", "assistant": "7"}]}})
    >>> own["reader"].examples
    (('Evidence:\\nAda is 7.', '7'),)

    Raises:
        SettingsError: The file cannot be read, there is no prompt of that name, or a text is unusable; the message
            names all faults.
    """
    if given is None:
        return Prompts()
    if isinstance(given, str | Path):
        own = _checked(_mapping_in(Path(given).expanduser()), where=f"The prompts in {given}")
        return Prompts(own.values(), file=str(given))
    if isinstance(given, Mapping):
        return _checked(given, where="The prompts")
    raise SettingsError(f"The prompts are {given!r:.80}. Give a YAML file, or a mapping of names to texts.")


def _checked(given: Mapping[str, object], *, where: str) -> Prompts:
    plain = {name: each.to_document() if isinstance(each, Prompt) else each for name, each in given.items()}
    declared = plain.pop(FORMAT_KEY, None)
    if declared is not None:
        check_format(declared, "prompts", where=where, error=SettingsError)
    faults, prompts = [*_unknown(plain), *_flat(plain)], []
    if not faults:
        try:
            read = _FILE.validate_python(plain)
        except ValidationError as error:
            raise SettingsError(
                f"{where} are not usable: {'; '.join(faults_of(error))}. A prompt has the keys system and user, each a "
                "text, examples, a list with a user and an assistant text each, and max_prompt_tokens, from 1 on."
            ) from error
        prompts = [_completed(default, read[name]) for name, default in PROMPTS.items() if name in read]
        faults = [fault for prompt in prompts for fault in _faults(prompt, PROMPTS[prompt.name])]
    if faults:
        raise SettingsError(f"{where} are not usable: {' '.join(faults)}")
    return Prompts(prompt for prompt in prompts if prompt != PROMPTS[prompt.name])


def find_prompts(names: Iterable[str]) -> list[Prompt]:
    """Return judgetree's prompts of these names; all of them if there are none.

    Raises:
        SettingsError: There is no prompt of a name.
    """
    wanted = list(names)
    if faults := list(_unknown(wanted)):
        raise SettingsError(" ".join(faults))
    return [PROMPTS[name] for name in wanted or PROMPTS]


def _unknown(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name not in PROMPTS:
            yield f"There is no prompt {name!r}.{did_you_mean(str(name), PROMPTS)} Allowed: {', '.join(PROMPTS)}."


def _flat(plain: Mapping[str, object]) -> Iterator[str]:
    for name, texts in plain.items():
        if not isinstance(texts, Mapping):
            yield f"{name} is {texts!r:.40}. Give it system, user or examples, each on a line below it."


def _completed(default: Prompt, own: _OwnPrompt) -> Prompt:
    return replace(
        default,
        system=default.system if own.system is None else own.system,
        user=default.user if own.user is None else own.user,
        examples=default.examples
        if own.examples is None
        else tuple((each.user, each.assistant) for each in own.examples),
        max_prompt_tokens=own.max_prompt_tokens,
    )


def _faults(own: Prompt, default: Prompt) -> Iterator[str]:
    allowed = default.placeholders
    shown = ", ".join(f"{{{word}}}" for word in allowed)
    for word in own.placeholders:
        if word not in allowed:
            yield (
                f"{own.name}.user: {{{word}}} is no placeholder.{did_you_mean(word, allowed)} Allowed: {shown}; write "
                f"{{{{{word}}}}} for the text {{{word}}}."
            )
    if missing := [f"{{{word}}}" for word in allowed if word not in own.placeholders]:
        yield f"{own.name}.user lacks {' and '.join(missing)}: put the placeholder where its text belongs."
    for place, text in (("system", own.system), *(("examples", text) for pair in own.examples for text in pair)):
        for word in allowed:
            if f"{{{word}}}" in text:
                yield f"{own.name}.{place} holds {{{word}}}, which is filled in `user` only: move it there."
    if any(not text.strip() for pair in own.examples for text in pair):
        yield f"{own.name}.examples holds an empty text: give each a user and an assistant."
    if own.is_json and not any("json" in text.casefold() for text in (own.system, own.user)):
        yield f"{own.name} does not say JSON, in which its reply is read: ask for it in system or user."


def _mapping_in(file: Path) -> Mapping[str, object]:
    example = f"`{FORMAT_KEY}: {format_of('prompts')}` and the name of a prompt with its texts below it"
    content = read_yaml(file, what="prompts in")
    if not isinstance(content, dict):
        raise SettingsError(f"The prompts in {file} are no mapping. Write {example}.")
    if FORMAT_KEY not in content:
        raise SettingsError(f"The prompts in {file} declare no format. Write {example}.")
    return content

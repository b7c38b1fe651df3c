"""The base of configurations: each key is one field, with its bounds, its default, its docstring and a ``Key``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from ..calls.prompts import Prompts
from ..errors import SettingsError, did_you_mean, faults_of

C = TypeVar("C", bound="Config")

Trait = Literal["retriever", "judge", "sub_questions", "depth", "tools", "dialogues"]
"""What a system has, or lacks: a search, a judge, sub-questions of its chunks, further questions, tools; and what
questions may be."""
_MOST_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class Key:
    """What a key says of itself besides type, bounds, default and docstring."""

    needs: tuple[str, ...] = ()
    """What gives the key an effect, one of these: a ``Trait`` of the system, or another key, as ``key`` where any value
    but the default will do, else as ``key=value|value``; empty if it always has one. A system that can have none
    refuses the key; where another key is missing, it is said."""
    common: bool = False
    """Whether ``--help`` shows its option; the options of the others work too."""
    per_question: bool = False
    """Whether one question of a session may have another value."""
    in_requests: bool = False
    """Whether a request to a server may have another value; it must name no code, file or address."""
    is_part: bool = False
    """Whether Python may give an object in place of its name."""
    is_model: bool = False
    """Whether it chooses or tunes a model, or its prompts: the settings have it too, and no thread stores it."""
    older_flag: str = ""
    """An option that it had once, besides ``--key-name``."""
    path_in: Callable[[str], str] | None = None
    """Returns the part of a value that is the path of a file or folder, ``""`` where none is; None for keys that have
    no path. In a file of keys such a path is relative to that file, where it exists there."""
    metavar: str | None = None
    """What ``--help`` shows for its value."""


def whole(value: str) -> str:
    """Return a value that is a path as a whole."""
    return value


def after(prefix: str) -> Callable[[str], str]:
    """Return a function for values that have a path after a prefix, such as ``local:``."""
    return lambda value: value.removeprefix(prefix) if value.startswith(prefix) else ""


@contextmanager
def as_fault() -> Iterator[None]:
    """Raise a ``SettingsError`` inside the block as the fault of a key, in a validator."""
    try:
        yield
    except SettingsError as error:
        raise ValueError(str(error)) from error


class Config(BaseModel):
    """A group of keys, or a sum of groups; frozen."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, arbitrary_types_allowed=True, defer_build=True
    )

    def __init__(self, **keys: Any) -> None:
        """Check the keys.

        Raises:
            SettingsError: A key is unknown, or a value is not allowed; the message names each fault.
        """
        try:
            super().__init__(**keys)
        except ValidationError as error:
            raise SettingsError(_faults(type(self), error, type(self).__name__)) from error

    @classmethod
    def of(cls, keys: Mapping[str, object], *, where: str) -> Self:
        """Make a configuration whose errors name the place of its keys, such as "The experiment a.yaml".

        Raises:
            SettingsError: See ``Config``.
        """
        try:
            return cls(**keys)
        except SettingsError as error:
            if isinstance(error.__cause__, ValidationError):
                raise SettingsError(_faults(cls, error.__cause__, where)) from error.__cause__
            raise

    @classmethod
    def keys_in(cls, file: Path, *, what: str) -> dict[str, object]:
        """Read the keys of a YAML file; relative paths are relative to the file, where they exist there.

        Raises:
            SettingsError: The file cannot be read or is not a mapping.
        """
        from ..reading.yaml_files import read_mapping

        return {
            name: _beside(file, value, cls.path_part(name)) for name, value in read_mapping(file, what=what).items()
        }

    @classmethod
    def path_part(cls, name: str) -> Callable[[str], str] | None:
        """Return the function that finds the path in a value of a key; None for a key without a path."""
        return cls.key(name).path_in if name in cls.model_fields else None

    @classmethod
    def key(cls, name: str) -> Key:
        """Return the declaration of a key."""
        return next((each for each in cls.model_fields[name].metadata if isinstance(each, Key)), Key())

    @classmethod
    def keys_with(cls, **traits: object) -> tuple[str, ...]:
        """Return the keys whose ``Key`` has these values, in order.

        >>> from judgetree.modules.config.reading import Reading
        >>> Reading.keys_with(needs=("tools",))
        ('tools',)
        """
        return tuple(
            name
            for name in cls.model_fields
            if all(getattr(cls.key(name), trait) == value for trait, value in traits.items())
        )

    @classmethod
    def groups(cls) -> Iterator[tuple[str, Mapping[str, FieldInfo]]]:
        """Yield the docstring of each group and its fields; keys of the class itself come last, under ""."""
        grouped: set[str] = set()
        for group in reversed([each for each in cls.__mro__[1:] if issubclass(each, Config) and each is not Config]):
            own = {name: cls.model_fields[name] for name in group.model_fields if name not in grouped}
            grouped |= own.keys()
            if own:
                yield _title(group), own
        if own := {name: field for name, field in cls.model_fields.items() if name not in grouped}:
            yield "", own

    @property
    def given(self) -> dict[str, Any]:
        """The keys that were set, whatever their value."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}

    def changed(self, **keys: object) -> Self:
        """Return the configuration with other values of some keys.

        Raises:
            SettingsError: See ``Config``.
        """
        return type(self)(**{**self.given, **keys})

    def part(self, group: type[C]) -> C:
        """Return the values of a group's keys as that group.

        >>> from judgetree import RagConfig
        >>> from judgetree.modules.config.judging import Judging
        >>> RagConfig(topk=5, judge="logprob").part(Judging)
        Judging(judge='logprob')
        """
        return group(**{name: value for name, value in self.given.items() if name in group.model_fields})


def typed_as(annotation: Any) -> Any:
    """Return what a person types for a value of a type: a literal, a number, a switch, a file, texts, or a text."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return typed_as(inner[0])
    if origin in (Union, UnionType):
        kinds = [typed_as(each) for each in inner if each is not type(None)]
        return float if float in kinds else kinds[0]
    if origin is Literal or annotation in (int, float, bool):
        return annotation
    if origin is tuple:
        return list[str]
    return Path if annotation is Prompts else str


def shown(value: object) -> str:
    """Return a value as messages may repeat it: short, and without secrets."""
    from ..settings import without_secrets  # which reads the environment: --help does without

    return without_secrets(repr(value))[:_MOST_SHOWN]


def _beside(file: Path, value: object, path_in: Callable[[str], str] | None) -> object:
    """Return a value of a file with its relative path beside the file."""
    if path_in is None:
        return value
    if isinstance(value, list):
        return [_beside(file, each, path_in) for each in value]
    part = path_in(value) if isinstance(value, str) else ""
    path = Path(part)
    if not part or path.is_absolute() or part.startswith("~"):
        return value
    there = file.parent / path
    if not there.exists():
        return value
    found = f"{str(value).removesuffix(part)}{there}"
    return found if path_in(found) else f"{str(value).removesuffix(part)}./{there}"  # "docs" would be a collection


def _faults(kind: type[Config], error: ValidationError, where: str) -> str:
    faults = "; ".join(faults_of(error, shown=shown))
    unknown = [str(fault["loc"][0]) for fault in error.errors() if fault["type"] == "extra_forbidden"]
    near = "".join(did_you_mean(name, kind.model_fields) for name in unknown)
    return f"{where} is not usable: {faults}." + (f"{near} Keys: {', '.join(kind.model_fields)}." if unknown else "")


def _title(group: type[Config]) -> str:
    return (group.__doc__ or "").strip().splitlines()[0].rstrip(".")

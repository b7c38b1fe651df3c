"""Parts of one's own, by name: an import path such as ``my_pkg.judges:Mine``, a plug-in's name, or an object.

Plug-ins are entry points of the groups ``judgetree.systems``, ``judgetree.judges``, ``judgetree.retrievers``,
``judgetree.metrics``, ``judgetree.datasets``, ``judgetree.tools``, ``judgetree.llms`` and ``judgetree.policies``.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import sys
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import FunctionType
from typing import Literal, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from .cell_code import cell_code, shape_of
from .digests import canonical_json, text_digest
from .errors import JudgetreeError, NoFailure, SettingsError, UserError, did_you_mean, reason_of
from .trust.own_modules import import_own

T = TypeVar("T")
PartKind = Literal["system", "judge", "retriever", "metric", "dataset", "tool", "llm", "policy"]

_GROUPS: dict[PartKind, str] = {"policy": "judgetree.policies"}
"""Entry points of kinds whose plural does not end in s."""
_GIVEN: dict[str, object] = {}
"""The objects that were given in this process, by name."""
_LOADED: WeakKeyDictionary[object, str] = WeakKeyDictionary()
"""Digests of the files of classes and functions, as these were first used."""


class _Fingerprinted(Protocol):
    def fingerprint(self) -> dict[str, str]: ...


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of one's own."""

    name: str
    value: object
    """What the name stands for: a part, or a class or function that makes one."""
    source: str
    """First 12 digits of the SHA-256 of the file that defines it, or of its own code in a notebook; ``""`` without."""

    @property
    def is_built_in(self) -> bool:
        """Whether judgetree defines it, whose fingerprints say all that changes a result."""
        return self.name.startswith(f"{__name__.partition('.')[0]}.")


def part_of(kind: PartKind, given: object) -> Part:
    """Return the part that is given: by name, or itself.

    Raises:
        SettingsError: There is no part of that name; see ``find_part``.
    """
    if isinstance(given, str):
        return find_part(kind, given)
    return Part(name=name_of(given), value=given, source=source_of(given))


def register_object(given: object) -> str:
    """Return a name under which ``find_part`` finds an object in this process.

    A class or function has its import path, by which other processes find it too. Another object has that of its class
    and the digest of its fingerprint, or else of its fields, and must be given again to another process. So must a
    ``partial``, a bound method and a function that captured variables, whose digest is over these.

    >>> register_object(Part)
    'judgetree.modules.parts:Part'
    """
    name = name_of(given)
    _GIVEN[name] = given
    return name


def registered_object(name: str) -> object:
    """Return the object that was last remembered under a name; None if there is none."""
    return _GIVEN.get(name)


def export_objects(names: Collection[str]) -> dict[str, object]:
    """Return the objects that were remembered under these names, for ``import_objects`` in another process."""
    return {name: part for name, part in _GIVEN.items() if name in names}


def import_objects(parts: Mapping[str, object]) -> None:
    """Let ``find_part`` find objects of another process, copied to this one, under the names that they have there."""
    _GIVEN.update(parts)


def digest_of_fields(value: object, *, besides: type = object) -> str:
    """Return 8 digits that change with the fields of an object, as ``canonical_json`` shows them.

    Fields of the class ``besides`` are left out. One that is neither pydantic's nor a dataclass has its attributes for
    fields, except lists, dicts and sets, which change as they are used.
    """
    known, kind = getattr(besides, "model_fields", {}), type(value)
    names = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", None)
    if names is None:
        held = getattr(value, "__dict__", {})
        names = [name for name, each in held.items() if not isinstance(each, list | Mapping | Set)]
    return _digest({name: getattr(value, name, None) for name in names if name not in known})


def name_of(value: object) -> str:
    """Return the name of an object, see ``register_object``; the object is not kept."""
    if isinstance(value, functools.partial):
        return f"{name_of(value.func)}({_digest([value.args, value.keywords])})"
    if not isinstance(getattr(value, "__qualname__", None), str):
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        has_own = hasattr(value, "fingerprint")
        digest = _digest(_said_by(cast(_Fingerprinted, value), name)) if has_own else digest_of_fields(value)
        return f"{name}({digest})"
    name = f"{value.__module__}:{value.__qualname__}"  # type: ignore[attr-defined]
    if inspect.ismethod(value) and not inspect.isclass(value.__self__):
        return f"{name}({_digest(name_of(value.__self__))})"
    held = _held_by(value) if inspect.isfunction(value) else None
    return f"{name}({_digest(held)})" if held else name


def _held_by(function: FunctionType) -> dict[str, object]:
    """Return what tells a function from others of its name: captured variables, defaults, the place of a lambda."""
    held = dict(inspect.getclosurevars(function).nonlocals)
    if "<" in function.__qualname__:  # no import path leads to it
        held |= {f"default {number}": value for number, value in enumerate(function.__defaults__ or ())}
        held |= {f"default {name}": value for name, value in (function.__kwdefaults__ or {}).items()}
    if function.__name__ == "<lambda>":
        code = function.__code__
        held["code"] = [code.co_firstlineno, shape_of(code)]
    return held


def _digest(content: object) -> str:
    return text_digest(canonical_json(content)).hex()[:8]


def entry_point_group(kind: PartKind) -> str:
    """Return the group of entry points under which packages offer parts of a kind.

    >>> entry_point_group("policy")
    'judgetree.policies'
    """
    return _GROUPS.get(kind, f"judgetree.{kind}s")


def plug_ins(kind: PartKind) -> dict[str, EntryPoint]:
    """Return the installed plug-ins of a kind by name."""
    places = tuple((place, _changed_at(place)) for place in sys.path)
    # Of two with one name the first place counts, so that a package in the current folder replaces none.
    return {point.name: point for point in reversed(_entry_points(entry_point_group(kind), places))}


def _changed_at(place: str) -> int:
    """Return when a folder of ``sys.path`` last got or lost a package, in nanoseconds; 0 without a folder."""
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=32)
def _entry_points(group: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Read the entry points of what is installed in ``places``, which opens a file of each of hundreds of packages."""
    return tuple(entry_points(group=group))


def check_name(kind: PartKind, name: str, built_in: Iterable[str]) -> None:
    """Check that a name is built in, a plug-in or an import path; nothing is imported.

    Raises:
        SettingsError: It is none of them; the message lists the allowed names.
    """
    if name not in built_in and ":" not in name and name not in plug_ins(kind):
        allowed = [*built_in, *plug_ins(kind)]
        raise SettingsError(
            f"Unknown {kind} {name!r}.{did_you_mean(name, allowed)} Allowed: {', '.join(allowed)}; or the import path "
            f"of your own, such as my_package:{kind}."
        )


def find_part(kind: PartKind, name: str) -> Part:
    """Import a part by its name.

    A module is looked for in the working directory too, if that and the module's file are this user's.

    Raises:
        SettingsError: There is no such part, or its module cannot be imported, or belongs to another user.
    """
    if name in _GIVEN:
        return Part(name=name, value=_GIVEN[name], source=source_of(_GIVEN[name]))
    if name.endswith(")"):
        raise SettingsError(f"The {kind} {name!r} was given as an object. Give it again, or name a class or function.")
    path = point.value if (point := plug_ins(kind).get(name)) else name
    module, _, attributes = path.partition(":")
    try:
        value: object = import_own(module)
        for attribute in attributes.split("."):
            value = getattr(value, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"The {kind} {name!r} cannot be imported: {reason_of(error)}. Write module:name."
        ) from error
    except BaseException as error:  # a script without a guard exits
        if is_from_outside(error):
            raise
        raise SettingsError(
            f"The module of the {kind} {name!r} failed: {type(error).__name__}: {reason_of(error)}."
        ) from error
    return Part(name=name, value=value, source=source_of(value))


def instantiate(part: Part, **offered: object) -> object:
    """Make the part: call a class or function with those of ``offered`` that its signature names.

    Raises:
        SettingsError: The call failed, or needs an argument that is not offered.
    """
    if not needs_making(part):
        return part.value
    wanted = accepted_arguments(part)
    given = offered if wanted is None else {name: value for name, value in offered.items() if name in wanted}
    try:
        return part.value(**given)  # type: ignore[operator]
    except UserError:
        raise
    except TypeError as error:
        raise SettingsError(
            f"{part.name!r} cannot be made: {reason_of(error)}. It may take {', '.join(offered)}, by these names."
        ) from error
    except BaseException as error:
        if is_from_outside(error):
            raise
        raise SettingsError(f"{part.name!r} cannot be made: {type(error).__name__}: {reason_of(error)}.") from error


def fingerprint_of(part: Part, inner: _Fingerprinted) -> dict[str, str]:
    """Return the fingerprint of a judge or retriever of one's own: its name, its source, and what it says of itself.

    Raises:
        SettingsError: It fails to say what it is, or what it says is no mapping.
    """
    own = _said_by(inner, part.name)
    if not isinstance(own, Mapping):
        raise SettingsError(f"The fingerprint of {part.name!r} is {own!r:.100}. Give texts by name.")
    texts = {f"own.{key}": value if isinstance(value, str) else canonical_json(value) for key, value in own.items()}
    return {"part": part.name, "source": part.source, **texts}


def _said_by(part: _Fingerprinted, name: str) -> object:
    try:
        return part.fingerprint()
    except BaseException as error:
        if isinstance(error, JudgetreeError) or is_from_outside(error):
            raise
        raise SettingsError(
            f"The fingerprint of {name!r} failed: {type(error).__name__}: {reason_of(error)}."
        ) from error


def is_from_outside(error: BaseException) -> bool:
    """Return whether an error ends a part from outside: Ctrl-C, a generator that is closed, a task that is cancelled.

    Any other error is the part's own failure, also one that is no ``Exception``, and a ``CancelledError`` in a task
    that was not cancelled.
    """
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, KeyboardInterrupt | GeneratorExit)
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here, so that there is no task
        return False
    return task is not None and task.cancelling() > 0


async def result_of_coroutine(given: Awaitable[T], name: str) -> T:
    """Return the result of a part's method ``name``, once it is there.

    Raises:
        TypeError: The method is no coroutine: it gave its result at once, and let nothing else run meanwhile.
    """
    if not inspect.isawaitable(given):
        raise TypeError(
            f"{name} returned {type(given).__name__} at once. Define it with async def, so that others go on"
        )
    return await given


@contextmanager
def guard_exit(name: str) -> Iterator[None]:
    """Raise RuntimeError where a part raises what is no ``Exception``, which no handler of a question would catch.

    ``sys.exit`` would end the process as if all were well, and a panic of a library in Rust the whole run.
    """
    try:
        yield
    except Exception:
        raise
    except SystemExit as error:
        raise RuntimeError(f"{name!r} called sys.exit({error.code!r})") from error
    except BaseException as error:
        if is_from_outside(error):
            raise
        raise RuntimeError(f"{name!r} failed: {type(error).__name__}: {error}") from error


@contextmanager
def wrap_errors(what: str, error: type[JudgetreeError]) -> Iterator[None]:
    """Raise the failures of a part as errors that name it, by ``what``; ours, and what ends it from outside, pass."""
    try:
        yield
    except BaseException as failure:
        if isinstance(failure, JudgetreeError | NoFailure) or is_from_outside(failure):
            raise
        raise error(f"{what} failed: {type(failure).__name__}: {failure}") from failure


def needs_making(part: Part) -> bool:
    """Whether the part is a class or function, and not the finished part."""
    return inspect.isclass(part.value) or inspect.isroutine(part.value) or isinstance(part.value, functools.partial)


def accepted_arguments(part: Part) -> frozenset[str] | None:
    """Return the names of the arguments that a class or function takes; None where it takes any."""
    try:
        parameters = inspect.signature(part.value).parameters  # type: ignore[arg-type]
    except ValueError:  # some classes of C have none
        return frozenset()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return None
    return frozenset(parameters)


def source_of(value: object) -> str:
    """Return the first 12 digits of the SHA-256 of the file that defines a class or function, or an object's class.

    A part of a notebook has its own code for a file, and what it uses of the notebook (``cell_code``); ``""`` where a
    file cannot be read.

    Raises:
        SettingsError: The file has changed since its import.
    """
    while isinstance(value, functools.partial):
        value = value.func
    named = value if hasattr(value, "__qualname__") else type(value)
    file = getattr(sys.modules.get(named.__module__), "__file__", None)
    try:
        code = Path(file).read_bytes() if file else cell_code(named).encode()
    except (OSError, TypeError):
        return ""
    digest = hashlib.sha256(code).hexdigest()[:12]
    try:
        loaded = _LOADED.setdefault(named, digest)
    except TypeError:  # some callables of C cannot be referred to weakly
        return digest
    if file and loaded != digest:
        raise SettingsError(
            f"{file} has changed since {named.__qualname__} was imported, and Python still runs the old code. Start "
            "Python anew."
        )
    return digest

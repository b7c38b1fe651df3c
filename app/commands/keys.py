"""``judgetree keys``: makes, lists and revokes the keys of the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ...modules.errors import SettingsError, UserError, did_you_mean
from ..terminal.terminal import Cell, busy, local_time, say, write_json, write_result, write_rows
from .options import DryRun, Json, Yes

if TYPE_CHECKING:
    from ..server.keys.book import KeyBook
    from ..server.keys.key import Budget, StoredKey

keys_app = typer.Typer(no_args_is_help=True)

Usd = Annotated[float | None, typer.Option(min=0.0001, metavar="USD", help="Most US dollars of its model calls a day.")]
Tokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="Most tokens of its model calls a day.")]
Seconds = Annotated[float | None, typer.Option(min=1, metavar="S", help="Most seconds of its questions a day.")]


@keys_app.command()
def add(  # noqa: PLR0913 - one parameter an option
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of its holder, for lists and logs.")],
    *,
    collection: Annotated[
        list[str] | None,
        typer.Option("--collection", "-c", metavar="NAME", help="Collection that it grants, may be repeated."),
    ] = None,
    all_collections: Annotated[
        bool, typer.Option("--all-collections", help="Grant all collections, those to come included.")
    ] = False,
    usd_per_day: Usd = None,
    tokens_per_day: Tokens = None,
    seconds_per_day: Seconds = None,
    usd_per_question: Annotated[
        float | None, typer.Option(min=0.0001, metavar="USD", help="Most US dollars that one question may cost.")
    ] = None,
    tokens_per_question: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most tokens that one question may use.")
    ] = None,
    seconds_per_question: Annotated[
        float | None, typer.Option(min=1, metavar="S", help="Most seconds that one question may search.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it, once. Without -c or --all-collections it grants no collection.

    Examples:
        judgetree keys add ada --all-collections
    """
    with busy():
        from ...modules.index.schema import check_documents_name
        from ..server.keys.key import Budget

    if all_collections and collection:
        raise SettingsError("Give --all-collections, or the granted ones with -c, not both.")
    for each in collection or ():
        check_documents_name(each)
    with _book() as book:
        key, text = book.add(
            name,
            collections=None if all_collections else frozenset(collection or ()),
            per_day=Budget(usd=usd_per_day, tokens=tokens_per_day, seconds=seconds_per_day),
            per_question=Budget(usd=usd_per_question, tokens=tokens_per_question, seconds=seconds_per_question),
        )
    if as_json:
        write_json(_document(key) | {"key": text})
    else:
        write_result(text)
        say(f"Key {key.id} for {name}, granting {_grants(key)}. It is not shown again.")
    if collection:
        _name_missing(collection)


@keys_app.command("list")
def list_(as_json: Json = False) -> None:
    """List the keys, the oldest first; never their texts.

    Examples:
        judgetree keys list
    """
    with _book() as book:
        keys = book.entries()
    if as_json:
        write_json([_document(key) for key in keys])
    elif keys:
        write_rows(_row(key) for key in keys)
    else:
        say("No keys yet. Make one: judgetree keys add NAME -c COLLECTION")


@keys_app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Id or name of a key.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Revoke a key for good: running servers refuse it within seconds. A script needs no --yes.

    Examples:
        judgetree keys revoke ada --dry-run
    """
    from ..terminal.deleting import may_delete

    with _book() as book:
        found = book.valid(key)
        used = f"last used {local_time(found.last_used_at)}" if found.last_used_at else "never used"
        what = f"the key {found.id} of {found.name}, granting {_grants(found)}, {used}"
        if not may_delete(what, "Revoke it for good?", yes=yes, dry_run=dry_run, asks_scripts=False):
            return
        revoked = book.revoke(found.id)
    say(f"revoked the key {revoked.id} of {revoked.name}")


def _name_missing(granted: Iterable[str]) -> None:
    """Say which granted collections do not exist yet, where collections can be read."""
    with busy():
        from ...modules.settings import load_settings
        from ..stores.collections import read_names

        with suppress(UserError):  # the key is made
            there = read_names(load_settings())
            for name in granted:
                if name not in there:
                    say(f"There is no collection {name!r} yet.{did_you_mean(name, there)}", style="yellow")


@contextmanager
def _book() -> Iterator[KeyBook]:
    with busy():
        from ...modules.settings import load_settings
        from ..server.keys.book import KeyBook
        from ..server.keys.tables import KeyTables

    with closing(KeyTables(load_settings())) as tables:
        yield KeyBook(tables)


def _document(key: StoredKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
        "collections": None if key.collections is None else sorted(key.collections),
        "per_day": asdict(key.per_day),
        "per_question": asdict(key.per_question),
    }


def _row(key: StoredKey) -> tuple[Cell, ...]:
    used = f"used {local_time(key.last_used_at)}" if key.last_used_at else "never used"
    return (
        (key.id, "dim"),
        (key.name, ""),
        (_grants(key), ""),
        (_limits(key), ""),
        ("revoked" if key.revoked_at else used, "yellow" if key.revoked_at else "dim"),
    )


def _grants(key: StoredKey) -> str:
    if key.collections is None:
        return "all collections"
    return ", ".join(sorted(key.collections)) or "no collection"


def _limits(key: StoredKey) -> str:
    parts = [f"{words} a day" for words in _amounts(key.per_day)]
    return ", ".join(parts + [f"{words} a question" for words in _amounts(key.per_question)])


def _amounts(budget: Budget) -> Iterator[str]:
    if budget.usd is not None:
        yield f"${budget.usd:g}"
    if budget.tokens is not None:
        yield f"{budget.tokens} tokens"
    if budget.seconds is not None:
        yield f"{budget.seconds:g} s"

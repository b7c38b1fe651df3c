"""What the attack suite plays: kinds of attack at doors of judgetree, read from the tests themselves.

``python -m tests.attacks.kinds`` lists every kind at every door with the test that plays it, and counts them. The names
of kinds and doors are the parameters of the tests. A parameter that is neither, such as a seed, counts nothing; a test
without an entry here is one kind at one door.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NO_ATTACKS = frozenset({"test_kinds", "test_writers"})
"""Modules that check the suite, or the code's shape."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """How the parameters of a test are to be read."""

    world: str
    """What the kinds are kinds of; equal names in one world are one kind."""
    kinds: str = ""
    """First name of the parameter that has the kinds; "" if the test is one kind."""
    doors: str = ""
    """First name of the parameter that has the doors; "" if the test opens one door, which is named after it."""
    skips: str = ""
    """Name in the test's module of the (kind, door) pairs that it skips; "" for none."""


ATTACKS: dict[str, Attack] = {
    "test_disks.test_a_full_disk_leaves_the_old_file": Attack(world="disk", doors="name"),
    "test_disks.test_a_folder_in_the_place_of_the_file_is_named": Attack(world="disk", doors="name"),
    "test_doors.test_a_packed_reply_is_refused_unread": Attack(world="packed reply", kinds="name", doors="door"),
    "test_doors.test_a_server_that_misbehaves_fails_every_door_in_time": Attack(
        world="server", kinds="name", doors="door", skips="SKIPPED"
    ),
    "test_embeddings.test_vectors_belong_to_their_texts": Attack(world="vectors", kinds="name"),
    "test_embeddings.test_wrong_vectors_are_refused_and_not_kept": Attack(world="vectors", kinds="name"),
    "test_embeddings.test_wrong_ranks_are_refused": Attack(world="ranks", kinds="name"),
    "test_files.test_a_hostile_file_is_read_or_skipped_within_its_limits": Attack(world="file", kinds="name"),
    "test_ids.test_a_thread_with_a_hostile_id": Attack(world="id", kinds="thread_id"),
    "test_ids.test_a_conversation_with_a_hostile_name": Attack(world="id", kinds="name"),
    "test_ids.test_a_collection_with_a_hostile_name_is_refused": Attack(world="id", kinds="name"),
    "test_passages.test_a_hostile_passage_leaves_the_structure_of_a_prompt": Attack(
        world="passage", kinds="passage", doors="build"
    ),
    "test_postgres.test_a_turn_survives_its_store": Attack(world="PostgreSQL", kinds="fault"),
    "test_replies.test_a_judge_survives_a_hostile_reply": Attack(world="reply", kinds="reply"),
    "test_replies.test_a_reader_survives_a_hostile_stream": Attack(world="reply", kinds="reply"),
    "test_replies.test_a_sub_question_is_found_in_a_hostile_reply": Attack(world="reply", kinds="reply"),
    "test_servers.test_a_refusal_for_good_is_not_repeated": Attack(world="server", kinds="behave", doors="streams"),
    "test_servers.test_a_server_that_misbehaves_fails_the_attempt_in_time": Attack(
        world="server", kinds="behave", doors="streams"
    ),
    "test_tls.test_faulty_tls_is_named_in_time": Attack(world="TLS", kinds="name", doors="door", skips="SKIPPED"),
    "test_tls.test_a_tls_port_asked_without_tls_is_named": Attack(world="TLS", doors="door"),
    "test_tls.test_broken_certificates_of_authorities_are_named": Attack(world="certificates", kinds="name"),
}
"""Tests, by module and name, that play several kinds or open several doors."""


@dataclass(frozen=True, order=True)
class Played:
    """One kind at one door."""

    world: str
    kind: str
    door: str
    test: str


def played() -> list[Played]:
    """Return every kind at every door, in order."""
    return sorted({each for name, function in attack_tests() for each in _played(name, function)})


def attack_tests() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the tests of this folder by ``module.name``."""
    for file in sorted(FOLDER.glob("test_*.py")):
        if file.stem in NO_ATTACKS:
            continue
        module = importlib.import_module(f"tests.attacks.{file.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_") and getattr(value, "__module__", "") == module.__name__:
                yield f"{file.stem}.{name}", value


def _played(name: str, function: Callable[..., object]) -> Iterator[Played]:
    attack = ATTACKS.get(name, Attack(world=name.partition(".")[0].removeprefix("test_")))
    title = name.partition(".")[2].removeprefix("test_")
    parameters = parameters_of(function)
    skipped = vars(sys.modules[function.__module__])[attack.skips] if attack.skips else ()
    for kind in parameters[attack.kinds] if attack.kinds else [title]:
        for door in parameters[attack.doors] if attack.doors else [title]:
            if (kind, door) not in skipped:
                yield Played(attack.world, kind, door, name)


def parameters_of(function: Callable[..., object]) -> dict[str, list[str]]:
    """Return the names of a test's cases, by the first name of each of its parameters."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    return {_first_name(mark.args[0]): _names(list(mark.args[1]), mark.kwargs.get("ids")) for mark in marks}


def _first_name(names: str | Sequence[str]) -> str:
    return (names.split(",") if isinstance(names, str) else list(names))[0].strip()


def _names(values: Sequence[Any], ids: Any) -> list[str]:
    if callable(ids):
        return [str(ids(value)) for value in values]
    return [str(name) for name in (values if ids is None else ids)]


def main() -> None:
    """Print every kind at every door, then their numbers."""
    found = played()
    for each in found:
        sys.stdout.write(f"{each.world} | {each.kind} | {each.door} | {each.test}\n")
    kinds = {(each.world, each.kind) for each in found}
    sys.stdout.write(f"{len(kinds)} kinds, {len(found)} kinds x doors\n")


if __name__ == "__main__":
    main()

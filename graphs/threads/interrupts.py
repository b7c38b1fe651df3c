"""Interrupts of LangGraph, on their way from a node or sub-run to the caller, and the caller's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command, Interrupt, StateSnapshot

from ...modules.errors import NoFailure, SettingsError

NoFailure.register(GraphBubbleUp)

Answers = Mapping[str, object]
"""Answers to interrupts by their ids."""

INTERRUPTS = "__interrupt__"
"""Key of the interrupts in the final state of a run that waits for answers."""


def interrupts_in(final: Mapping[str, object]) -> tuple[Interrupt, ...]:
    """Return the interrupts that a run ended with, each once; empty for a finished one.

    Chunks that share a sub-run pass on the same one.
    """
    found = cast(Sequence[Interrupt], final.get(INTERRUPTS, ()))
    return tuple({each.id: each for each in found}.values())


def format_waiting(interrupts: Sequence[Interrupt]) -> str:
    """Return what a run waits for, as an error message; ``""`` without interrupts."""
    asked = "; ".join(f"{each.value!r:.200}" for each in interrupts)
    return f"The question waits for an answer to: {asked}. Give it by Command(resume=…) on its thread." if asked else ""


def raise_interrupts(final: Mapping[str, object]) -> None:
    """Interrupt the calling node if a run inside it ended with interrupts.

    Raises:
        GraphInterrupt: It did. The interrupts keep their ids, by which ``own_answers`` finds their answers.
    """
    if found := interrupts_in(final):
        raise GraphInterrupt(found)


def own_answers(snapshot: StateSnapshot, answers: Answers) -> Command[Any] | None:
    """Return the command that gives a thread its share of the answers; None without one."""
    own = {each.id: answers[each.id] for each in snapshot.interrupts if each.id in answers}
    return Command(resume=own) if own else None


def answers_of(command: Command[Any], snapshot: StateSnapshot, thread_id: str) -> Answers:
    """Return the answers of a ``Command(resume=…)`` to a thread's interrupts by id.

    ``resume`` is the answer to the only interrupt, or a mapping from ids of interrupts to answers.

    Raises:
        SettingsError: The command does something else than resume, the thread waits for no answer, or for several.
    """
    given = command.resume
    if given is None or command.update is not None or command.goto:
        raise SettingsError(f"{command!r} does not only resume. Give Command(resume=…); update_state changes a thread.")
    waiting = {each.id: each.value for each in snapshot.interrupts}
    if not waiting:
        raise SettingsError(f"Thread {thread_id!r} waits for no answer. Give None to resume it.")
    if isinstance(given, Mapping) and given and given.keys() <= waiting.keys():
        return dict(given)
    if len(waiting) > 1:
        asked = "; ".join(f"{key}: {value!r:.100}" for key, value in waiting.items())
        raise SettingsError(
            f"Thread {thread_id!r} waits for {len(waiting)} answers. Give Command(resume={{id: answer}}) for ids "
            f"of these: {asked}."
        )
    return dict.fromkeys(waiting, given)

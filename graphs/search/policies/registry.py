"""Registry of the policies, for sessions, batch runs, replays and the command line.

A policy is one file here and its line below; one of one's own needs neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import cast

from ....modules.errors import SettingsError, UserError, reason_of
from ....modules.parts import Part, check_name, fingerprint_of, instantiate, is_from_outside, part_of
from ....modules.specs import name_in, parse_spec
from ..candidate import Candidate, Expansion, SearchLimits, SearchProgress
from ..policy import NamedPolicy, Policy
from .again import Again
from .best_first import BestFirst
from .breadth import Breadth
from .mcts import Mcts
from .random_order import RandomOrder
from .treequest_policy import TreeQuest
from .value_cost import ValueCost
from .wider import Wider

POLICIES: Mapping[str, type[NamedPolicy]] = {
    kind.name: kind for kind in (Breadth, BestFirst, ValueCost, Wider, Again, Mcts, RandomOrder, TreeQuest)
}
"""The search policies by name, in the order of reports."""

_METHODS = ("choose", "allows_retry", "fingerprint")


def check_policy(spec: str) -> None:
    """Check the spec of a policy; one of one's own is not imported.

    Raises:
        SettingsError: The name or a parameter is unknown, or a value is wrong.
    """
    if name_in(spec) in POLICIES:
        parse_spec("policy", spec, POLICIES)
    else:
        check_name("policy", spec, POLICIES)


def create_policy(given: str | object) -> Policy:
    """Create a policy.

    Args:
        given: A name with parameters, such as ``best_first`` or ``mcts:c=1.4,backup=mean``; or one of your own: a
            policy, or a class or function that makes one; itself, its ``module:name`` or a plug-in's name.

    >>> create_policy("mcts:c=1.4").fingerprint()["c"]
    '1.4'

    Raises:
        SettingsError: The name or a parameter is unknown, or a policy of one's own cannot be made.
    """
    if isinstance(given, str):
        check_policy(given)
        if name_in(given) in POLICIES:
            return parse_spec("policy", given, POLICIES)
    part = part_of("policy", given)
    policy = instantiate(part)
    if not all(callable(getattr(policy, method, None)) for method in _METHODS):
        raise SettingsError(
            f"{part.name!r} gives {policy!r:.100}. Give it the methods {', '.join(_METHODS)} of a Policy."
        )
    return cast(Policy, policy) if part.is_built_in else OwnPolicy(cast(Policy, policy), part)


def spec_of(fingerprint: Mapping[str, str], prefix: str) -> str | None:
    """Return the spec of the policy or stop that a thread's fingerprint records; None where it records none.

    >>> spec_of({"policy.name": "mcts", "policy.c": "1.4"}, "policy")
    'mcts:c=1.4'
    """
    own = {key.removeprefix(f"{prefix}."): text for key, text in fingerprint.items() if key.startswith(f"{prefix}.")}
    name = own.pop("name", None)
    own.pop("libraries", None)
    if name is None or "part" in own:
        return name
    return name + (":" if own else "") + ",".join(f"{key}={text}" for key, text in own.items())


class OwnPolicy:
    """A policy of one's own, whose name and source are in its fingerprint, and whose choices are checked."""

    def __init__(self, inner: Policy, part: Part) -> None:
        self._inner = inner
        self._part = part

    def fingerprint(self) -> dict[str, str]:
        """Return the fingerprint of the policy, with its name and its source."""
        with self._named():
            return {"name": self._part.name, **fingerprint_of(self._part, self._inner)}

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return the choice of the inner policy.

        Raises:
            SettingsError: It failed, or chose what is no candidate, or one twice.
        """
        with self._named():
            chosen = list(islice(self._inner.choose(candidates, spent, limits), len(candidates) + 1))
        known = {id(each) for each in candidates}
        if len({id(each) for each in chosen} & known) != len(chosen):
            raise SettingsError(
                f"The policy {self._part.name!r} chose {chosen!r:.200}. Choose some of the candidates, each once."
            )
        return chosen

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return what the inner policy says.

        Raises:
            SettingsError: It failed, or says neither yes nor no.
        """
        with self._named():
            allowed: object = self._inner.allows_retry(tries)
        if not isinstance(allowed, bool):
            raise SettingsError(
                f"The policy {self._part.name!r} gave {allowed!r:.200} for allows_retry. Give True or False."
            )
        return allowed

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise errors of the inner policy as settings errors that name it."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, UserError) or is_from_outside(error):
                raise
            raise SettingsError(
                f"The policy {self._part.name!r} failed: {type(error).__name__}: {reason_of(error)}."
            ) from error

"""The contract of policies: which ones keep it, and which rule a broken one breaks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from judgetree import Candidate
from judgetree.graphs.search.policies.registry import POLICIES
from judgetree.testing import ContractError, check_policy


@pytest.mark.parametrize("name", [*POLICIES, "value_cost:worth=4", "mcts:c=0", "again:tries=2"])
def test_the_built_in_policies_keep_the_contract(name: str) -> None:
    if name == "treequest":
        pytest.importorskip("treequest")
    check_policy(name)


class Surest:
    """Keeps the contract; the broken ones change one method."""

    def __init__(self) -> None:
        self.seen: list[Candidate] = []

    def fingerprint(self) -> dict[str, str]:
        return {}

    def choose(self, candidates: Sequence[Candidate], spent: object, limits: object) -> Any:
        return sorted(candidates, key=lambda each: (-each.p, each.order))

    def allows_retry(self, tries: Sequence[object]) -> bool:
        return False


def test_a_policy_of_ones_own_keeps_the_contract_as_an_object_and_as_a_class() -> None:
    check_policy(Surest())
    check_policy(Surest)


def broken(**methods: Callable[..., object]) -> object:
    return type("Broken", (Surest,), methods)()


def only_new(self: Any, candidates: Sequence[Candidate], spent: object, limits: object) -> list[Candidate]:
    new = [each for each in candidates if each not in self.seen]
    self.seen += candidates
    return new


def sorts_in_place(self: object, candidates: list[Candidate], *_: object) -> list[Candidate]:
    candidates.sort(key=lambda each: each.p)
    return candidates


COUNT = itertools.count()
BROKEN = {
    "no policy": (object(), "Give it the methods choose, allows_retry, fingerprint"),
    "unknown name": ("bredth", "Did you mean 'breadth'"),
    "no fingerprint": (broken(fingerprint=lambda self: 1 / 0), "fingerprint .* failed: ZeroDivisionError"),
    "random fingerprint": (broken(fingerprint=lambda self: {"n": str(next(COUNT))}), "the same each time"),
    "fails": (broken(choose=lambda self, *_: 1 / 0), "failed: ZeroDivisionError"),
    "chooses a stranger": (broken(choose=lambda self, *_: ["a"]), "Choose some of the candidates, each once"),
    "chooses twice": (broken(choose=lambda self, all_of, *_: [all_of[0], all_of[0]]), "Choose some of the candidates"),
    "remembers": (broken(choose=only_new), "the same choice each time"),
    "goes by threads": (
        broken(choose=lambda self, all_of, *_: sorted(all_of, key=lambda each: each.thread_id)),
        "depends on no thread_id",
    ),
    "changes the list": (broken(choose=sorts_in_place), "leaves the candidates as they are"),
    "ends by number": (
        broken(choose=lambda self, all_of, *_: all_of if len(all_of) < 4 else []),
        "chooses nothing of a part",
    ),
    "retries in words": (broken(allows_retry=lambda self, tries: "no"), "for allows_retry. Give True or False"),
    "retries after all": (broken(allows_retry=lambda self, tries: len(tries) == 1), "allows none after them"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_policy_is_told_which_rule_it_breaks(name: str) -> None:
    policy, said = BROKEN[name]
    with pytest.raises(ContractError, match=said):
        check_policy(policy)

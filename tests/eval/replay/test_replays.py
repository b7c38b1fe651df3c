"""The front door of replays: policies as specs, objects and classes, and budgets that are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from judgetree.evaluation.replay.oracle_order import OracleOrder
from judgetree.evaluation.replay.replays import replay
from judgetree.graphs.search.candidate import Candidate, Expansion, SearchLimits, SearchProgress
from judgetree.graphs.search.policies.best_first import BestFirst
from judgetree.graphs.search.policies.breadth import Breadth
from judgetree.graphs.search.policies.wider import Wider
from judgetree.modules.errors import SettingsError
from tests.eval.replay.test_play import BushyWorld


@dataclass
class LastFirst:
    """A policy of one's own, which cannot be hashed."""

    most: int = 2

    def fingerprint(self) -> dict[str, str]:
        return {"most": str(self.most)}

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        return list(reversed(candidates))[: self.most]

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        return False


def test_policies_are_specs_objects_or_classes_under_names_that_tell_them_apart() -> None:
    given = ("breadth", Breadth, Wider(tries=2), Wider(tries=3), BestFirst(), LastFirst, LastFirst(1), LastFirst(3))
    rows = replay({"one": BushyWorld()}, policies=(*given, OracleOrder, "oracle_order"), budgets=(20, 20))
    names = list(rows["policy"])
    assert len(names) == len({*names}) == 8, "breadth and oracle_order are each played once"
    assert all(isinstance(name, str) for name in names)
    assert [name.split("(")[0].split(":")[-1] for name in names if "LastFirst" in name] == ["LastFirst"] * 3
    assert [name for name in names if name.startswith("wider:") and "tries=2" in name]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"policies": "breadth"},
            r"policies='breadth' is not allowed. Give one or more, such as \('breadth', ",
        ),
        ({"policies": ()}, r"policies=\(\) is not allowed"),
        ({"policies": (3,)}, "Give it the methods choose"),
        ({"budgets": ()}, r"budgets=\(\) is not allowed. Give whole numbers from 1 on"),
        ({"budgets": (8, 0)}, r"budgets=\(8, 0\) is not allowed"),
        ({"budgets": 8}, "budgets=8 is not allowed"),
    ],
)
def test_what_is_no_policy_or_budget_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        replay({"one": BushyWorld()}, **given)  # type: ignore[arg-type]

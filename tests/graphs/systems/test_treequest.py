"""AB-MCTS of treequest as a policy: pure, seeded, and a clear error without its library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from judgetree.graphs.search.candidate import Ancestor, Candidate, Expansion, SearchLimits, SearchProgress
from judgetree.graphs.search.policies.registry import create_policy, spec_of
from judgetree.modules.errors import DependencyError

NARROW = SearchLimits(max_calls=60, width=1)


def candidate(*chunks: str, p: float = 0.5, rank: int = 0) -> Candidate:
    path = tuple(part for chunk in chunks for part in (chunk, f"{chunk}?"))
    above = tuple(Ancestor(chunk_id=chunk, rank=0, p=0.5) for chunk in chunks[:-1])
    return Candidate(
        thread_id="t",
        chunk_id=chunks[-1],
        next_query=f"{chunks[-1]}?",
        path=path,
        p_needed=p,
        rank=rank,
        ancestors=above,
        calls=4,
    )


def granted(each: Candidate, number: int, **found: object) -> Expansion:
    return Expansion(candidate=each, round=number, priority=0, **found)  # type: ignore[arg-type]


def drawn(spec: str, candidates: Sequence[Candidate], *expansions: Expansion) -> str:
    (chosen,) = create_policy(spec).choose(candidates, SearchProgress(expansions=expansions), NARROW)
    return chosen.chunk_id


def test_without_its_library_the_policy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "treequest", None)
    with pytest.raises(DependencyError, match=r"pip install 'judgetree\[treequest\]'"):
        create_policy("treequest")


def test_a_choice_depends_on_the_seed_and_the_search_alone() -> None:
    np = pytest.importorskip("numpy")
    pytest.importorskip("treequest")
    tried = [granted(candidate("a"), 1, found=(("b", 0.6), ("c", 0.5))), granted(candidate("d"), 2)]
    open_ones = [candidate("a", "b"), candidate("a", "c", rank=1), candidate("e", rank=2)]
    before = np.random.get_state()[1].tolist()
    choices = [[drawn(f"treequest:seed={seed}", open_ones, *tried) for seed in range(30)] for _ in range(2)]
    assert choices[0] == choices[1]
    assert set(choices[0]) == {"b", "e"}, "wider at the root and deeper below a, the best chunk of each first"
    assert np.random.get_state()[1].tolist() == before


def test_sub_runs_that_found_more_are_descended_into_more_often() -> None:
    pytest.importorskip("treequest")
    good, bad = candidate("good"), candidate("bad")
    tried = [granted(good, 1, suffices=True), granted(bad, 2)]
    below = [candidate("good", "g"), candidate("bad", "b"), candidate("e")]
    draws = [drawn(f"treequest:prior=beta,seed={seed}", below, *tried) for seed in range(40)]
    assert draws.count("g") > 2 * draws.count("b") > 0


def test_a_query_with_nothing_left_to_ask_is_stood_in_for_by_the_nearest() -> None:
    pytest.importorskip("treequest")
    tried = [granted(candidate("a"), 1), granted(candidate("b"), 2)]
    assert {drawn(f"treequest:seed={seed}", [candidate("c")], *tried) for seed in range(10)} == {"c"}
    wide = create_policy("treequest").choose(
        [candidate(name) for name in "cde"], SearchProgress(expansions=tuple(tried)), replace(NARROW, width=None)
    )
    assert sorted(each.chunk_id for each in wide) == ["c", "d", "e"]


def test_a_thread_names_the_libraries_and_is_resumed_by_its_spec() -> None:
    pytest.importorskip("treequest")
    given = create_policy("treequest:seed=3,prior=beta").fingerprint()
    assert given["libraries"].startswith("treequest 0.3.3, numpy ")
    spec = spec_of({f"policy.{key}": text for key, text in given.items()}, "policy")
    assert spec is not None
    assert create_policy(spec).fingerprint() == given

"""The list of what the attack suite plays fits the suite."""

from __future__ import annotations

from .kinds import ATTACKS, CHECKS, attack_tests, parameters_of, played

LEAST_KINDS = 160


def test_every_entry_names_a_test_and_its_parameters() -> None:
    tests = dict(attack_tests())
    for name, attack in ATTACKS.items():
        assert name in tests, f"{name} is gone: take it out of tests/attacks/kinds.py"
        assert {attack.kinds, attack.doors} - {""} <= parameters_of(tests[name]).keys(), name


def test_every_test_is_an_attack_or_a_check() -> None:
    tests = {name for name, _ in attack_tests()}
    assert CHECKS - tests == set(), "these are gone: take them out of tests/attacks/kinds.py"
    assert tests - CHECKS - ATTACKS.keys() == set(), "give these an entry in tests/attacks/kinds.py"
    assert CHECKS & ATTACKS.keys() == set()


def test_no_kind_is_played_twice_at_a_door_by_one_test() -> None:
    for name, function in attack_tests():
        for parameter, cases in parameters_of(function).items():
            assert len(cases) == len(set(cases)), (name, parameter)


def test_the_suite_plays_enough_kinds() -> None:
    assert len({(each.world, each.kind) for each in played()}) >= LEAST_KINDS

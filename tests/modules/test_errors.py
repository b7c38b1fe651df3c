"""The error tree that the docstring draws is the tree that the classes are."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from judgetree.modules import errors

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__ == errors.__name__
}


def drawn_tree() -> dict[str, str]:
    """Each class of the docstring's tree with its parent; the root with ``""``."""
    parents: dict[str, str] = {}
    ancestors: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^    ([│├└─\s]*)(\w+)", line)
        if not found:
            continue
        indent, name = len(found[1]), found[2]
        while ancestors and ancestors[-1][0] >= indent:
            ancestors.pop()
        parents[name] = ancestors[-1][1] if ancestors else ""
        ancestors.append((indent, name))
    return parents


def test_docstring_draws_every_class_below_its_first_base() -> None:
    assert drawn_tree() == {
        name: base.__name__ if (base := cls.__bases__[0]) is not Exception else "" for name, cls in CLASSES.items()
    }


def test_docstring_names_every_further_base() -> None:
    further = {name: [base.__name__ for base in cls.__bases__[1:]] for name, cls in CLASSES.items()}
    noted = {name: re.findall(rf"{name}\s+\(also an? (\w+)\)", errors.__doc__ or "") for name in CLASSES}
    assert noted == further
    assert further["ModelSetupError"] == ["UserError"]


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_every_error_is_ours_explains_itself_and_survives_a_process_boundary(cls: type[Exception]) -> None:
    assert issubclass(cls, errors.JudgetreeError)
    assert cls.__doc__
    assert str(pickle.loads(pickle.dumps(cls("what, which, what to do")))) == "what, which, what to do"


def test_user_errors_are_those_that_the_caller_can_mend() -> None:
    assert {name for name, cls in CLASSES.items() if not issubclass(cls, errors.UserError)} == {
        "JudgetreeError",
        "ModelCallError",
        "BudgetSpent",
    }

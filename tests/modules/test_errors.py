"""The error tree that the docstring draws is the tree that the classes are."""

from __future__ import annotations

import asyncio
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


async def _raise(*raised: Exception) -> None:
    async def fail(error: Exception) -> None:
        raise error

    with errors.ungrouped(errors.UserError):
        async with asyncio.TaskGroup() as outer:
            async with asyncio.TaskGroup() as inner:
                for error in raised:
                    inner.create_task(fail(error))
            outer.create_task(asyncio.sleep(0))


def test_of_a_group_of_errors_the_first_comes_by_itself() -> None:
    first, second = errors.SettingsError("first"), errors.LoadingError("second")
    with pytest.raises(errors.SettingsError, match="first") as caught:
        asyncio.run(_raise(first, second))
    assert caught.value is first
    assert caught.value.__suppress_context__


def test_errors_of_other_kinds_stay_in_their_group() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(_raise(ZeroDivisionError("not ours")))
    assert caught.group_contains(ZeroDivisionError)
    with errors.ungrouped(errors.UserError):
        pass


@pytest.mark.parametrize(
    ("status", "refuses_all"), [(401, True), (403, True), (404, True), (400, False), (413, False), (None, False)]
)
def test_refusal_of_the_key_or_the_model_is_one_of_all_requests(status: int | None, refuses_all: bool) -> None:
    assert errors.ModelSetupError("refused", status=status).refuses_all is refuses_all

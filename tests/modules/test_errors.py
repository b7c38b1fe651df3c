"""The error tree that the docstring draws is the tree that the classes are; what messages say."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pickle
import re
from pathlib import Path
from typing import Self

import pytest
from pydantic import BaseModel, ValidationError, model_validator

from judgetree import RagConfig
from judgetree.modules import errors
from judgetree.modules.errors import DependencyError, faults_of, needs_extra

REPO = Path(__file__).parents[2]
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
def test_every_error_explains_itself_and_can_be_pickled(cls: type[Exception]) -> None:
    assert issubclass(cls, errors.JudgetreeError)
    assert cls.__doc__
    assert str(pickle.loads(pickle.dumps(cls("what, which, what to do")))) == "what, which, what to do"


def test_user_errors_are_those_that_the_caller_can_mend() -> None:
    assert {name for name, cls in CLASSES.items() if not issubclass(cls, errors.UserError)} == {
        "JudgetreeError",
        "ModelCallError",
        "ModelRequestError",
        "NoQuestion",
        "BudgetSpent",
        "QuestionInterrupted",
        "ThreadMoved",
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


SETUP, REQUEST, LATER = errors.ModelSetupError, errors.ModelRequestError, errors.ModelCallError


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        (SETUP, [401, 402, 403, 404, 405]),
        (REQUEST, [400, 413, 415, 422, 451]),
        (LATER, [None, 200, 302, 408, 409, 429, 500, 503, 529]),
    ],
)
def test_status_says_whether_the_request_alone_is_refused(kind: type[Exception], statuses: list[int | None]) -> None:
    assert {errors.error_class_of(status) for status in statuses} == {kind}


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "insufficient_quota", SETUP),
        (429, "rate_limit_exceeded", LATER),
        (429, "Throttling.RateQuota", LATER),
        (400, "Arrearage", SETUP),
        (400, "DataInspectionFailed", REQUEST),
        (400, "invalid_api_key", SETUP),
        (503, "insufficient_quota", LATER),
    ],
)
def test_code_tells_a_spent_quota_from_a_rate_limit(status: int, code: str, kind: type[Exception]) -> None:
    assert errors.error_class_of(status, code) is kind


# --- extras that are not installed ---


def test_missing_package_is_told_with_the_extra_that_brings_it() -> None:
    with pytest.raises(DependencyError) as caught, needs_extra("eval", what="The report"):
        importlib.import_module("a_package_that_nobody_has")
    assert str(caught.value) == (
        "The report needs the package a_package_that_nobody_has. Run: pip install 'judgetree[eval]'"
    )


def test_missing_module_of_our_own_is_no_matter_of_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"judgetree\.modules\.nowhere"), needs_extra("eval"):
        importlib.import_module("judgetree.modules.nowhere")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), needs_extra("eval"):
        raise ZeroDivisionError


# --- faults of values ---


class Span(BaseModel):
    first: int
    last: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.last < self.first:
            raise ValueError("it ends before it begins")
        return self


class Text(BaseModel):
    spans: list[Span]


@pytest.mark.parametrize(
    ("document", "faults"),
    [
        (
            {"spans": [{"first": 1, "last": 2}, {"first": "one"}]},
            [
                "spans.1.first: Input should be a valid integer, unable to parse string as an integer",
                "spans.1.last: Field required",
            ],
        ),
        ({"spans": [{"first": 2, "last": 1}]}, ["spans.0: it ends before it begins"]),
        ([], ["text: Input should be a valid dictionary or instance of Text"]),
    ],
    ids=["in order", "a check of our own", "the whole"],
)
def test_each_fault_stands_behind_its_place(document: object, faults: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        Text.model_validate(document)
    assert faults_of(caught.value, whole="text") == faults


def test_a_fault_of_the_whole_that_has_no_name_is_told_alone() -> None:
    with pytest.raises(ValidationError) as caught:
        Text.model_validate([])
    assert faults_of(caught.value) == ["Input should be a valid dictionary or instance of Text"]


def test_what_a_user_named_stands_as_typed() -> None:
    typed = "There is no file 'a.. B.txt'. Give another.."
    assert str(errors.SettingsError(typed)) == typed


def test_a_reason_ends_its_sentence_once() -> None:
    """The text of an error may be a sentence, so that a message puts ``reason_of(error)`` before its own full stop."""
    files = [path for room in ("modules", "graphs", "eval", "app") for path in (REPO / room).rglob("*.py")]
    assert [path.name for path in files if re.search(r"\{error\}\.[ \"]", path.read_text("utf-8"))] == []


def test_no_message_of_a_nested_error_has_two_full_stops(tmp_path: Path) -> None:
    """Of the doors that repeat another error in their own."""
    (file := tmp_path / "own.yaml").write_text("format: judgetree-prompts/9\n", encoding="utf-8")
    for keys in ({"prompts": str(file)}, {"judge": "a b"}, {"policy": "none"}, {"stop": "none"}, {"sharing": "x"}):
        with pytest.raises(errors.SettingsError) as refused:
            RagConfig(**keys)
        assert not re.search(r"\.\.(\s|$)", str(refused.value)), str(refused.value)

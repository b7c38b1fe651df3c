"""What is not installed is told with the extra that brings it."""

from __future__ import annotations

import importlib

import pytest

from judgetree.modules.errors import DependencyError, needs_extra


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

"""A calculator for agents."""

from __future__ import annotations

import ast
import math

from langchain_core.tools import BaseTool, StructuredTool
from simpleeval import DEFAULT_OPERATORS, SimpleEval

_MOST_DECIMALS = 400
"""Most decimal places, before or after the point, of a rounding; Python would round to more for hours."""
_LARGEST_EXACT = 2.0**53
"""Up to here, a whole number of a float is exact."""


def _rounded(number: float, places: int = 0) -> float:
    if abs(places) > _MOST_DECIMALS:
        raise ValueError("too many decimal places")
    return round(number, places) if places else round(number)


_FUNCTIONS = {
    "abs": abs,
    "round": _rounded,
    **{each.__name__: each for each in (min, max)},
    **{each.__name__: each for each in (math.sqrt, math.exp, math.log, math.log10, math.log2, math.floor, math.ceil)},
    **{each.__name__: each for each in (math.sin, math.cos, math.tan, math.radians, math.degrees)},
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_MOST_BITS = 4096
"""Most bits of a power; Python would compute larger ones for hours."""
_DIGITS = 12
"""Significant digits of a result that is no whole number."""


def calculate(expression: str) -> str:
    """Compute an arithmetic expression.

    >>> calculate("(212 - 32) * 5 / 9"), calculate("2^10 × 3")
    ('100', '3072')

    Raises:
        ValueError: It is no arithmetic expression, or its numbers are too large.
    """
    try:
        return _shown(_calculator().eval(_only_expression(expression.translate(_SIGNS))))
    except Exception as error:  # simpleeval's errors have no common class besides it
        raise ValueError(
            f"{expression!r:.100} cannot be computed: {error}. Write numbers without separators of thousands, "
            f"+ - * / // % ^, brackets, {', '.join(_FUNCTIONS)}, {', '.join(_CONSTANTS)}."
        ) from error


def calculator() -> BaseTool:
    """Return the calculator as a tool of LangChain."""
    return StructuredTool.from_function(
        calculate,
        name="calculator",
        description="computes an arithmetic expression such as (212 - 32) * 5 / 9",
    )


def _only_expression(text: str) -> str:
    """Return an expression; simpleeval would compute the first of several, and the right side of an assignment."""
    if text.strip():
        ast.parse(text.strip(), mode="eval")
    return text


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueError("its value is no number")
    is_exact = value.is_integer() and abs(value) <= _LARGEST_EXACT
    return str(int(value)) if is_exact else f"{value:.{_DIGITS}g}"


def _calculator() -> SimpleEval:
    return SimpleEval(operators={**DEFAULT_OPERATORS, ast.Pow: _power}, functions=_FUNCTIONS, names=_CONSTANTS)


def _power(base: float, exponent: float) -> float:
    if abs(exponent) * math.log2(max(abs(base), 2)) > _MOST_BITS:
        raise ValueError("the power is too large")
    result: float = base**exponent
    return result

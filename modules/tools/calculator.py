"""A calculator for agents."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

from langchain_core.tools import BaseTool, StructuredTool

from ..errors import reason_of

LONGEST_EXPRESSION = 2_000
"""Most characters of an expression, which bound its numbers and operations too."""
_MOST_BITS = 12_000
"""Most bits of a whole number, checked before a product or power is computed; Python shows up to 14,283."""
_MOST_DECIMALS = 400
"""Most decimal places, before or after the point, of a rounding; Python would round to more for hours."""
_LARGEST_EXACT = 2.0**53
"""Up to here, a whole number of a float is exact."""
_DIGITS = 12
"""Significant digits of a result that is no whole number."""


def _rounded(number: float, places: int = 0) -> float:
    if abs(places) > _MOST_DECIMALS:
        raise ValueError("too many decimal places")
    return round(number, places) if places else round(number)


def _product(one: float, other: float) -> float:
    if isinstance(one, int) and isinstance(other, int) and one.bit_length() + other.bit_length() > _MOST_BITS:
        raise ValueError("the product is too large")
    return one * other


def _power(base: float, exponent: float) -> float:
    if isinstance(base, int) and isinstance(exponent, int) and math.log2(max(abs(base), 1)) * exponent > _MOST_BITS:
        raise ValueError("the power is too large")
    result: float = base**exponent
    return result


_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "round": _rounded,
    **{each.__name__: each for each in (min, max)},
    **{each.__name__: each for each in (math.sqrt, math.exp, math.log, math.log10, math.log2, math.floor, math.ceil)},
    **{each.__name__: each for each in (math.sin, math.cos, math.tan, math.radians, math.degrees)},
}
_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
_OPERATORS: Mapping[type[ast.operator | ast.unaryop], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _product,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_TOKENS = re.compile(
    r"(?:\s++|[-+*/%(),]|[a-z]\w*+"
    r"|(?:0[xob][\da-f]++|(?:\d[\d_]*+\.?+[\d_]*+|\.\d[\d_]*+)(?:e[-+]?\d++)?+)(?![\w.]))*+",
    re.ASCII | re.IGNORECASE,
)
"""Blanks, signs, names and numbers: all that is parsed as Python, whose parser warns of much else."""


def calculate(expression: str) -> str:
    """Compute an arithmetic expression in bounded time and memory.

    >>> calculate("(212 - 32) * 5 / 9"), calculate("2^10 × 3")
    ('100', '3072')

    Raises:
        ValueError: It is no arithmetic expression, is too long, or its numbers are too large.
    """
    try:
        return _shown(_value(_parsed(expression)))
    # KeyError: a function without its brackets, or an operation of matrices; Recursion- and MemoryError: the parser's.
    except (ValueError, TypeError, ArithmeticError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{expression[:100]!r:.100} cannot be computed: {reason_of(error)}. Write numbers without separators of "
            f"thousands, + - * / // % ^, brackets, {', '.join(_FUNCTIONS)}, {', '.join(_CONSTANTS)}."
        ) from error


def calculator() -> BaseTool:
    """Return the calculator as a tool of LangChain."""
    return StructuredTool.from_function(
        calculate,
        name="calculator",
        description="computes an arithmetic expression such as (212 - 32) * 5 / 9",
    )


def _parsed(expression: str) -> ast.expr:
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(f"it is longer than {LONGEST_EXPRESSION:,} characters")
    text = expression.translate(_SIGNS).strip()
    allowed = _TOKENS.match(text)
    if allowed is not None and allowed.end() < len(text):
        raise ValueError(f"{text[allowed.end() :][:10]!r} is no arithmetic")
    return ast.parse(text, mode="eval").body


def _value(tree: ast.expr) -> float:
    """Compute a tree from its leaves upwards, without recursion."""
    values: dict[ast.expr, float] = {}
    for node in reversed([each for each in ast.walk(tree) if isinstance(each, ast.expr)]):
        if isinstance(node, ast.Name) and node.id in _FUNCTIONS:
            continue  # its call looks it up
        values[node] = value = _computed(node, values)
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise ValueError("a number is too large")
    return values[tree]


def _computed(node: ast.expr, values: Mapping[ast.expr, float]) -> float:
    """Return the value of a node, whose parts are computed already."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](values[operand])
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATORS[type(operation)](values[left], values[right])
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(values[each] for each in given))
    raise ValueError(f"a {type(node).__name__} is no arithmetic")


def _shown(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueError("its value is no number")
    is_exact = value.is_integer() and abs(value) <= _LARGEST_EXACT
    return str(int(value)) if is_exact else f"{value:.{_DIGITS}g}"

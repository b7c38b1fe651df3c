"""Numbers in answers: the same value in another spelling, and other values that look alike."""

from __future__ import annotations

import pytest

from judgetree.evaluation.metrics.numbers import number_match
from tests.cpu_time import cpu_time_below


@pytest.mark.parametrize(
    ("prediction", "gold", "lang", "expected"),
    [
        ("35", "-3.5", "en", 0.0),
        ("-3.5", "-3.5", "en", 1.0),
        ("−3.5", "-3.5", "en", 1.0),
        ("－３．５", "-3.5", "zh", 1.0),
        ("+3.50", "3.5", "en", 1.0),
        ("3.5", "-3.5", "en", 0.0),
        ("1,234.5 kg", "1234.5 kg", "en", 1.0),
        ("1 234,5 kg", "1234.5 kg", "fr", 1.0),
        ("1.234,5", "1,234.5", "en", 1.0),
        ("1’234", "1234", "de", 1.0),
        ("12,000", "12000", "en", 1.0),
        ("12.000", "12000", "de", 1.0),
        ("12.000", "12", "en", 1.0),
        ("0.125", "0,125", "en", 1.0),
        ("3,500", "3.5", "en", 0.0),
        ("3,5", "3.5", "en", 1.0),
        ("6e3", "6000", "en", 1.0),
        ("10^6", "106", "en", 0.0),
        ("10⁶", "106", "en", 0.0),
        ("H2O", "2", "en", 0.0),
        ("The drum turns at 12,000 rpm, under 20 bar.", "12000 rpm", "en", 1.0),
        ("12000 at 20", "12000 rpm", "en", 0.0),
        ("12000", "12000 rpm", "en", 1.0),
        ("between 3 and 4", "3", "en", 0.0),
        ("3.5%", "3.5 %", "en", 1.0),
        ("3.5", "3.5%", "en", 1.0),
        ("3.5 kg", "3.5%", "en", 0.0),
        ("3.5‰", "3.5%", "en", 0.0),
        ("$3", "$3", "en", 1.0),
        ("in 1984.", "1984", "en", 1.0),
        ("12 % of users", "12 %", "en", 1.0),
        ("约12%的人", "12%", "zh", 1.0),
        ("12 % der Nutzer", "12 %", "de", 1.0),
        ("50 percent", "50 %", "en", 1.0),
        ("minus 3", "3", "en", 0.0),
        ("minus 3", "-3", "en", 1.0),
        ("20-30 °C", "30 °C", "en", 0.0),
        ("20 to 30 °C", "20 °C", "en", 0.0),
        ("30 ℃", "30 °C", "en", 1.0),
        ("$3.5 million", "$3.5 billion", "en", 0.0),
        ("$3,500 million", "$3.5 billion", "en", 1.0),
        ("3.5万", "3.5亿", "zh", 0.0),
        ("$5", "€5", "en", 0.0),
        ("€5", "5 €", "en", 1.0),
        ("CHF 5", "CHF 5", "en", 1.0),
        ("₹12,34,567", "₹1234567", "en", 1.0),
        ("٣٫٥", "3.5", "ar", 1.0),
        ("0.5", ".5", "en", 1.0),
        ("1.5×10^3", "1500", "en", 1.0),
        ("1.5 × 10³", "1500", "en", 1.0),
        ("1.2.3", "1.2", "en", 0.0),
        ("10 km", "10 kg", "en", 0.0),
        ("12 Monkeys", "12 Angry Men", "en", None),
        ("3 Idiots", "3 Doors Down", "en", None),
        ("5 May", "5 June", "en", None),
        ("12 Monkeys", "12 Idiots", "en", None),
        ("230 V", "230 V", "en", 1.0),
        ("3 me\u0301tres", "3 me\u0301tres", "fr", 1.0),
        ("转速为12000转", "12000转", "zh", 1.0),
        ("", "3", "en", 0.0),
        ("three", "3", "en", 0.0),
        ("1" * 400, "1", "en", 0.0),
        ("3", "Bern", "en", None),
        ("3", "2 May 1984", "en", None),
        ("3", "3 of the five drums of the plant", "en", None),
        ("3", "GB 5749", "en", None),
        ("3", "", "en", None),
    ],
)
def test_a_number_is_its_value(prediction: str, gold: str, lang: str, expected: float | None) -> None:
    assert number_match(prediction, [gold], lang=lang) == expected


def test_any_gold_answer_that_is_a_number_will_do() -> None:
    assert number_match("four", ["four", "4"]) == 0.0
    assert number_match("4 bar", ["four", "5", "4"]) == 1.0
    assert number_match("4", ["four"]) is None


@pytest.mark.parametrize("piece", ["1", "1,", "1,000", "1 000 ", "- ", "1e", "a1", "1'", "％", "x "])
def test_texts_are_read_in_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    with cpu_time_below(1):
        number_match(text, [text, "3"])

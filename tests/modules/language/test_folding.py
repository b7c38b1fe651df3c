"""One spelling for what looks alike, with a mark for what is raised or lowered."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from judgetree.modules.language.folding import folded
from judgetree.modules.language.search_form import words_of_query, words_of_text

FOLDED = {
    "plain ASCII, 10^6": "plain ASCII, 10^6",
    "ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ": "ff fi fl ffi ffl st st",
    "\ufe8d\ufedf\ufeb4\ufefc\ufee1": "السلام",
    "كـــتاب": "كتاب",
    "⽔⼈⽇ ⻓⻛⻢ 工": "水人日 长风马 工",
    "ＡＢ１２，ｶﾞｽ ﾊﾟ ﾡ ￥": "AB12，ガス パ ㄱ ¥",
    "﹣１ ︵ ﹩ ３．５％": "-1 ( $ 3.5%",
    "co\u00adop co\u00ad\r\n  op co\u00ad \nop": "coop coop coop",
    "a\u200bb a\u2060b \ufeffa a\u200eb a\u200db": "ab ab a ab ab",
    "می\u200cخواهم क्\u200dष ไทย\u200bดี": "می\u200cخواهم क्\u200dष ไทย\u200bดี",
    "น้ำ ㅋㅋ": "น้ำ ㅋㅋ",
    "a\u00a0b\u202fc\u2009d\u3000e": "a b c d e",
    "co\u2011op \u2212\u20105": "co-op --5",
    "cafe\u0301 Å\u212b \uf900": "café ÅÅ 豈",
    "don’t donʼt ‘tis d´eau": "don't don't 'tis d'eau",
    "10⁶ 10⁻⁶ x²y 10⁶7 m³": "10^6 10^-6 x^2y 10^6 7 m^3",
    "H₂O C₆H₁₂O₆ aₙ₊₁ SO₄²⁻": "H_2O C_6H_12O_6 a_n+1 SO_4^2-",
    "½ 3½ 3½4 ½cup ¹⁄₂ 2¹⁄₂ 1⁄2 ⅟5": "1/2 3 1/2 3 1/2 4 1/2 cup 1/2 2 1/2 1/2 1/5",
    "① 10① ⑳ ❶ ⓪ Ⓐ ㊀": "(1) 10(1) (20) (1) (0) (A) (一)",
    "⑴ 2⒈5 ㋀ 2㏠": "(1) 2 1.5 1月 2 1日",
    "Acme™ X℠ 1ª 2º": "Acme^TM X^SM 1^a 2^o",
    "5㎡ ㎏ ℃ Ⅷ µm 𝟏𝐚": "5m^2 kg °C VIII μm 1a",
    "¨ … ―": "¨ … ―",
}


@pytest.mark.parametrize(("text", "expected"), FOLDED.items())
def test_a_text_is_folded(text: str, expected: str) -> None:
    assert folded(text) == folded(expected) == expected


def test_every_character_folds_once_and_none_merges_with_a_digit_beside_it() -> None:
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        if not letter.isascii() and not 0xD800 <= number < 0xE000:
            text = folded(f"1{letter}1")
            assert folded(text) == text, hex(number)
            tag = unicodedata.decomposition(letter).partition(" ")[0]
            if tag in {"<super>", "<sub>", "<fraction>", "<circle>"}:
                assert text.startswith(("1^", "1_", "1 ", "1(", f"1{letter}")), hex(number)
                assert text.endswith((" 1", ")1", f"{letter}1", "/1")) or text[-2].isalpha() or not text[-2].isalnum()


WORDS = {
    ("10⁶", "10^6", "10^{6}", "10^(6)", "１０⁶"): "10 10xsup6",
    ("10⁻⁶", "10^-6", "10^−6", "10^{-6}"): "10 10xsupneg6",
    ("x²y", "x^2y"): "x xxsup2 y",
    ("H₂O", "H_2O", "H_{2}O"): "H_2O H2O",
    ("C₆H₁₂O₆", "C_6H_12O_6"): "C_6H_12O_6 C6H12O6",
    ("10₂", "10_2"): "10_2",
    ("面积m²为", "面积m^2为"): "面积 m mxsup2 为",
    ("file_2024 a_b __init__",): "file_2024 a_b __init__",
    ("^ x^ ^2 _ x_ _2",): "^ x^ ^2 _ x_ _2",
}


@pytest.mark.parametrize(("spellings", "expected"), WORDS.items())
def test_spellings_of_powers_and_indices_have_the_same_words(spellings: tuple[str, ...], expected: str) -> None:
    assert [words_of_text(each) for each in spellings] == [expected] * len(spellings)


def test_a_query_to_texts_as_they_are_written_has_further_words_alone() -> None:
    assert words_of_query("plain", "written") == "plain"
    assert words_of_query("It’s a café", "written") == "It’s a café"
    assert words_of_query("ﬁre 10⁶", "written") == "ﬁre 10⁶ fire 10 10xsup6"
    assert words_of_query("ﬁre 10⁶", "folded") == "fire 10 10xsup6"

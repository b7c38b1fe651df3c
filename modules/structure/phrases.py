"""The phrases of a text: names, designations and Chinese nouns, found without a model in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import dropwhile

from ..index.schema import STOP_WORDS
from ..language.folding import folded
from ..language.letters import CJK, cjk_share, is_cjk, language_of
from .titles import MOST_WORDS, words_of

_TOKEN = re.compile(rf"[^\W_{CJK}]+")
_QUOTED = re.compile(r"《([^《》]{2,60})》")
_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]{2,1000}")
"""A run for jieba, whose time is quadratic in its length."""
_JOINED = frozenset({" ", "-", "'", "’", "–", " & ", "&", ".", "/"})
"""What may stand between two words of one name."""
_AFTER_INITIAL = ". "
_CONNECTOR_WORDS = "of the de del della di da la le du van von der den el al bin ibn"
_CONNECTORS = frozenset(_CONNECTOR_WORDS.split())
_MOST_CONNECTORS = 2
_SUFFIX_WORDS = """
aged and area backed based born bound built class era filmed free funded held heavy in issue led less level like listed
long made minded model named of off old on only or out over owned period plus ready region ruled run shaped side sized
style themed time to trade type under up versus wide winner won year
"""
_SUFFIXES = frozenset(_SUFFIX_WORDS.split())
"""Words of small letters that follow a name by a hyphen, and are no part of it, as in "New York-based"."""
_LONGEST_SYLLABLE = 6
_SENTENCE_END = re.compile(r"[.!?:;\r\n\"“”(]|^$")
_STOP_WORDS = frozenset(STOP_WORDS)
_DATE_WORDS = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
"""
_DATES = frozenset(_DATE_WORDS.split())
_TITLES = frozenset(("mr", "mrs", "ms", "dr", "st", "jr", "sr"))
_LEAST_LETTERS = 2


def phrase_of(text: str) -> str:
    """Return the form of a phrase in which two that differ in case or punctuation alone are one; "" without a word.

    >>> phrase_of("J. R. R. Tolkien"), phrase_of("KV-315"), phrase_of("《结构 钢板》")
    ('j r r tolkien', 'kv 315', '结构钢板')
    """
    return joined([word.casefold() for word in words_of(text)])


def joined(words: Sequence[str]) -> str:
    """Join words by spaces, but Chinese, Japanese and Korean letters without."""
    text = ""
    for word in words:
        text += word if not text or (is_cjk(word[0]) and is_cjk(text[-1])) else f" {word}"
    return text


def phrases_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the phrases of a text, as ``phrase_of`` writes them, each with whether it is surely a name.

    Unsure is a single word at the start of a sentence. A phrase is a run of capitalised words ("Bank of England"), a
    word of letters and digits ("KV-315"), what stands in 《》, or a Chinese noun by the dictionary of jieba. Stop
    words, months, weekdays and numbers alone are none. A Chinese text loads it, once.

    >>> [phrase for phrase, _ in phrases_in("In May the Bank of England left J. Smith's YL534.")]
    ['bank of england', 'j smith', 'yl534']
    """
    text = folded(text)
    yield from _names(text)
    for quoted in _QUOTED.finditer(text):
        yield phrase_of(quoted[1]), True
    if language_of(cjk_share(text)) != "cjk":
        return  # a name in passing is not worth the loading of a dictionary
    for run in _CHINESE.finditer(text):
        yield from ((word, True) for word in _nouns(run[0]))


def _names(text: str) -> Iterator[tuple[str, bool]]:
    tokens = list(_TOKEN.finditer(text))
    at = 0
    while at < len(tokens):
        if not _may_be_name(tokens[at][0]):
            at += 1
            continue
        end = _end_of_name(text, tokens, at)
        words = list(dropwhile(_STOP_WORDS.__contains__, (token[0].casefold() for token in tokens[at:end])))
        if _says_enough(words):
            first = len(words) == end - at and _starts_sentence(text, tokens, at)
            yield joined(words[:MOST_WORDS]), len(words) > 1 or not first or not words[0].isalpha()
        at = end


def _end_of_name(text: str, tokens: Sequence[re.Match[str]], at: int) -> int:
    """Return the place after the last word of the name that begins at a token."""
    end = ahead = at + 1
    while ahead < len(tokens) and _joins(text, tokens[ahead - 1], tokens[ahead]):
        word = tokens[ahead][0]
        if _may_be_name(word) or (word.isdigit() and ahead == end) or _ends_given_name(text, tokens, at, ahead, end):
            end = ahead + 1
        elif not _connects(text, tokens, ahead) or ahead - end >= _MOST_CONNECTORS:
            break
        ahead += 1
    return end


def _ends_given_name(text: str, tokens: Sequence[re.Match[str]], at: int, ahead: int, end: int) -> bool:
    """Whether a word of small letters is the second syllable of a given name, as in "Ng Man-tat" and "Kim Jong-il"."""
    word = tokens[ahead][0]
    return (
        ahead == end >= at + 2
        and text[tokens[ahead - 1].end() : tokens[ahead].start()] == "-"
        and len(word) <= _LONGEST_SYLLABLE
        and word.isalpha()
        and word not in _SUFFIXES
    )


def _connects(text: str, tokens: Sequence[re.Match[str]], ahead: int) -> bool:
    """Whether a word of small letters may stand within a name, as in "Bank of England" and "Aix-en-Provence"."""
    if tokens[ahead][0] in _CONNECTORS:
        return True
    around = tokens[ahead].start() - 1, tokens[ahead].end()
    return text[around[0]] == "-" == text[around[1] : around[1] + 1]


def _joins(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    gap = text[left.end() : right.start()]
    return gap in _JOINED or (gap == _AFTER_INITIAL and (len(left[0]) == 1 or left[0].casefold() in _TITLES))


def _may_be_name(word: str) -> bool:
    return word[0].isupper() or (any(map(str.isdigit, word)) and any(map(str.isalpha, word)) and not _is_ordinal(word))


def _is_ordinal(word: str) -> bool:
    return word[0].isdigit() and word.lstrip("0123456789").casefold() in {"st", "nd", "rd", "th", "s"}


def _says_enough(words: Sequence[str]) -> bool:
    if all(word in _STOP_WORDS or word in _DATES or word.isdigit() for word in words):
        return False
    return sum(map(len, words)) >= _LEAST_LETTERS


def _starts_sentence(text: str, tokens: Sequence[re.Match[str]], at: int) -> bool:
    return at == 0 or _SENTENCE_END.search(text[tokens[at - 1].end() : tokens[at].start()]) is not None


def _nouns(run: str) -> Iterator[str]:
    import jieba  # noqa: PLC0415 - loads a dictionary at the first cut

    tags = _noun_tags()
    for word in jieba.cut(run):
        # A word that the dictionary has not was made of letters by jieba's model: most are names.
        if len(word) >= _LEAST_LETTERS and word not in _STOP_WORDS and tags.get(word, "n")[0] in "nlij":
            yield word


@cache
def _noun_tags() -> dict[str, str]:
    """Return the part of speech of each word of jieba's dictionary; its own tagger is ten times as slow."""
    from jieba import posseg  # noqa: PLC0415 - reads a dictionary of 350,000 words

    tags: dict[str, str] = posseg.dt.word_tag_tab
    return tags

"""Answer metrics: cases worked out by hand, and laws over generated answers."""

from __future__ import annotations

from dataclasses import astuple, replace
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.answers import (
    RIGHT,
    WRONG,
    AnswerScores,
    answer_tokens,
    cover_exact_match,
    exact_match,
    normalize_answer,
    score_answer,
    token_overlap,
)


def question(*answers: str, lang: str = "en") -> EvalQuestion:
    return EvalQuestion(id="q", question="?", answers=answers, lang=lang)


# --- normalisation ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Drum", "drum"),
        ("  an\tapple \n a day", "apple day"),
        ("U.S.A.", "usa"),
        ("a.m.", "am"),
        ("rock-and-roll", "rockandroll"),
        ("A's", "as"),
        ("Theatre and anthem", "theatre and anthem"),
        ("3.5%", "35"),
        ("“Curly”", "“curly”"),
        ("The", ""),
        ("", ""),
    ],
)
def test_english_is_normalised_as_the_official_script_does(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京。", ["北", "京"]),
        ("《红楼梦》（第一回）", ["红", "楼", "梦", "第", "一", "回"]),
        ("GB/T 5749 标准", ["gbt", "5749", "标", "准"]),
        ("光荣和ω-force", ["光", "荣", "和", "ωforce"]),
        ("3.5 毫米.", ["3.5", "毫", "米"]),
        ("３．５％", ["3.5%"]),
        ("3.5 %", ["3.5%"]),
        ("3.5﹪", ["3.5%"]),
        ("3.5‰", ["3.5‰"]),
        ("10^6 帕", ["10^6", "帕"]),
        ("《紅樓夢》", ["红", "楼", "梦"]),
        ("臺灣的頭髮，後來", ["台", "湾", "的", "头", "发", "后", "来"]),
        ("20℃ 以下，Bach~Suite", ["20℃", "以", "下", "bachsuite"]),
        ("𠀀a", ["𠀀", "a"]),
        ("，。", []),
    ],
)
def test_chinese_is_one_token_a_character_and_one_a_word(text: str, expected: list[str]) -> None:
    assert answer_tokens(text, lang="zh") == expected
    assert answer_tokens(text, lang="zh-Hans") == expected


# --- exact match and overlap ---


@pytest.mark.parametrize(
    ("prediction", "gold", "precision", "recall", "f1"),
    [
        ("Cao Xueqin", "cao xueqin.", 1, 1, 1),
        ("the drum of Bern", "Bern drum", 2 / 3, 1, 0.8),
        ("red red blue", "red green", 1 / 3, 1 / 2, 0.4),
        ("drum", "lute", 0, 0, 0),
        ("", "lute", 0, 0, 0),
        ("the", "a", 0, 0, 0),
        ("yes", "Yes!", 1, 1, 1),
        ("yes it is", "yes", 0, 0, 0),
        ("no", "no man's land", 0, 0, 0),
        ("noanswer", "noanswer given", 0, 0, 0),
        ("there is no drum", "no lute", 1 / 4, 1 / 2, 1 / 3),
    ],
)
def test_english_overlap_counts_words(prediction: str, gold: str, precision: float, recall: float, f1: float) -> None:
    overlap = token_overlap(prediction, gold)
    assert (overlap.precision, overlap.recall, overlap.f1) == pytest.approx((precision, recall, f1))


@pytest.mark.parametrize(
    ("prediction", "gold", "precision", "recall", "f1"),
    [
        ("曹雪芹。", "曹雪芹", 1, 1, 1),
        ("作者是曹雪芹", "曹雪芹", 3 / 6, 1, 2 / 3),
        # 4 characters are shared, but only 2 in a row
        ("南京北方", "北京南方", 1 / 4, 1 / 4, 1 / 4),
        ("上海北京天津", "天津北京", 2 / 6, 2 / 4, 0.4),
        ("no", "no man", 1, 1 / 2, 2 / 3),
        ("大学", "", 0, 0, 0),
    ],
)
def test_chinese_overlap_is_a_common_run(
    prediction: str, gold: str, precision: float, recall: float, f1: float
) -> None:
    overlap = token_overlap(prediction, gold, lang="zh")
    assert (overlap.precision, overlap.recall, overlap.f1) == pytest.approx((precision, recall, f1))


def test_the_longest_run_is_found_in_a_long_answer_of_common_characters() -> None:
    prediction, gold = "的" * 300 + "一二三四" + "的" * 300, "的一二三四的"
    assert token_overlap(prediction, gold, lang="zh").recall == 1.0


@pytest.mark.parametrize(
    ("prediction", "gold", "lang", "expected"),
    [
        ("It was the Drum of Bern.", "drum of Bern", "en", 1),
        ("Bartok", "art", "en", 0),
        ("drum and Bern", "drum Bern", "en", 0),
        ("drum", "drum of Bern", "en", 0),
        ("yes, it is", "yes", "en", 1),
        ("Yes, there is no doubt about it", "no", "en", 0),
        ("No, as both said yes", "yes", "en", 0),
        ("anything", "The", "en", 0),
        ("", "The", "en", 1),
        ("作者是曹雪芹。", "曹雪芹", "zh", 1),
        ("曹先生雪芹", "曹雪芹", "zh", 0),
        ("标准 GB15749", "5749", "zh", 0),
    ],
)
def test_cover_needs_gold_as_whole_tokens(prediction: str, gold: str, lang: str, expected: float) -> None:
    assert cover_exact_match(prediction, gold, lang=lang) == expected


# --- laws ---

langs = st.sampled_from(["en", "zh"])
answers = st.one_of(
    st.text(max_size=20),
    st.lists(
        st.sampled_from(["yes", "no", "noanswer", "the", "drum", "Bern,", "北", "京", "3.5", "-"]), max_size=6
    ).map(" ".join),
)


@given(answers, answers, langs)
def test_exchanged_answers_exchange_precision_and_recall(one: str, other: str, lang: str) -> None:
    there, back = token_overlap(one, other, lang=lang), token_overlap(other, one, lang=lang)
    assert (there.f1, there.precision, there.recall) == (back.f1, back.recall, back.precision)


@given(answers, st.lists(answers, min_size=1, max_size=3), langs)
@example("the", ["a"], "en")
@example("yes", ["yes"], "en")
def test_scores_keep_their_bounds_and_their_order(prediction: str, golds: list[str], lang: str) -> None:
    scores = score_answer(question(*golds, lang=lang), prediction, refused=False)
    assert all(0 <= score <= 1 for score in astuple(scores))
    assert scores.em <= scores.cover_em
    assert min(scores.precision, scores.recall) <= scores.f1 + 1e-12
    assert scores.f1 <= max(scores.precision, scores.recall) + 1e-12
    # what nothing is left of has no tokens to share, in the official script too
    if scores.em and answer_tokens(prediction, lang=lang):
        assert scores.f1 == 1


@given(answers, answers, langs)
def test_an_answer_that_matches_has_the_same_tokens(one: str, other: str, lang: str) -> None:
    same = answer_tokens(one, lang=lang) == answer_tokens(other, lang=lang)
    assert exact_match(one, other, lang=lang) == same
    assert exact_match(one, one, lang=lang) == 1


@given(answers, st.lists(answers, min_size=1, max_size=4), st.randoms(use_true_random=False), langs)
def test_the_order_of_gold_is_irrelevant(prediction: str, golds: list[str], random: Random, lang: str) -> None:
    shuffled = list(golds)
    random.shuffle(shuffled)
    scores, again = (score_answer(question(*g, lang=lang), prediction, refused=False) for g in (golds, shuffled))
    assert scores == again


@given(answers, st.lists(answers, min_size=1, max_size=3), answers, langs)
def test_another_gold_answer_lowers_no_score(prediction: str, golds: list[str], alias: str, lang: str) -> None:
    fewer = score_answer(question(*golds, lang=lang), prediction, refused=False)
    more = score_answer(question(*golds, alias, lang=lang), prediction, refused=False)
    assert (more.em >= fewer.em, more.f1 >= fewer.f1, more.cover_em >= fewer.cover_em) == (True, True, True)


# --- whole questions ---


def test_the_best_alias_counts_for_each_score() -> None:
    scores = score_answer(
        question("Bern in Switzerland", "the city of Bern"), "city of Bern, Switzerland", refused=False
    )
    # against the first: 2 of 4 and 2 of 3 tokens; against the second: 3 of 4 and 3 of 3
    best = AnswerScores(em=0.0, f1=6 / 7, precision=0.75, recall=1.0, cover_em=1.0)
    assert astuple(scores) == pytest.approx(astuple(best))


def test_the_language_of_the_question_picks_the_variant() -> None:
    golds = "北京市"
    assert score_answer(question(golds), "北京", refused=False).f1 == 0
    assert score_answer(question(golds, lang="zh"), "北京", refused=False).f1 == pytest.approx(0.8)


def test_letters_are_equal_however_they_are_composed_in_questions_of_ones_own() -> None:
    own = replace(question("Québec １９７２"), folds_letters=True)
    assert score_answer(own, "Que\u0301bec 1972", refused=False) == RIGHT
    assert score_answer(question("Québec"), "Que\u0301bec", refused=False) == WRONG, "as the official script has it"


def test_an_unanswerable_question_is_right_when_refused_and_only_then() -> None:
    assert score_answer(question(), "I cannot answer this question.", refused=True) == RIGHT
    assert score_answer(question(), "Bern", refused=False) == WRONG
    assert score_answer(question(), "", refused=False) == WRONG


def test_a_refusal_that_is_a_gold_answer_is_right() -> None:
    assert score_answer(question("Not enough info", "Bern"), "NOT ENOUGH INFO", refused=True) == RIGHT


def test_another_refusal_of_an_answerable_question_is_wrong_whatever_it_says() -> None:
    assert score_answer(question("question"), "I cannot answer this question.", refused=True) == WRONG
    assert score_answer(question("The"), "", refused=True) == WRONG


def test_a_question_whose_answers_are_not_known_is_not_scored() -> None:
    unknown = replace(question(), answers_known=False)
    with pytest.raises(ValueError, match="'q' has no gold answers"):
        score_answer(unknown, "Bern", refused=False)

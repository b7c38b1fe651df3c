from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.metrics.conversation import query_forms, rewrite_scores

WORDS = st.lists(st.sampled_from(["weir", "lock", "the", "9"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("lang", "rewrite", "human", "recall", "exact"),
    [
        ("en", "Who built the lock?", "who BUILT the lock", 1.0, 1.0),
        ("en", "Who built it?", "Who built the lock?", 2 / 4, 0.0),
        ("en", "the lock", "the lock of the town", 2 / 5, 0.0),
        ("en", "the the the", "the lock of the town", 2 / 5, 0.0),
        ("en", "Lock the built who?", "Who built the lock?", 1.0, 0.0),
        ("en", "gates of the lock", "the lock's gates", 3 / 4, 0.0),
        ("en", "", "Who?", 0.0, 0.0),
        ("de", "Straße", "STRASSE", 1.0, 1.0),
        ("zh", "船闸多高？", "这座船闸多高", 4 / 6, 0.0),
        ("zh-CN", "YL501 船闸。", "yl501船闸", 1.0, 1.0),
    ],
)
def test_recall_counts_the_words_of_the_human(lang: str, rewrite: str, human: str, recall: float, exact: float) -> None:
    scores = rewrite_scores(rewrite, human, lang=lang)
    assert (scores.rouge1_recall, scores.exact) == (pytest.approx(recall), exact)


@given(WORDS, WORDS)
def test_laws_of_recall(ours: list[str], theirs: list[str]) -> None:
    scores = rewrite_scores(" ".join(ours), " ".join(theirs), lang="en")
    longer = rewrite_scores(" ".join([*ours, theirs[0]]), " ".join(theirs), lang="en")
    assert 0 <= scores.rouge1_recall <= longer.rouge1_recall <= 1
    assert (scores.rouge1_recall == 1) == (Counter(theirs) <= Counter(ours))
    assert scores.exact == float(ours == theirs)


@pytest.mark.parametrize("human", ["", " ?!"])
def test_a_turn_that_nobody_rewrote_has_no_score(human: str) -> None:
    with pytest.raises(ValueError, match="contains no word to compare with"):
        rewrite_scores("Who?", human, lang="en")


def test_a_turn_is_asked_in_four_forms() -> None:
    history = (("What is a lock?", "A gate."), ("Who builds them?", ""))
    turn = DialogueTurn(dialogue_id="d", number=3, history=history, rewrite="When were locks built?")
    question = EvalQuestion(id="q", question="When?", answers=(), turn=turn)
    assert query_forms(question, "When are locks?") == {
        "raw": "When?",
        "joined": "What is a lock? Who builds them? When?",
        "rewrite": "When are locks?",
        "human": "When were locks built?",
    }


@pytest.mark.parametrize("turn", [None, DialogueTurn(dialogue_id="d", number=1)])
def test_without_a_history_and_a_human_the_forms_are_fewer(turn: DialogueTurn | None) -> None:
    question = EvalQuestion(id="q", question="When?", answers=(), turn=turn)
    assert query_forms(question, "When?") == {"raw": "When?", "joined": "When?", "rewrite": "When?"}

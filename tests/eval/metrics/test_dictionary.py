"""Every column of a run has its meaning in one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.metrics.dictionary import COLUMNS, PAID, all_columns, column_of
from judgetree.evaluation.metrics.outcomes import check_primary, measure_of
from judgetree.evaluation.reports.frames import (
    ANSWER_METRICS,
    CONTEXT_METRICS,
    COST_METRICS,
    SAVED_BY_SHARING,
    is_share,
    ks_of,
    question_frame,
    retrieval_metrics,
)
from judgetree.evaluation.reports.system_table import metric_name
from judgetree.evaluation.rows.turn_facts import TurnFacts
from judgetree.modules.errors import SettingsError
from tests.eval.run_rows import run_row, tree_figures

TURN = DialogueTurn(dialogue_id="d", number=2, history=(("a", "b"),), rewrite="Who?", relevant_turns=(1,))
QUESTION = EvalQuestion(id="q", question="?", answers=("Ada",), supporting=("k",), turn=TURN)
FACTS = TurnFacts(dialogue_id="d", number=2, conversation="c", path_length=2, answered_from="search")


def test_every_column_of_a_run_is_defined() -> None:
    row = run_row(tree=tree_figures(), paid=(), conversation=FACTS)
    frame = question_frame([row, replace(row, conversation=None)], [QUESTION], ks=ks_of(20))
    known = (*ANSWER_METRICS, *retrieval_metrics((3,)), *CONTEXT_METRICS, *COST_METRICS, *SAVED_BY_SHARING, "failure")
    further = ("ragas_faithfulness", "ragas_x_missing", "ragas_x_by", "score_mine", "score_mine_missing", "score_x_by")
    assert [name for name in (*map(str, frame.columns), *known, *further) if column_of(name) is None] == []


@pytest.mark.parametrize("name", ["em@3", "recall@", "paid_em_", "caveat_", "unknown", ""])
def test_another_name_is_none(name: str) -> None:
    assert column_of(name) is None


@pytest.mark.parametrize("name", COLUMNS)
def test_a_definition_is_a_sentence_and_a_score_has_a_direction(name: str) -> None:
    column = COLUMNS[name]
    assert column.meaning.endswith("."), column.meaning
    assert column.better or column.unit not in ("score", "USD", "tokens", "seconds")


def test_shares_and_headings_come_from_the_dictionary() -> None:
    assert is_share("recall@5")
    assert is_share("number_match")
    assert not is_share("seconds")
    headings = {name: metric_name(name) for name in ("em", "all@3", "llm_calls", f"{PAID}llm_calls", "recall@3")}
    assert list(headings.values()) == ["EM", "all supporting @3", "calls", "calls paid", "recall@3"]


def test_what_was_paid_is_called_so_and_listed() -> None:
    assert measure_of("paid_llm_calls").title == "calls paid"
    assert {"paid_llm_calls", "paid_cost_usd", "paid_seconds"} <= all_columns().keys()
    meanings = [column.meaning for name, column in all_columns().items() if name.startswith(PAID)]
    assert [meaning for meaning in meanings if "cached" not in meaning] == []
    assert not {column.meaning for column in COLUMNS.values()} & set(meanings)
    row = run_row(tree=tree_figures(), paid=())
    columns = map(str, question_frame([row], [QUESTION]).columns)
    assert {name for name in columns if name.startswith(PAID)} <= all_columns().keys()


def test_a_column_that_is_neither_better_high_nor_low_is_no_primary_outcome() -> None:
    check_primary("paid_llm_calls")
    with pytest.raises(SettingsError, match="neither better high nor low"):
        check_primary("cached_llm_calls")

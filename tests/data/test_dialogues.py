"""The dialogues over the demo corpus keep the rules that data/README.md states."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from judgetree.evaluation.datasets.standards_dialogues import (
    Dialogue,
    WrittenTurn,
    load_dialogues,
    path_of,
    standalone_question,
)
from judgetree.evaluation.datasets.standards_qa import Question, known_questions, load_standards_qa
from judgetree.modules.index.factory import open_index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings
from tests.data import test_standards as standards
from tests.data.test_standards import CHAINED, DATA, STANDARDS, content_words, names, one_spaced

FILE = DATA / "standards_dialogues.jsonl"
DIALOGUES = load_dialogues(FILE)
TURN_KEYS = set(WrittenTurn.__annotations__)
FAMILY = {"kv"}  # stands in every English designation and tells nothing apart
RULES_OF_THE_QUESTIONS: tuple[Callable[[Question], None], ...] = (
    standards.test_quotes_stand_in_their_sources_and_hold_the_hop_answers,
    standards.test_no_single_document_holds_all_that_is_needed,
    standards.test_a_hop_question_shares_only_known_designations_with_its_quote,
    standards.test_the_supporting_list_has_the_shape_of_its_type,
    standards.test_a_three_hop_chain_asks_on_without_the_second_bridge,
    standards.test_questions_do_not_give_their_answers_away,
    standards.test_only_unanswerable_questions_have_no_answer,
)
every_dialogue = pytest.mark.parametrize("dialogue", DIALOGUES, ids=[dialogue.id for dialogue in DIALOGUES])


def all_turns() -> Iterator[tuple[Dialogue, WrittenTurn]]:
    return ((dialogue, turn) for dialogue in DIALOGUES for turn in dialogue.turns)


def follow_ups() -> list[WrittenTurn]:
    return [turn for _, turn in all_turns() if turn.is_follow_up]


def earlier(dialogue: Dialogue, turn: WrittenTurn) -> list[WrittenTurn]:
    return list(path_of(dialogue, turn.turn)[:-1])


def relevant(dialogue: Dialogue, turn: WrittenTurn) -> list[WrittenTurn]:
    return [dialogue.turns[number - 1] for number in turn.relevant_turns]


def quotes(turns: Iterable[WrittenTurn]) -> set[str]:
    return {fact.quote for turn in turns for fact in turn.supporting}


def sources(turns: Iterable[WrittenTurn]) -> set[str]:
    return {fact.source for turn in turns for fact in turn.supporting}


def words(text: str, lang: str) -> set[str]:
    return names(text, lang) | content_words(text, lang)


def unsaid_names(turn: WrittenTurn, lang: str) -> set[str]:
    """Designations of the stand-alone question that the turn itself leaves out."""
    return names(turn.standalone, lang) - words(turn.question, lang)


def test_there_are_enough_dialogues_of_every_language_and_kind() -> None:
    languages = [dialogue.lang for dialogue in DIALOGUES]
    kinds = [dialogue.kind for dialogue in DIALOGUES]
    assert languages.count("en") >= 18
    assert languages.count("zh") >= 8
    assert len(DIALOGUES) == languages.count("en") + languages.count("zh") >= 28
    assert kinds.count("plain") > len(DIALOGUES) / 2
    assert min(kinds.count("switch"), kinds.count("branches")) >= 3
    assert all(3 <= len(dialogue.turns) <= 6 for dialogue in DIALOGUES)


def test_there_are_enough_follow_ups_of_every_sort() -> None:
    asked = follow_ups()
    assert sum(turn.from_history for turn in asked) >= 6
    assert sum(turn.type in CHAINED and not turn.from_history for turn in asked) >= 4
    assert sum(turn.type == "compare" for turn in asked) >= 3
    assert sum(turn.type == "unanswerable" for turn in asked) >= 3


def test_ids_are_unique_and_say_the_language() -> None:
    assert len({dialogue.id for dialogue in DIALOGUES}) == len(DIALOGUES)
    assert all(dialogue.id.startswith(f"{dialogue.lang}-dialogue-") for dialogue in DIALOGUES)


def test_every_row_has_exactly_the_documented_keys() -> None:
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert row.keys() == {"id", "lang", "kind", "turns"}
        assert all(turn.keys() == TURN_KEYS for turn in row["turns"]), row["id"]


@pytest.mark.parametrize("rule", RULES_OF_THE_QUESTIONS, ids=lambda rule: rule.__name__.removeprefix("test_"))
@every_dialogue
def test_stand_alone_questions_keep_the_rules_of_the_questions(
    dialogue: Dialogue, rule: Callable[[Question], None]
) -> None:
    for turn in dialogue.turns:
        rule(standalone_question(dialogue, turn.turn))


@every_dialogue
def test_the_kind_says_what_the_turns_do(dialogue: Dialogue) -> None:
    switches = any(turn.topic_switch for turn in dialogue.turns)
    branches = any(turn.parent not in (turn.turn - 1, None) for turn in dialogue.turns)
    assert (switches, branches) == (dialogue.kind == "switch", dialogue.kind == "branches")


@every_dialogue
def test_a_topic_switch_shares_no_source_with_the_turns_before(dialogue: Dialogue) -> None:
    for turn in dialogue.turns:
        if turn.topic_switch:
            assert sources([turn]).isdisjoint(sources(earlier(dialogue, turn)))


def test_some_dialogues_come_back_to_the_first_topic() -> None:
    returning = [
        dialogue.id
        for dialogue, turn in all_turns()
        if any(old.topic_switch and max(turn.relevant_turns, default=9) < old.turn for old in earlier(dialogue, turn))
    ]
    assert len(returning) >= 2


@every_dialogue
def test_a_turn_is_from_history_when_earlier_quotes_of_its_path_suffice(dialogue: Dialogue) -> None:
    for turn in dialogue.turns:
        needed = quotes([turn])
        assert turn.from_history == (bool(needed) and needed <= quotes(earlier(dialogue, turn))), turn.question
        if turn.from_history:
            assert needed <= quotes(relevant(dialogue, turn))


@every_dialogue
def test_follow_ups_leave_out_names_that_their_relevant_turns_say(dialogue: Dialogue) -> None:
    for turn in dialogue.turns:
        if turn.is_follow_up:
            said = " ".join(f"{other.question} {other.answer}" for other in relevant(dialogue, turn))
            assert turn.question != turn.standalone
            assert unsaid_names(turn, dialogue.lang), turn.question
            assert unsaid_names(turn, dialogue.lang) <= words(said, dialogue.lang), turn.question


@every_dialogue
def test_each_relevant_turn_has_to_do_with_the_follow_up(dialogue: Dialogue) -> None:
    for turn in dialogue.turns:
        assert list(turn.relevant_turns) == sorted(set(turn.relevant_turns))
        for other in relevant(dialogue, turn):
            shared = words(f"{other.standalone} {other.answer}", dialogue.lang) & names(turn.standalone, dialogue.lang)
            assert shared - FAMILY, (turn.question, other.question)


def test_no_question_has_two_answers_in_any_file() -> None:
    asked = (standalone_question(dialogue, turn.turn) for dialogue, turn in all_turns())
    gold: dict[str, set[tuple[str, tuple[str, ...]]]] = defaultdict(set)
    for row in chain(asked, load_standards_qa(DATA / "standards_qa.jsonl")):
        for known in known_questions(row):
            gold[known.question].add((known.answer, tuple(fact.quote for fact in known.facts)))
    assert [question for question, golds in gold.items() if len(golds) > 1] == []


@pytest.mark.slow
def test_stand_alone_questions_find_more_than_follow_ups_as_asked(tmp_path: Path) -> None:
    singles = [turn for _, turn in all_turns() if turn.type == "single" and not turn.from_history]
    leaning = [turn for turn in singles if turn.is_follow_up]
    with open_index("standards", load_settings(home=tmp_path), data_path=STANDARDS) as index:
        index.get_index_done()
        retriever = Retriever(index.vector_store, topk=5, search_type="hybrid")

        def is_found(turn: WrittenTurn, query: str) -> bool:
            passages = [one_spaced(chunk.page_content) for chunk, _ in retriever.get_similar_chunk_with_score(query)]
            return any(turn.supporting[0].quote in passage for passage in passages)

        found_alone = sum(is_found(turn, turn.standalone) for turn in singles)
        found_as_asked = sum(is_found(turn, turn.question) for turn in leaning)
    assert found_alone / len(singles) >= 0.9
    assert found_as_asked / len(leaning) <= 0.5

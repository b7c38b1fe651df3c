import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.hotpotqa import load_2wiki, load_hotpotqa
from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.rows import content_document
from judgetree.evaluation.metrics.answers import score_answer
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import fault_of, hotpot_row, write_lines, write_list

LOADERS = [load_hotpotqa, load_2wiki]
TITLES = st.sampled_from(["Mill", "Weir", "Lock"])
PARAGRAPHS = st.tuples(TITLES, st.lists(st.sampled_from(["A.", " B.", " C."]), max_size=2))


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, object]]:
    contexts = draw(st.lists(st.lists(PARAGRAPHS, min_size=1, max_size=4), min_size=1, max_size=4))
    return [
        hotpot_row(number, context, [(draw(st.sampled_from(context))[0], draw(st.integers(0, 3)))])
        for number, context in enumerate(contexts)
    ]


def test_a_row_becomes_a_question_and_its_paragraphs_documents(tmp_path: Path) -> None:
    dataset = load_hotpotqa(write_list(tmp_path, hotpot_row(1)))
    mill, weir = dataset.documents
    assert (mill.text, mill.title, weir.text) == ("Mill. A mill. It grinds.", "Mill", "Weir. A weir.")
    [question] = dataset.questions
    assert (question.id, question.answers, question.type, question.hops) == ("q1", ("yes",), "bridge", 2)
    assert question.supporting == (weir.key, mill.key)
    assert (dataset.name, dataset.key_field, dataset.malformed) == ("hotpotqa", "document_key", ())


def test_the_sentences_of_supporting_facts_are_known_where_there_are_such(tmp_path: Path) -> None:
    context = [("Mill", ["A mill.", " It grinds."])]
    [question] = load_hotpotqa(write_list(tmp_path, hotpot_row(1, context, [("Mill", 1), ("Mill", 7)]))).questions
    assert question.facts == ((question.supporting[0], " It grinds."),)


def test_aliases_of_2wiki_are_right_answers(tmp_path: Path) -> None:
    file = write_list(tmp_path, {**hotpot_row(1, answer="United Kingdom"), "answer_id": "Q145"}, hotpot_row(2))
    write_lines(tmp_path, {"Q_id": "Q145", "aliases": ["UK", "Britain"], "demonyms": ["British"]}).rename(
        tmp_path / "id_aliases.json"
    )
    first, second = load_2wiki(file).questions
    assert first.answers == ("United Kingdom", "UK", "Britain", "British")
    assert second.answers == ("yes",)
    assert score_answer(first, "the UK", refused=False).em == 1.0


def test_2wiki_without_its_aliases_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_2wiki(write_list(tmp_path, {**hotpot_row(1), "answer_id": "Q145"}))
    assert "id_aliases.json" in caplog.text


def test_equal_paragraphs_are_one_document(tmp_path: Path) -> None:
    old, new = ("Mill", ["Of wood."]), ("Mill", ["Of stone."])
    dataset = load_hotpotqa(
        write_list(
            tmp_path,
            hotpot_row(1, [old], [("Mill", 0)]),
            hotpot_row(2, [new], [("Mill", 0)]),
            hotpot_row(3, [old], [("Mill", 0)]),
        )
    )
    assert [document.text for document in dataset.documents] == ["Mill. Of wood.", "Mill. Of stone."]
    first, second = (document.key for document in dataset.documents)
    assert [question.supporting for question in dataset.questions] == [(first,), (second,), (first,)]


def test_paragraphs_that_differ_by_white_space_alone_are_one_document(tmp_path: Path) -> None:
    """2WikiMultihopQA has some twice, as in `Hunterwali"( 1935)`: finding the other one counted as a miss."""
    one, two = ("Mill", ['Of wood (1935), "old".']), ("Mill", ['Of wood( 1935)," old".'])
    file = write_list(
        tmp_path,
        hotpot_row(1, [one], [("Mill", 0)]),
        hotpot_row(2, [two, ("Weir", ["A weir."])], [("Mill", 0)]),
        hotpot_row(3, [one, two], [("Mill", 0)]),
    )
    dataset = load_2wiki(file)
    mill, weir = (document.key for document in dataset.documents)
    assert [question.supporting for question in dataset.questions] == [(mill,)] * 3
    assert [question.distractors for question in dataset.questions] == [(), (weir,), ()]
    assert dataset.questions[1].facts[0][0] == mill


@pytest.mark.parametrize(("sentence", "body"), [(0, "Short."), (1, "Long. Longer."), (9, "Short.")])
def test_of_equal_titles_the_paragraph_with_the_sentence_is_meant(tmp_path: Path, sentence: int, body: str) -> None:
    context = [("Mill", ["Short."]), ("Mill", ["Long.", " Longer."])]
    dataset = load_hotpotqa(write_list(tmp_path, hotpot_row(1, context, [("Mill", sentence)])))
    assert dataset.questions[0].supporting == (content_document("Mill", body).key,)


def test_sentences_of_2wiki_are_set_apart(tmp_path: Path) -> None:
    row = hotpot_row(1, [("Mill", ["A mill.", "It grinds."])], [("Mill", 0)], evidences=[["Mill", "use", "grinding"]])
    dataset = load_2wiki(write_lines(tmp_path, row))
    assert dataset.documents[0].text == "Mill. A mill. It grinds."
    assert dataset.name == "2wiki"


def as_strings(row: dict[str, object]) -> dict[str, object]:
    return {**row, **{name: json.dumps(row[name]) for name in ("context", "supporting_facts")}}


def as_columns(row: dict[str, object]) -> dict[str, object]:
    columns: dict[str, object] = {**row, "id": row["_id"]}
    del columns["_id"]
    for name, other in (("context", "sentences"), ("supporting_facts", "sent_id")):
        pairs = row[name]
        assert isinstance(pairs, list)
        columns[name] = {"title": [pair[0] for pair in pairs], other: [pair[1] for pair in pairs]}
    return columns


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("written", [as_strings, as_columns])
def test_other_ways_of_writing_a_row_mean_the_same(
    tmp_path: Path, load: Callable[[Path], Dataset], written: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    plain = load(write_list(tmp_path, hotpot_row(1), hotpot_row(2)))
    assert load(write_lines(tmp_path, written(hotpot_row(1)), written(hotpot_row(2)))) == plain


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"supporting_facts": [["Lock", 0]]}, "no paragraph of the context has the title 'Lock'"),
        ({"supporting_facts": []}, "supporting_facts: "),
        ({"supporting_facts": "[["}, "supporting_facts: it is not JSON"),
        ({"context": {"title": ["Mill"], "sentences": []}}, "context: zip"),
        ({"answer": " "}, "answer: String should have at least 1 character"),
        ({"question": None}, "question: Input should be a valid string"),
        ({"context": [["Mill", [None] * 5]]}, "and 2 more"),
        ({"_id": "q1"}, "'q1' was already in row 1"),
    ],
)
def test_a_malformed_row_is_reported_and_brings_nothing(tmp_path: Path, changes: dict[str, object], fault: str) -> None:
    bad = {**hotpot_row(2, [("Quay", ["Stone."])], [("Quay", 0)]), **changes}
    dataset = load_hotpotqa(write_list(tmp_path, hotpot_row(1), bad, hotpot_row(3)))
    assert [question.id for question in dataset.questions] == ["q1", "q3"]
    assert fault in fault_of(dataset, 2)
    assert {document.title for document in dataset.documents} == {"Mill", "Weir"}


def test_a_split_without_answers_is_refused(tmp_path: Path) -> None:
    row = hotpot_row(1)
    del row["answer"]
    with pytest.raises(LoadingError, match="answer: Field required"):
        load_hotpotqa(write_list(tmp_path, row))


def test_what_databases_refuse_is_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([hotpot_row(1, [("Mill", ["a\x00b \ud800"])], [("Mill", 0)])]))
    assert load_hotpotqa(file).documents[0].text == "Mill. ab \N{REPLACEMENT CHARACTER}"


@given(rows=rows(), seed=st.integers(0, 99))
def test_laws_of_loading(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], seed: int) -> None:
    folder = tmp_path_factory.mktemp("hotpot")
    dataset = load_hotpotqa(write_list(folder, *rows))
    shuffled = [dict(random.Random(seed).sample(list(row.items()), k=len(row))) for row in rows]
    assert load_hotpotqa(write_list(folder, *rows)) == dataset
    assert load_hotpotqa(write_lines(folder, *shuffled)) == dataset
    keys = [document.key for document in dataset.documents]
    assert len(set(keys)) == len(keys)
    assert {key for question in dataset.questions for key in question.supporting} <= set(keys)
    assert len(dataset.questions) == len(rows)

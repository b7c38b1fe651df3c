"""A public set asked of a collection that was made by somebody else: its gold documents are known by their titles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.runs.experiment import load_experiment
from judgetree.evaluation.runs.jobs import dataset_of
from judgetree.modules.errors import SettingsError
from judgetree.modules.index.factory import open_index
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CHAIN
from tests.eval.dataset_files import hotpot_row, write_list

TEXTS = {"Weir": "A weir drives mill 1 with its river.", "Mill": "The mill 1 grinds.", "Drum": "A drum of mill 1."}


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with ScriptedServer([CHAIN]) as server:
        yield load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


def run(tmp_path: Path, settings: Settings, titles: Sequence[str], **keys: object) -> evaluation.Report:
    lines = [json.dumps({"text": TEXTS[title], "metadata": {"title": title}}) for title in titles]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "wiki.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with open_index("wiki", settings, data_path=tmp_path / "docs") as index:
        index.get_index_done()
    given = {"systems": ("naive",), "topk": 3, "search_type": "sparse", "out": tmp_path / "run", **keys}
    given = {"dataset": f"hotpotqa:{write_list(tmp_path, hotpot_row(1))}", **given} if "dataset" not in keys else given
    return evaluation.run(corpus="wiki", settings=settings, **given)


def test_gold_is_found_by_its_title(tmp_path: Path, settings: Settings) -> None:
    report = run(tmp_path, settings, ["Weir", "Mill", "Drum"])
    assert report.questions["recall@3"].tolist() == [1.0]
    assert "gold" not in " ".join(report.cautions)


def test_gold_that_the_collection_lacks_is_told_with_every_figure(tmp_path: Path, settings: Settings) -> None:
    report = run(tmp_path, settings, ["Weir", "Drum"])
    assert report.questions["recall@3"].tolist() == [0.5]
    (told,) = report.cautions
    assert told.startswith("1 of the 2 gold documents is not in the collection by its title, such as 'Mill': recall")


def test_a_run_grows_whatever_gold_its_new_questions_lack(tmp_path: Path, settings: Settings) -> None:
    facts = (("Weir", 0), ("Mill", 1)), (("Weir", 0), ("Lake", 0))
    context = (("Mill", ["A mill.", " It grinds."]), ("Weir", ["A weir."]), ("Lake", ["A lake."]))
    rows = (hotpot_row(number, context, supporting) for number, supporting in enumerate(facts, start=1))
    dataset = f"hotpotqa:{write_list(tmp_path, *rows)}"
    first = run(tmp_path, settings, ["Weir", "Mill"], dataset=dataset, limit=1)
    assert first.cautions[0].startswith("These are the first 1 of 2")
    keys = {"systems": ("naive",), "topk": 3, "search_type": "sparse", "corpus": "wiki", "settings": settings}
    grown = evaluation.run(dataset=dataset, out=tmp_path / "run", **keys)
    assert grown.cautions[0].startswith("1 of the 3 gold documents is not in the collection by its title, such as 'L")
    again = evaluation.run(dataset=dataset, out=tmp_path / "run", limit=1, **keys)
    assert again.cautions[0].startswith("1 of the 3 gold documents")


def test_without_any_gold_there_is_no_figure_of_recall(tmp_path: Path, settings: Settings) -> None:
    report = run(tmp_path, settings, ["Drum"])
    assert report.questions["recall@3"].isna().all()
    assert report.questions["failure"].tolist() == ["other"], "and no failure is the retriever's"
    (told,) = report.cautions
    assert told.startswith("None of the 2 gold documents is in the collection by its title, such as 'Mill': ")


def test_a_judge_that_needs_gold_is_refused_without_any(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"None of the 2 gold documents is in the collection .*'noisy:auc=\.9'"):
        run(tmp_path, settings, ["Drum"], systems=("judge",), judge="noisy:auc=.9")


def test_a_set_whose_corpus_has_ids_keeps_them(tmp_path: Path) -> None:
    """Whoever has indexed it: its documents often have no titles."""
    files = {
        "corpus.jsonl": '{"_id": "d1", "title": "", "text": "A mill."}',
        "queries.jsonl": '{"_id": "q1", "text": "What grinds?"}',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    found = dataset_of(load_experiment(dataset=f"beir:{tmp_path}", corpus="mine"))
    assert (found.questions[0].supporting, found.key_field) == (("d1",), "document_key")


def test_each_repeat_has_errors_of_its_own(tmp_path: Path, settings: Settings) -> None:
    """With the same errors in all, the noise floor of a simulated judge was 0."""
    keys = {"systems": ("judge",), "judge": "noisy:auc=.6", "repeats": 8, "max_rec_depth": 1}
    run(tmp_path, settings, ["Weir", "Mill", "Drum"], **keys)
    rows = evaluation.RunStore(tmp_path / "run").read_rows()
    verdicts = {tuple(chunk.verdict for chunk in row.chunks if chunk.depth == 0) for row in rows}
    assert len(verdicts) > 1

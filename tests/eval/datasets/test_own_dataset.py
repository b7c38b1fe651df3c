"""Data sets of one's own by import path, plug-in and object: what a loader may take and give, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset, EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.jobs import dataset_of
from judgetree.modules.errors import LoadingError, SettingsError
from judgetree.testing import ContractError, check_dataset
from tests.plug_ins import install_plug_in

MODULE = """
import json
import pandas as pd
from judgetree.evaluation import Dataset, EvalQuestion
from judgetree.evaluation.datasets.questions import CorpusDocument

OIL = EvalQuestion(id="oil", question="Which oil?", answers=("VG 68",), supporting=("ks-1",))


def load(split=None):
    name = f"oils-{split}" if split else "oils"
    return Dataset(name=name, questions=(OIL,), documents=(CorpusDocument(key="ks-1", text="KS-1 needs VG 68."),))


def from_file(path):
    return pd.DataFrame(json.loads(path.read_text()))


def twice():
    return [{"id": "a", "question": "Who?"}, {"id": "a", "question": "What?"}]


def doubled():
    return Dataset(name="oils", questions=(OIL, OIL))


def nothing():
    return 3


ready = load()
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_data_sets.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_data_sets", raising=False)


def test_a_function_or_an_object_is_a_data_set_with_digests() -> None:
    loaded = load_dataset("my_data_sets:load")
    assert (loaded.name, [question.id for question in loaded.questions]) == ("oils", ["oil"])
    assert loaded.digest
    assert loaded.corpus_digest
    assert load_dataset("my_data_sets:ready").digest == loaded.digest
    assert load_dataset("my_data_sets:load", split="test").name == "oils-test"
    with pytest.raises(SettingsError, match=r"this format has one file|columns is not allowed"):
        load_dataset("my_data_sets:load", columns={"question": "Frage"})


def test_a_loader_takes_a_path_and_may_give_a_frame(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([{"Question": "Who?", "Answer": "Ada"}]), encoding="utf-8")
    loaded = load_dataset(f"my_data_sets:from_file:{tmp_path}/q.json")
    assert [(question.id, question.answers) for question in loaded.questions] == [("q1", ("Ada",))]
    assert loaded.name == "from_file"
    with pytest.raises(SettingsError, match="takes no path"):
        load_dataset("my_data_sets:load:x.json")
    with pytest.raises(SettingsError, match=r"cannot be made: .*'path'"):
        load_dataset("my_data_sets:from_file")


def test_a_plug_in_may_take_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = "my_data_sets:from_file"
    install_plug_in(monkeypatch, tmp_path, group="judgetree.datasets", name="mine", value=loader)
    (tmp_path / "q.json").write_text('[{"question": "Who?"}]', encoding="utf-8")
    assert len(load_dataset(f"mine:{tmp_path}/q.json").questions) == 1
    with pytest.raises(SettingsError, match=r"Allowed names: .*, mine; or the import path"):
        load_dataset("yours:q.json")


def test_what_is_no_data_set_says_why() -> None:
    with pytest.raises(LoadingError, match="two questions of the id 'oil'"):
        load_dataset("my_data_sets:doubled")
    with pytest.raises(SettingsError, match=r"gives 3\. Give a Dataset, a DataFrame, or a list of mappings"):
        load_dataset("my_data_sets:nothing")
    with pytest.raises(SettingsError, match=r"'nowhere' is not a data set.*or the import path of your own"):
        load_dataset("nowhere")
    with pytest.raises(SettingsError, match="cannot be imported"):
        load_dataset("my_data_sets:missing")


def test_objects_are_data_sets_of_an_experiment() -> None:
    oil = EvalQuestion(id="oil", question="Which oil?", answers=("VG 68",))
    first = Experiment.model_validate({"dataset": Dataset(name="a", questions=(oil,))})
    second = Experiment.model_validate({"dataset": Dataset(name="a", questions=())})
    assert first.dataset != second.dataset, "told apart by their digests"
    assert dataset_of(first).questions == (oil,)
    frame = pd.DataFrame({"question": ["Who?"]})
    assert [each.question for each in dataset_of(Experiment.model_validate({"dataset": lambda: frame})).questions] == [
        "Who?"
    ]


def test_contract_of_data_sets() -> None:
    check_dataset("my_data_sets:load")
    oil = EvalQuestion(
        id="oil", question="Which oil?", answers=("VG 68",), supporting=("ks-1",), facts=(("ks-1", "68"),)
    )
    fine = (CorpusDocument(key="ks-1", text="It needs 68."),)
    check_dataset(Dataset(name="a", questions=(oil,), documents=fine))
    broken = {
        "are in the corpus": Dataset(name="a", questions=(oil,), documents=(CorpusDocument(key="x", text="68"),)),
        "stand in their documents": Dataset(
            name="a", questions=(oil,), documents=(CorpusDocument(key="ks-1", text="It needs 32."),)
        ),
        "an id and a text": Dataset(name="a", questions=(EvalQuestion(id="", question="Who?", answers=()),)),
        "no gold answer is empty": Dataset(name="a", questions=(EvalQuestion(id="a", question="?", answers=("",)),)),
        "a key and a text": Dataset(name="a", questions=(oil,), documents=(CorpusDocument(key="ks-1", text=" "),)),
    }
    for rule, dataset in broken.items():
        with pytest.raises(ContractError, match=rule):
            check_dataset(dataset)
    with pytest.raises(ContractError, match="the same at every loading"):
        numbers = iter(range(9))
        check_dataset(lambda: [{"question": f"Question {next(numbers)}?"}])


def test_one_text_is_no_tuple_of_answers() -> None:
    for wrong in ({"answers": "VG 68"}, {"answers": (), "supporting": "ks-1"}):
        with pytest.raises(SettingsError, match=r"is one text\. Give a tuple"):
            EvalQuestion(id="oil", question="Which oil?", **wrong)  # type: ignore[arg-type]

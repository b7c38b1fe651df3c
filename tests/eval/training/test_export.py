"""Trees as training data: what is taken, what is left out and why, and that TRL's formats hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import datasets
import pytest

from judgetree.evaluation.labels.labelling import Labelling
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.training.examples import TrainingFormat
from judgetree.evaluation.training.export import TrainingData, export
from judgetree.evaluation.training.kinds import What
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge.generated import parse_verdict
from judgetree.modules.judge.prompts import judge_messages, sub_question_messages
from judgetree.modules.reader.prompts import REFUSAL, reader_messages
from tests.eval.run_writer import RunWriter

QUESTION = "Which river drives the mill?"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))


class Mill(RunWriter):
    """A run over training questions; the first needs the mill's document and the weir's."""

    def __init__(self, folder: Path, name: str = "train.json") -> None:
        folder.mkdir()
        super().__init__(folder, "It is old.", name=name)

    def asks(self, chunk: ChunkNode, query: str, *found: ChunkNode, answer: str = "On the Vell") -> ChunkNode:
        """A chunk with a supplementary question that found these chunks."""
        shown = {"next_query": query, "sub_answer": answer, "next_rag_thread_id": f"sub of {chunk.chunk_id}: {query}"}
        child = QueryNode(
            thread_id=str(shown["next_rag_thread_id"]),
            depth=1,
            query=query,
            answer=answer,
            status="finished",
            answer_status="answered",
            chunks=found,
        )
        metadata: dict[str, JsonScalar] = {**chunk.metadata, **shown, "verdict": "judged", "score": 1}
        below = (child,) if child else ()
        return ChunkNode(chunk_id=chunk.chunk_id, text=chunk.text, metadata=metadata, sub_runs=below)

    def other(self, number: int, **metadata: JsonScalar) -> ChunkNode:
        known = {"document_key": f"other {number}", "source": "Other", "rank": number, **metadata}
        return ChunkNode(chunk_id=f"other {number}", text=f"Ladder {number} is grey.", metadata=known)

    def fill(self, text: str = "") -> None:
        """Of the first question one branch finds the weir, another nothing; the third question's evidence lacks it."""
        mill = self.chunk("Mill", reason="names the weir", shown_place=1)
        weir = self.chunk("Weir", verdict="judged", score=2, shown_place=1)
        finds = self.asks(mill, "Where is the weir?", weir)
        fails = self.asks(self.other(1, reason="grey"), "How grey is ladder 1?", self.other(2))
        useless = self.other(3, verdict="judged", score=0, reason="no river", p_needed=0.1)
        self.answer("judge", 0, "Vell", finds, fails, useless)
        self.answer("judge", 2, "Nothing", mill, self.other(1, verdict="judged", score=0, reason="no"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    writer = Mill(tmp_path / "run")
    writer.fill()
    return writer.folder


def test_a_tree_that_is_lost_is_told(run: Path) -> None:
    whole = export(run, "judge")
    file = run / "trees.jsonl"
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    half = export(run, "judge")
    assert "tree missing" not in whole.left_out
    assert half.left_out["tree missing"] == 1
    assert 0 < len(half.records) < len(whole.records)


def by(data: TrainingData, **wanted: object) -> list[Mapping[str, object]]:
    return [each for each in data.records if wanted.items() <= each.items()]


def reply(record: Mapping[str, object]) -> str:
    messages = record["messages"]
    assert isinstance(messages, list)
    assert messages[-1]["role"] == "assistant"
    return str(messages[-1]["content"])


def test_verdicts_are_those_of_the_supporting_facts(run: Path) -> None:
    data = export(run, "judge", "jsonl")
    told = {(each["query"], each["chunk"]): (each["score"], each["verdict"]) for each in data.records}
    assert {each["chunk"]: each["p_needed"] for each in data.records}["other 3"] == 0.1
    assert told == {
        (QUESTION, "chunk Mill"): (1, "1"),
        (QUESTION, "other 1"): (0, "1"),
        (QUESTION, "other 3"): (0, "0"),
        ("What of It is old.", "other 1"): (0, "0"),
    }
    assert dict(data.left_out) == {"gold unknown": 2, "no sub-question that led to gold": 1}
    verdicts = {str(each["chunk"]): json.loads(str(each["completion"])) for each in by(data, query=QUESTION)}
    assert verdicts["chunk Mill"] == {"reason": "names the weir", "score": 1, "next_query": "Where is the weir?"}
    assert verdicts["other 1"]["reason"] == "", "the reason of a wrong score is not taught"
    assert verdicts["other 3"]["reason"] == "no river"


def test_the_judge_is_sent_what_it_is_taught_and_reads_its_reply(run: Path) -> None:
    text = Mill(run.parent / "again").documents["Mill"].text
    [record] = by(export(run, "judge"), node="judge-0", chunk="chunk Mill")
    chat = record["messages"]
    assert isinstance(chat, list)
    assert [(each["role"], each["content"]) for each in chat[:-1]] == judge_messages(QUESTION, text)
    assert parse_verdict(reply(record), QUESTION).score == 1


def test_a_logprob_judge_is_taught_yes_and_no(run: Path) -> None:
    store = RunStore(run)
    manifest = store.read_manifest()
    store.write_manifest({**(manifest or {}), "judge": {"kind": "logprob"}})
    data = export(run, "judge", "jsonl")
    told = sorted((str(each["asked"]), int(str(each["score"])), str(each["completion"])) for each in data.records)
    assert told == [("alone", 1, "no")] * 2 + [("needed", 0, "no")] * 3 + [("needed", 1, "yes")] * 2


def test_labels_go_before_supporting_facts_and_reach_sub_runs(run: Path) -> None:
    work = Labelling(run, "ada")
    for passage in work.passages:
        if passage.chunk_id == "other 3" or passage.query == "Where is the weir?":
            work.save(passage.id, 2)
    data = export(run, "judge", "jsonl")
    [sub] = by(data, query="Where is the weir?")
    assert (sub["score"], sub["gold"]) == (2, "label")
    [changed] = by(data, chunk="other 3")
    assert (changed["score"], changed["gold"], changed["verdict"]) == (2, "label", "0")


def test_sub_questions_are_those_that_led_to_gold(run: Path) -> None:
    data = export(run, "sub_question")
    [record] = data.records
    assert reply(record) == "Where is the weir?"
    text = Mill(run.parent / "again").documents["Mill"].text
    chat = record["messages"]
    assert isinstance(chat, list)
    assert [(each["role"], each["content"]) for each in chat[:-1]] == sub_question_messages(QUESTION, text)
    assert dict(data.left_out) == {"did not lead to gold": 1}


def test_the_reader_is_taught_evidence_that_holds_everything(run: Path) -> None:
    data = export(run, "reader")
    [record] = data.records
    chat = record["messages"]
    assert isinstance(chat, list)
    assert [(each["role"], each["content"]) for each in chat[:-1]] == reader_messages(QUESTION, "evidence 0")
    assert (reply(record), record["gold"], record["thread"], record["node"]) == ("Vell", "answer", "judge-0", "judge-0")
    assert dict(data.left_out) == {"evidence incomplete": 1}


def test_a_refused_sub_answer_is_no_evidence(tmp_path: Path) -> None:
    writer = Mill(tmp_path / "run")
    weir = writer.chunk("Weir", verdict="judged", score=2, shown_place=1)
    mill = writer.asks(writer.chunk("Mill", shown_place=1), "Where is the weir?", weir, answer=REFUSAL)
    writer.answer("judge", 0, "Vell", mill)
    assert export(writer.folder, "reader").records == ()


def test_a_pair_prefers_what_led_to_gold(run: Path) -> None:
    [record] = export(run, "preference").records
    chosen, rejected, prompt = record["chosen"], record["rejected"], record["prompt"]
    assert chosen == [{"role": "assistant", "content": "Where is the weir?"}]
    assert rejected == [{"role": "assistant", "content": "How grey is ladder 1?"}]
    assert isinstance(prompt, list)
    assert "[3] Ladder 3 is grey." in prompt[-1]["content"]


def test_questions_of_one_passage_are_paired_over_repeats(run: Path) -> None:
    writer = Mill(run.parent / "more")
    writer.fill()
    other = writer.asks(writer.chunk("Mill"), "How old is the mill?", writer.other(4))
    writer.answer("judge", 0, "Vell", other, repeat=1)
    data = export(writer.folder, "preference", "jsonl")
    [same] = by(data, same_passage=True)
    assert (same["chosen"], same["rejected"]) == ("Where is the weir?", "How old is the mill?")
    assert len(data.records) == 2


def test_a_further_try_that_led_to_gold_is_what_is_taught(tmp_path: Path) -> None:
    writer = Mill(tmp_path / "run")
    first = writer.asks(writer.chunk("Mill"), "How old is the mill?", writer.other(4))
    second = writer.asks(writer.chunk("Mill"), "Where is the weir?", writer.chunk("Weir"))
    writer.answer("judge", 0, "Vell", replace(first, sub_runs=(*first.sub_runs, *second.sub_runs)))
    [verdict] = by(export(writer.folder, "judge", "jsonl"), score=1)
    assert json.loads(str(verdict["completion"]))["next_query"] == "Where is the weir?"
    [pair] = export(writer.folder, "preference", "jsonl").records
    assert (pair["chosen"], pair["rejected"], pair["same_passage"]) == (
        "Where is the weir?",
        "How old is the mill?",
        True,
    )


def test_what_is_not_for_training_is_exported_only_if_told(run: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("dev.json", "questions.json", "test_train.json")):
        writer = Mill(tmp_path / f"run {number}", name)
        writer.fill()
        with pytest.raises(SettingsError, match="--any-split"):
            export(writer.folder, "reader")
        assert {each["split"] for each in export(writer.folder, "reader", any_split=True).records} == {"unknown"}
    assert {each["split"] for each in export(run, "reader").records} == {"train"}


@pytest.mark.parametrize("arguments", [{"what": "verdicts"}, {"what": "judge", "format": "csv"}])
def test_unknown_kinds_are_refused(run: Path, arguments: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="Allowed: "):
        export(run, **arguments)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="It has: judge"):
        export(run, "judge", systems=["naive"])


# --- TRL's data set formats: https://huggingface.co/docs/trl/dataset_formats ---

CHAT = [{"content": str, "role": str}]
COLUMNS: Mapping[tuple[str, str], Mapping[str, object]] = {
    **{(what, "messages"): {"messages": CHAT} for what in ("judge", "sub_question", "reader")},
    **{(what, "jsonl"): {"prompt": str, "completion": str} for what in ("judge", "sub_question", "reader")},
    ("preference", "messages"): {"prompt": CHAT, "chosen": CHAT, "rejected": CHAT},
    ("preference", "jsonl"): {"prompt": str, "chosen": str, "rejected": str},
}
OTHERS: Sequence[str] = ("messages", "prompt", "completion", "chosen", "rejected", "text", "label", "images", "tools")
"""Columns by which TRL tells its formats apart."""


@pytest.mark.parametrize("what", get_args(What))
@pytest.mark.parametrize("form", get_args(TrainingFormat))
def test_files_load_in_the_formats_of_trl(run: Path, tmp_path: Path, what: What, form: TrainingFormat) -> None:
    out = tmp_path / "data.jsonl"
    data = export(run, what, form, out=out)
    loaded = datasets.load_dataset("json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == list(data.records)
    expected = COLUMNS[what, form]
    assert {name for name in loaded.column_names if name in OTHERS} == set(expected)
    for name, kind in expected.items():
        shape = loaded.features[name]
        if kind is CHAT:
            assert {part: shape.feature[part].dtype for part in shape.feature} == {
                "role": "string",
                "content": "string",
            }
        else:
            assert shape.dtype == "string"
    assert all(each["run"] == "run" and each["thread"] and each["node"] for each in loaded)
    assert datasets.Dataset.from_list(list(data.records)).column_names == loaded.column_names

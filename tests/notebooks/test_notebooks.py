"""The notebooks run from the first cell to the last, say what they should, and are kept without outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from traitlets import default

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = (
    "01_index_and_ask",
    "02_your_own_questions",
    "03_look_at_a_tree",
    "04_batch_evaluation",
    "05_conversation",
    "06_retrieval",
    "07_graph_by_hand",
    "08_your_own_parts",
)
CELL_TIMEOUT_S = 240

Outputs = dict[str, str]
"""What each code cell printed, by cell id; of a value that it shows, its types and its plain or Markdown text."""


class ThisInterpreter(AsyncKernelManager):
    """Starts ``python3`` as the interpreter that runs the tests, whatever kernels are installed on the machine."""

    @default("kernel_spec_manager")
    def _no_installed_kernels(self) -> KernelSpecManager:
        # Without folders to look in, "python3" is ipykernel's own spec, which names sys.executable.
        return KernelSpecManager(parent=self, kernel_dirs=[])


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Outputs]:
    # A developer's own profile, with its startup files, is no part of the test.
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))

    def run_notebook(name: str) -> Outputs:
        book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        client = NotebookClient(
            book,
            kernel_name="python3",
            kernel_manager_class=ThisInterpreter,
            timeout=CELL_TIMEOUT_S,
            startup_timeout=CELL_TIMEOUT_S,
            resources={"metadata": {"path": str(FOLDER)}},
        )
        asyncio.run(client.async_execute())
        return {cell.id: "".join(map(_text, cell.outputs)) for cell in book.cells if cell.cell_type == "code"}

    return run_notebook


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return output.text if output.name == "stdout" else ""
    shown = [output.data[kind] for kind in ("text/plain", "text/markdown") if kind in output.data]
    return "\n".join(["", *output.data, *shown])


def _table(text: str, *, columns: int) -> dict[str, list[float]]:
    """The lines of a printed table that end in ``columns`` numbers, by what stands before them."""
    lines = (line.rsplit(maxsplit=columns) for line in text.splitlines())
    return {
        parts[0].strip(): [float(number) for number in parts[1:]]
        for parts in lines
        if len(parts) == columns + 1 and all(part.replace(".", "").isdigit() for part in parts[1:])
    }


def test_folder_holds_the_notebooks_that_are_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_has_no_traces_of_a_run_and_says_that_its_model_is_a_script(name: str) -> None:
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]

    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert all(not cell.metadata for cell in book.cells)
    assert len({cell.id for cell in book.cells}) == len(book.cells)
    assert book.metadata.kernelspec.name == "python3"
    assert "version" not in book.metadata.language_info
    assert book.cells[0].cell_type == "markdown"
    assert "is a script" in book.cells[0].source
    assert "the one line that is marked" in " ".join(book.cells[0].source.split())


def test_index_and_ask_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("01_index_and_ask")

    assert "the second time: 34 files unchanged, 0 chunks embedded" in said["index-folder"]
    assert "answered: 35 minutes  (gold: 35 minutes)" in said["ask-judge"]
    assert "text/html" in said["ask-judge"]
    assert "naive: refused" in said["ask-naive"]
    assert "35 minutes {'llm_calls': 0" in said["ask-again"]
    assert "requests that reached the model: 0" in said["ask-again"]
    assert said["ask-sync"].splitlines() == ["1 in 22", "0.4 %"]
    assert said["ask-async"].splitlines() == ["answered 285 mm", "answered 212 °C", "answered 415 MPa"]
    assert said["ask-one-line"].splitlines() == ["18 hours", "violet"]
    assert said["shared"].startswith("exit status 0: standards")
    assert said["closed"].startswith("exit status 0: standards")
    assert "afterwards: 35 minutes" in said["closed"]


def test_your_own_questions_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("02_your_own_questions")

    assert [line.split()[-1] for line in said["run"].splitlines() if " judge " in line] == ["1.0", "1.0"]
    em = _table(said["frame"], columns=2)["em"]
    assert em[0] == 1.0 > em[1]
    assert "[None, None]" in said["list"]
    assert "| judge | 2 |" in said["report"]
    assert "text/html" in said["look"]


def test_look_at_a_tree_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("03_look_at_a_tree")

    assert "generate: 1080 hours" in said["events"].splitlines()
    assert "text/html" in said["html"]
    assert "A: 1080 hours" in said["text"]
    assert "image/svg+xml" in said["svg"]
    assert "depth 2, 2 sub-runs" in said["from-history"]
    assert "requests that reached the model: 0" in said["from-history"]
    assert [line for line in said["walk-tree"].splitlines() if "score 2" in line] == [
        "    score 2, rank 0: testing/kv-315-salt-mist.html"
    ]
    assert "{'query': 3, 'chunk': 9}" in said["export"]
    assert said["fail"].startswith("failed: ")
    assert "root failed, sub-runs ['finished', 'finished']" in said["fail"]
    assert "answered: 1080 hours  (gold: 1080 hours)" in said["resume-run"]
    assert "requests that reached the model: 1" in said["resume-run"]


def test_batch_evaluation_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("04_batch_evaluation")

    assert said["run"].startswith("36 rows, ")
    for system, em in {"llm": "16.7", "naive": "41.7", "judge": "100.0"}.items():
        assert f"| {system} | 12 | 0 |" in said["report"]
        assert f"| {em} (" in said["report"]
    assert "judge right, naive wrong: 7; the other way round: 0" in said["judge-right"]
    assert "retrieval_miss" in said["failures"]
    assert "A: 1080 hours" in said["tree"]
    assert "text/html" in said["tree"]
    assert said["compare"].splitlines()[-1].startswith("judge is better than naive by 58.3 points of EM")
    assert "requests that reached the model: 0" in said["again"]
    assert "same predictions: True" in said["again"]
    assert said["fail"].startswith("54 rows, 2 failed: ")
    assert "503" in said["fail"]
    assert "failed now: 0" in said["retry"]
    assert said["compare-again"].splitlines()[-1].startswith("judge is better than naive by 66.7 points of EM")
    assert {"manifest.json", "rows.jsonl", "trees.jsonl", "report.html"} <= set(said["files"].split())


def test_conversation_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("05_conversation")

    assert "understood as: Which rank must the person in charge of Scheme Osprey have?" in said["ask"]
    assert [line.split(": ")[1].split("   ")[0] for line in said["ask"].splitlines() if " from search: " in line] == [
        "Scheme Osprey",
        "Level Cedar",
        "640 hours",
    ]
    assert "answered from history: 1.5 times the rated load   3 calls" in said["from-history"]
    assert said["branch"].splitlines()[-2:] == ["[1, 2, 3] on branch-2", "[1, 2, 3] on main"]
    assert "answered from history: at once" in said["branch"]
    assert "source 1: equipment/kv-104-steam-drums.pdf, score 2" in said["stream"]
    assert said["stream"].splitlines()[-1] == "answered"
    assert "text/html" in said["page"]
    assert "image/svg+xml" in said["svg"]
    assert said["fail"].startswith("failed | Model 'scripted'")
    assert "open: At what height does KV-185" in said["fail"]
    assert "answered 1.08 m | resumed: True" in said["resume"]
    assert "requests that reached the model: 1" in said["resume"]
    assert "turns: 2" in said["resume"]
    assert said["options"].startswith("Which rank must the person in charge of Scheme Osprey have?\nLevel Cedar from ")
    assert "monday: 5 turns, 2 branches" in said["list"]


def test_retrieval_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("06_retrieval")

    assert said["check-args"].count("SearchArgumentError: ") == 5
    assert "threshold 0.99: 0 chunks" in said["thresholds"]
    assert said["thresholds"].splitlines()[-1].split()[1] == "materials/kv-207-gasket-materials.md"
    assert "again    2 unchanged, 0 embedded" in said["file-changes"]
    assert "changed  1 unchanged, 2 embedded, 3 chunks" in said["file-changes"]
    assert "CollectionError: " in said["chinese"]

    recall = _table(said["recall-table"], columns=5)
    assert list(recall) == ["dense", "sparse", "hybrid, rrf", "hybrid, weighted", "hybrid, model"]
    for at_1, at_3, at_10, first_hop, last_hop in recall.values():
        assert 0 < at_1 <= at_3 <= at_10 <= 1
        assert last_hop < first_hop
    assert recall["hybrid, model"][1] > recall["hybrid, rrf"][1]


def test_graph_by_hand_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("07_graph_by_hand")

    assert "answered: 1080 hours  (gold: 1080 hours)" in said["invoke"]
    assert "    scores [2, 0, 0], next nothing" in said["state-history"].splitlines()
    assert "budget spent: True" in said["budget-spent"]
    assert "(query: " in said["mismatches"]
    assert "max_rec_depth: 3 then, 1 now" in said["mismatches"]

    by_depth = list(_table(said["oracle-table"], columns=5).values())
    assert len(by_depth) == 4
    for shallow, deep in pairwise(by_depth):
        assert all(before <= after for before, after in zip(shallow, deep, strict=True))
    two_hops = [row[1] for row in by_depth]
    assert two_hops[0] == 0
    assert two_hops[1] == 1


def test_your_own_parts_when_run(run: Callable[[str], Outputs]) -> None:
    said = run("08_your_own_parts")

    given, judged, noded, prompted = (_table(said[cell], columns=2) for cell in ("given", "judge", "node", "prompt"))
    assert given["em"] == judged["em"] == prompted["em"] == [1.0, 0.55]
    assert judged["llm_calls"][0] < given["llm_calls"][0] == prompted["llm_calls"][0]
    assert noded == {name: [naive, naive] for name, (_, naive) in given.items()}
    assert said["compare"].count("judge is better than naive") == 2
    assert "The prompts differ: reader." in said["compare"]

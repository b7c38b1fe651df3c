"""Every reader of a file that people name, with the door that an attack opens it by; found in the code by its calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from judgetree.app.commands.trees.diff import _tree
from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.evaluation.datasets.quac import load_quac
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.labels.store import LabelStore
from judgetree.evaluation.replay.recording_lines import RecordingFile
from judgetree.evaluation.rows.payments import Payments
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.evaluation.runs.experiment import load_experiment
from judgetree.evaluation.scoring.scores import ScoreStore
from judgetree.evaluation.sweeps.run_sweep import saved_points
from judgetree.modules.calls.prices import load_prices
from judgetree.modules.errors import LoadingError
from judgetree.modules.index.folder_scan import SourceFile
from judgetree.modules.judge.fits import read_fits
from judgetree.modules.judge.thresholds import read_calibrations
from judgetree.modules.prebuilt.files import read_files
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.structure.graph_files import GraphFiles

REPO = Path(__file__).parents[2]
ROOMS = ("modules", "graphs", "eval", "app")
GUARDED = frozenset(
    {"read_named", "read_named_text", "read_named_json", "read_regular", "open_regular", "read_either", "read_yaml"}
)
"""Functions that open a regular file only, within a size."""
RAW = frozenset(
    {"read_text", "read_bytes", "ZipFile", "load_workbook", "read_csv", "read_excel", "read_parquet", "read_table"}
    | {"memmap", "read_index", "from_file", "dotenv_values", "fdopen", "read_graphml", "connect"}
)
_RAW_OF_MODULES = frozenset({"os.open", "gzip.open", "np.load", "yaml.load", "open", "tomllib.load", "pickle.load"})


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that opens a file."""

    site: str
    """File and function: ``eval/rows/store.py:RunStore.read_attempts``."""
    is_guarded: bool


def calls_in_code() -> Iterator[Call]:
    """Every call in the rooms that opens a file to read it."""
    for room in ROOMS:
        for file in sorted((REPO / room).rglob("*.py")):
            yield from _calls_in(ast.parse(file.read_text(encoding="utf-8")), file.relative_to(REPO).as_posix(), [])


def _calls_in(node: ast.AST, file: str, scope: list[str]) -> Iterator[Call]:
    for child in ast.iter_child_nodes(node):
        is_scope = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = [*scope, child.name] if is_scope else scope  # type: ignore[attr-defined]
        if isinstance(child, ast.Call) and (kind := _kind(child)):
            yield Call(site=f"{file}:{'.'.join(inner)}", is_guarded=kind == "guarded")
        yield from _calls_in(child, file, inner)


def _kind(call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in GUARDED:
        return "guarded"
    if name in RAW or ast.unparse(call.func) in _RAW_OF_MODULES:
        return "raw"
    modes = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    is_reading = any(set(mode) <= set("rbt+") for mode in modes)
    is_text = not modes and any(each.arg == "encoding" for each in call.keywords)
    return "raw" if name == "open" and (is_reading or is_text) else ""


@dataclass(frozen=True, kw_only=True)
class Door:
    """How an attack reaches readers."""

    name: str
    """Name of the file that is replaced by a hostile one."""
    read: Callable[[Path], object]
    """Reads that file; it lies in a folder of its own."""
    sites: tuple[str, ...]
    """The calls that it reaches."""


@dataclass(frozen=True)
class _Scorer:
    name: str


class _Index:
    vector_store_name = "notes"

    class connection:  # noqa: N801 - stands for an attribute
        uri = "here"


def _graph(file: Path) -> object:
    files = GraphFiles.of(_Index(), file.parent.parent)  # type: ignore[arg-type]
    file.rename(files.path("links"))
    return files.load("links", "")


def _source(file: Path) -> object:
    try:
        return SourceFile(path=file, source="a.txt").read(max_bytes=1_000)
    except OSError as error:  # the folder's scan and the plan name the file
        raise LoadingError(str(error)) from error


DOORS: tuple[Door, ...] = (
    *(
        Door(
            name=f"q{suffix}",
            read=load_own_questions,
            sites=(
                "eval/question_files/file_rows.py:read_rows",
                "modules/reading/regular_files.py:read_regular",
            ),
        )
        for suffix in (".csv", ".tsv", ".xlsx", ".json", ".jsonl")
    ),
    Door(
        name="hotpot.json",
        read=lambda file: load_dataset(f"hotpotqa:{file}"),
        sites=(
            "eval/datasets/rows.py:RowReader.is_list",
            "eval/datasets/rows.py:RowReader._list",
            "modules/reading/regular_files.py:read_named_json",
        ),
    ),
    Door(
        name="hotpot.jsonl",
        read=lambda file: load_dataset(f"hotpotqa:{file}"),
        sites=("eval/datasets/rows.py:RowReader._lines",),
    ),
    Door(name="quac.json", read=load_quac, sites=("eval/datasets/quac.py:_official_data",)),
    Door(name="qa.jsonl", read=load_standards_qa, sites=("eval/datasets/standards_qa.py:load_faultless",)),
    Door(
        name="labels.jsonl",
        read=lambda file: LabelStore(file.parent).read(),
        sites=("eval/labels/store.py:LabelStore.read",),
    ),
    Door(name="recording.jsonl", read=RecordingFile, sites=("eval/replay/recording_lines.py:RecordingFile.__init__",)),
    Door(
        name="rows.jsonl",
        read=lambda file: RunStore(file.parent).read_rows(),
        sites=("eval/rows/store.py:RunStore.read_attempts",),
    ),
    Door(
        name="manifest.json",
        read=lambda file: RunStore(file.parent).read_manifest(),
        sites=("eval/rows/store.py:RunStore.read_manifest", "eval/rows/two_copies.py:read_either"),
    ),
    Door(
        name="trees.jsonl",
        read=lambda file: TreeStore(file.parent).read("t"),
        sites=("eval/rows/trees.py:TreeStore._opened",),
    ),
    Door(
        name="scores.jsonl",
        read=lambda file: ScoreStore(file, _Scorer).read(),
        sites=("eval/scoring/scores.py:ScoreStore.read",),
    ),
    Door(
        name="payments.jsonl",
        read=lambda file: Payments(file.parent).paid(),
        sites=("eval/rows/payments.py:Payments.paid",),
    ),
    Door(
        name="sweep.json",
        read=lambda file: saved_points(file.parent),
        sites=("eval/sweeps/run_sweep.py:saved_points",),
    ),
    Door(
        name="experiment.yaml",
        read=load_experiment,
        sites=(
            "modules/reading/yaml_files.py:read_mapping",
            "modules/reading/yaml_files.py:read_yaml",
        ),
    ),
    Door(name="prompts.yaml", read=load_prompts, sites=("modules/prompts/reading.py:_mapping_in",)),
    Door(
        name="prebuilt.yaml",
        read=lambda file: read_files(str(file)),
        sites=("modules/prebuilt/files.py:read_files",),
    ),
    Door(
        name="prices.toml",
        read=lambda file: load_prices(file.parent),
        sites=("modules/calls/prices.py:load_prices", "modules/reading/regular_files.py:read_named_text"),
    ),
    Door(name="fits.json", read=read_fits, sites=("modules/judge/fits.py:read_fits",)),
    Door(name="thresholds.json", read=read_calibrations, sites=("modules/judge/thresholds.py:read_calibrations",)),
    Door(name="graph.npz", read=_graph, sites=("modules/structure/graph_files.py:GraphFiles.load",)),
    Door(name="tree.json", read=lambda file: _tree(str(file)), sites=("app/commands/trees/diff.py:_tree",)),
    Door(
        name="a.txt",
        read=_source,
        sites=("modules/index/folder_scan.py:SourceFile.read",),
    ),
)

OWN = "a file that this program or its installation wrote for itself, in a folder of its own"
CHECKED = "a regular file by a check just before; only its start is read, or it is read in blocks"
BYTES = "reads bytes in memory, which a guarded reader has read"
EXCUSED: Mapping[str, str] = {
    "modules/reading/yaml_files.py:parse_value": "a value that is typed, of at most 1,000 characters",
    "app/commands/doctor.py:_try_milvus": "a connection",
    "modules/index/factory.py:rename": "a connection",
    "modules/storage/atomic.py:_umask": "of the system, in /proc",
    "modules/storage/atomic.py:replacing": "writes",
    "modules/storage/file_locks.py:_command_of": "of the system",
    "modules/storage/file_locks.py:is_locked": OWN,
    "modules/storage/file_locks.py:lock_folder": "only a name in a message, which is left out",
    "modules/storage/file_locks.py:lock_holder": "of the system",
    "modules/storage/postgres.py:PostgresDatabase._connect": "a connection",
    "modules/storage/sqlite.py:_connect": "SQLite refuses what is no file",
    "modules/trust/closed.py:_only_owner": "writes",
    "modules/trust/closed.py:open_private": "writes",
    "modules/trust/consent.py:_read": OWN,
    "modules/trust/env_file.py:EnvFile.values": BYTES,
    "modules/trust/env_file.py:read_env_file": CHECKED,
    "modules/trust/saved_names.py:_address_in": CHECKED,
    "modules/trust/private.py:private_file": "makes a file",
    "app/commands/new/skeletons.py:_template": OWN,
    "app/server/collections/arriving.py:check_unpacked": "an upload that was counted while it arrived",
    "app/server/collections/filling.py:fill": "an upload that was counted while it arrived",
    "app/server/page/serving.py:_files_below": OWN,
    "app/stores/collections.py:CollectionReader._open": "a connection",
    "app/stores/collections.py:read_names": "a connection",
    "eval/datasets/fetch.py:_check_digest": OWN,
    "eval/datasets/fetch.py:_unpacked": "limited while it is unpacked",
    "eval/datasets/fetch.py:download": OWN,
    "eval/fetch_prebuilt.py:_downloaded": OWN,
    "eval/fetch_prebuilt.py:_opened": OWN,
    "eval/rows/code_version.py:_files": OWN,
    "eval/rows/code_version.py:git_revision": OWN,
    "eval/rows/json_lines.py:cut_torn_end": "no FIFO by _check_is_file; opened to be written",
    "eval/rows/json_lines.py:sync_file": "no FIFO by _check_is_file; opened to be written",
    "eval/rows/two_copies.py:mend_from_copy": "the files of read_either",
    "graphs/conversation/qa_log.py:_append": "opened without waiting",
    "graphs/conversation/qa_log.py:_ends_within_a_line": CHECKED,
    "graphs/drawing/html.py:_asset": OWN,
    "graphs/drawing/svg.py:picture_style": OWN,
    "modules/embedding/cores.py:_given": "of the system",
    "modules/embedding/local.py:_check_digests": OWN,
    "modules/embedding/minilm.py:open_minilm": OWN,
    "modules/index/folder_scan.py:SourceFile.digest": CHECKED,
    "modules/index/index.py:Index.connection": "a connection",
    "modules/index/lite_files.py:CollectionFiles.rows": OWN,
    "modules/index/lite_files.py:_grow": OWN,
    "modules/index/lite_folder.py:_published": OWN,
    "modules/index/lite_state.py:FilesWatch._physical": OWN,
    "modules/index/parser_process.py:serve": "pipes to the parent",
    "modules/index/parsers/word/package.py:WordPackage.__init__": BYTES,
    "modules/lazy_exports.py:lazy_exports": OWN,
    "modules/llm/model_files.py:_blocks": OWN,
    "modules/llm/model_files.py:_is_intact": OWN,
    "modules/llm/model_files.py:_is_stamped": OWN,
    "modules/llm/model_files.py:find_own_model_file": CHECKED,
    "modules/locks/postgres.py:PostgresLocks._take": "a connection",
    "modules/locks/postgres.py:PostgresLocks.connect": "a connection",
    "modules/memory/collection.py:MemoryCollection._client": "a connection",
    "modules/parts.py:source_of": OWN,
    "modules/prebuilt/corpus.py:Corpus.__init__": CHECKED,
    "modules/prebuilt/dense.py:_read": CHECKED,
    "modules/prebuilt/digests.py:digest_reading": CHECKED,
    "modules/prebuilt/lines.py:LineOffsetsWriter.finish": OWN,
    "modules/prebuilt/lines.py:open_starts": OWN,
    "modules/reading/regular_files.py:open_regular": "the guard itself",
    "modules/reading/regular_files.py:read_named": "reached by every door",
    "modules/reading/rich_strings.py:with_plain_strings": BYTES,
    "modules/reading/workbook_rows.py:_cells": BYTES,
    "modules/reading/workbook_rows.py:_check_parts": BYTES,
    "modules/reading/workbook_rows.py:workbook_rows": BYTES,
    "modules/retriever/snapshot.py:_graph": OWN,
    "modules/structure/passage_graph.py:PassageGraph.from_bytes": BYTES,
}
"""Why other calls need no attack, by site."""

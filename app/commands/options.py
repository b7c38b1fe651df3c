"""Options and arguments of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ...graphs.threads.depth import MAX_REC_DEPTH
from ...modules.errors import SettingsError

# Copies, since the modules that define these names take seconds to import; a test compares them.
StrategyName = Literal["stuff", "map_reduce", "refine", "map_rerank"]
SearchTypeName = Literal["hybrid", "dense", "sparse"]
DirectionName = Literal["right", "down"]
RecordName = Literal["full", "prompts", "none"]
EvidenceName = Literal["useful", "sufficient", "all"]
EvidenceRankerName = Literal["mmr", "facility_location", "log_det"]
CacheModeName = Literal["off", "read", "write", "refresh", "replay"]

Questions = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Your own, in place of --dataset: CSV, TSV, Excel, JSON or JSON Lines."),
]
Corpus = Annotated[
    str | None,
    typer.Option(metavar="NAME|./FOLDER", help="Collection or folder to search, in place of the data set's own."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="question=Frage,answer=Antwort", help="Its columns, where they are called otherwise; COLUMN= for none."
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="What parts several answers in one of its cells, | in tables; the word none: nothing."
    ),
]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Its encoding, such as cp1252; it is found.")]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave its bad rows out, in place of refusing the file.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Collection = Annotated[str | None, typer.Option("--collection", "-c", metavar="NAME", help="Collection to ask.")]
Llm = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model that answers: openai:NAME, dashscope:NAME, URL#NAME or local:."),
]
JudgeLlm = Annotated[str | None, typer.Option(metavar="MODEL", help="Model that judges; else the one that answers.")]
CondenseLlm = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model that understands follow-up questions; else the one that answers."),
]
Thinking = Annotated[
    bool | None,
    typer.Option("--thinking/--no-thinking", help="Whether that model thinks first; default: as its endpoint does."),
]
TopK = Annotated[int | None, typer.Option(min=1, metavar="N", help="Chunks that each query retrieves; default 3.")]
RayAddress = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Their Ray cluster, such as auto; else one of this machine."),
]
Spreadsheet = Annotated[
    bool,
    typer.Option("--spreadsheet", help="CSV for a spreadsheet too, where no text runs as a formula."),
]
MaxDepth = Annotated[
    int | None,
    typer.Option(min=0, max=MAX_REC_DEPTH, metavar="N", help="Levels of questions, or further rounds; default 3."),
]
SearchType = Annotated[SearchTypeName | None, typer.Option(help="Default hybrid.")]
SearchGraph = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="entities, triples or links: the graph whose ranking is one more list of the search; judgetree index "
        "--graph makes it.",
    ),
]
System = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="judge: recursive; naive: retrieve and answer; llm: closed book; ircot, iter_retgen, self_ask, react: "
        "baselines that search in rounds; or module:name of your own. Default judge.",
    ),
]
JudgeKind = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="auto, generated, batched, logprob, embedding, cascade, fused, noisy (runs only), with parameters such as "
        "cascade:judge=batched; or module:name of your own. Default auto.",
    ),
]
Retriever = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="In place of a collection: prebuilt:PATH, a YAML file or folder of an index that others have built, or "
        "module:name of a retriever of your own.",
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool",
        metavar="NAME",
        help="A tool of the agent react: calculator, web, or module:name of a tool of LangChain; may be repeated.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Chooses the chunks that ask their sub-questions: breadth, best_first, value_cost, wider, mcts, random, "
        "treequest (an extra), "
        "with parameters such as mcts:c=1.4; or module:name of your own. Default breadth.",
    ),
]
Stop = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Closes a query whose verdicts suffice: set, any, confidence:p=0.9, never; default set."
    ),
]
Evidence = Annotated[
    EvidenceName | None,
    typer.Option(
        help="Chunks that a reader sees. useful: score 1, 2 or unknown, else all; sufficient: those with score 2, else "
        "useful; all. Default useful."
    ),
]
EvidenceTokens = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Most tokens of what a reader sees, best verdicts first; default: no limit."),
]
EvidenceRanker = Annotated[
    EvidenceRankerName | None,
    typer.Option(help="Fills --evidence-tokens with passages that repeat each other little; default: by verdict."),
]
FailAfter = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="N", help="Stop after N questions in a row, or a share of all, find no usable endpoint; 10."
    ),
]
Width = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most sub-questions that a round grants; default: no limit.")
]
MaxSubRuns = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Most sub-questions in all; default: no limit.")
]
Sharing = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Whether a sub-question that the tree has asked already is linked to its run: equal, similar:at=0.95 "
        "(by embeddings), or off (the default).",
    ),
]
Expand = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="How useful chunks widen the search: sub_question (the default), link (linked passages are judged too, "
        "after judgetree index --graph links), or both:neighbours=3,hops=1.",
    ),
]
MaxTreeTokens = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Most tokens of one question's whole tree; default: no limit."),
]
MaxTreeCost = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Most US dollars of one question's whole tree; default: no limit."),
]
MaxTreeSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Most seconds of one question's search, then it is answered from what is there; no limit."
    ),
]
Strategy = Annotated[
    StrategyName | None,
    typer.Option(
        help="How the reader takes in its evidence. stuff: at once; map_reduce: notes of each passage, then the "
        "answer; refine: passage by passage; map_rerank: the surest of the passages' answers. Default stuff."
    ),
]
Prompts = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Your own, in YAML; `judgetree prompts copy` writes a file to edit.")
]
PromptsThinking = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Prompts of turns with thinking on, in place of the same names.")
]
PromptsNoThinking = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Prompts of turns with thinking off, in place of the same names.")
]
InsertBlock = Annotated[
    bool,
    typer.Option("--insert-block", help="Take out chunks that do not belong to the answer; a call a chunk."),
]
InsertBlockLlm = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Model of --insert-block; else the one that judges.")
]
Record = Annotated[
    RecordName | None,
    typer.Option(help="Keep what each model call is sent and what it replies, the prompts alone, or neither."),
]
SvgFile = Annotated[str | None, typer.Option(metavar="FILE", help="Picture; - is standard output.")]
JsonFile = Annotated[str | None, typer.Option(metavar="FILE", help="Everything, as data.")]
DotFile = Annotated[str | None, typer.Option(metavar="FILE", help="Graphviz text.")]
RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")]
SomeSystems = Annotated[str | None, typer.Option(metavar="NAME,…", help="Some of the run's systems; all.")]


def names_in(systems: str | None) -> tuple[str, ...] | None:
    """Split a list of names at commas or blanks."""
    return tuple(systems.replace(",", " ").split()) if systems is not None else None


def question_keys(
    *, questions: Path | None, columns: str | None, separator: str | None, encoding: str | None, skip_bad_rows: bool
) -> dict[str, object]:
    """Return the keys of an experiment that a file of one's own questions takes; None for those that are not given."""
    pairs = [pair.partition("=") for pair in columns.split(",")] if columns is not None else []
    if not all(name.strip() and is_pair for name, is_pair, _ in pairs):
        raise SettingsError(f"--columns {columns!r} is not COLUMN=NAME,COLUMN=NAME, such as question=Frage,type=.")
    return {
        "questions": questions,
        "columns": {name.strip(): value.strip() for name, _, value in pairs} or None,
        "separator": separator,
        "encoding": encoding,
        "skip_bad_rows": skip_bad_rows or None,
    }


def ray_address(workers: int | None, given: str | None) -> str:
    """Return the address of the Ray on which workers run: the given one, else one of this machine.

    Raises:
        SettingsError: There is an address, and no number of workers.
    """
    from ...modules.cluster import HERE

    if given is not None and workers is None:
        raise SettingsError("--ray needs the number of worker processes: add --workers N.")
    return HERE if given is None else given

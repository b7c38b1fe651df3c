"""Options and arguments of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

# Copies, since the modules that define these names take seconds to import; a test compares them.
SystemName = Literal["llm", "naive", "iter_retgen", "ircot", "self_ask", "react", "judge"]
StrategyName = Literal["stuff", "map_reduce", "refine", "map_rerank"]
CacheModeName = Literal["off", "read", "write", "refresh", "replay"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Collection = Annotated[str | None, typer.Option("--collection", "-c", metavar="NAME", help="Collection to ask.")]
TopK = Annotated[int | None, typer.Option(min=1, metavar="N", help="Chunks that each query retrieves; default 3.")]
MaxDepth = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Levels of questions, or further rounds; default 3.")
]
SvgFile = Annotated[str | None, typer.Option(metavar="FILE", help="Picture; - is standard output.")]
JsonFile = Annotated[str | None, typer.Option(metavar="FILE", help="Everything, as data.")]
DotFile = Annotated[str | None, typer.Option(metavar="FILE", help="Graphviz text.")]
RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")]

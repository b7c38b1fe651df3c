"""Tables and texts for a terminal of some width: a table that is too wide is turned, and cut into parts that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...graphs.drawing.layout import one_line
from .markdown import blocks_markdown, table_markdown
from .table import Block, Cell, Section, Table


def sections_narrow(sections: Iterable[Section], width: int) -> str:
    """Write a document as ``sections_markdown`` does, with tables that fit into lines of so many characters."""
    blocks = (block for section in sections for block in (f"## {one_line(section.title)}", *section.blocks))
    return blocks_markdown(part for block in blocks for part in narrowed(block, width))


def narrowed(block: Block, width: int) -> Iterator[Block]:
    """Yield a block as it is, or the parts of a table that is wider.

    A part has a line for each column of the table, and a column for each of some of its rows, at least one.

    >>> wide = Table.of(["system", "EM", "F1", "calls"], [["naive", "45.6", "45.6", "1.00"]])
    >>> print(*narrowed(wide, 29))
    | system | naive |
    | ------ | ----- |
    | EM     | 45.6  |
    | F1     | 45.6  |
    | calls  | 1.00  |
    """
    if not isinstance(block, Table) or max(map(len, table_markdown(block).splitlines())) <= width:
        yield block
        return
    part: list[tuple[Cell, ...]] = []
    for row in block.rows:
        if part and max(map(len, _turned(block, [*part, row]).splitlines())) > width:
            yield _turned(block, part)
            part = []
        part.append(row)
    if part:
        yield _turned(block, part)


def _turned(table: Table, rows: Iterable[tuple[Cell, ...]]) -> str:
    names = [", ".join(map(str, row[: table.texts])) for row in rows]
    values = [row[table.texts :] for row in rows]
    columns = [
        (" / ".join(table.head[: table.texts]), *names),
        *((head, *(str(row[place]) for row in values)) for place, head in enumerate(table.head[table.texts :])),
    ]
    return _aligned(columns)


def _aligned(cells: Iterable[Iterable[str]]) -> str:
    lines = [tuple(map(one_line, line)) for line in cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = tuple("-" * each for each in widths)
    padded = (
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in (lines[0], rule, *lines[1:])
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)

"""Tables and sections in Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from ...graphs.drawing.layout import one_line
from .table import Block, Section, Table

_BAR = r"\|"


def table_markdown(table: Table) -> str:
    r"""Write a table in Markdown; a bar or line break within a cell stays within it, a control character is replaced.

    >>> print(table_markdown(Table.of(["system", "EM"], [["naive|x", "0.41"]])))
    | system | EM |
    | --- | --- |
    | naive\|x | 0.41 |
    """
    rows = (table.head, ["---"] * len(table.head), *(map(str, row) for row in table.rows))
    return "\n".join(f"| {' | '.join(map(_in_one_line, row))} |" for row in rows)


def blocks_markdown(blocks: Iterable[Block]) -> str:
    """Write texts and tables one after the other, a blank line between them."""
    return "\n\n".join(table_markdown(block) if isinstance(block, Table) else block for block in blocks)


def sections_markdown(sections: Iterable[Section]) -> str:
    """Write a document: the title of the first section is that of the whole."""
    return "\n\n".join(
        blocks_markdown([f"{'##' if number else '#'} {one_line(section.title)}", *section.blocks])
        for number, section in enumerate(sections)
    )


def _in_one_line(cell: str) -> str:
    return one_line(cell).replace("|", _BAR)

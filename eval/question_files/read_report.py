"""What was read of a file of questions, in a line and as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

_NAMES = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "|", "": ""}
_SHOWN = 12
_ROWS_SHOWN = 5
_VALUE_SHOWN = 60


DoubtKind = Literal["lost", "literal", "row", "encoding", "bar", "hidden", "merged", "shown", "split"]
"""What may have been meant otherwise, the most suspicious first: an answer that is left out, a list or a missing value
that is read as a text, a row of another length, a guess, a bar that parts nothing, what a workbook hides, merges or
shows otherwise, and cells that are split.
"""


class Doubts:
    """What may have been meant otherwise in the cells of a file, with the rows where it stands."""

    def __init__(self) -> None:
        self._found: dict[tuple[DoubtKind, str], list[tuple[int, str]]] = {}

    def add(self, kind: DoubtKind, what: str, row: int = 0, *, value: str = "") -> None:
        """Note something.

        Args:
            kind: Its kind.
            what: A phrase that is the same for each row where it is found.
            row: The row, from 1; 0 for the whole file.
            value: The text that it is about.
        """
        self._found.setdefault((kind, what), []).append((row, value))

    @property
    def rows(self) -> int:
        """The number of rows in which something was found."""
        return len({row for found in self._found.values() for row, _ in found if row})

    def phrases(self) -> list[str]:
        """Return a phrase for each, with its rows and the first value; the most suspicious kind first."""
        kinds = get_args(DoubtKind)
        found = sorted(self._found.items(), key=lambda each: (kinds.index(each[0][0]), -len(each[1])))
        return [_phrase(what, places) for (_, what), places in found]


def _phrase(what: str, places: Sequence[tuple[int, str]]) -> str:
    rows = [str(row) for row, _ in places if row]
    value = places[0][1]
    such = f", {'such as ' * (len(rows) > 1)}{value!r:.{_VALUE_SHOWN}}" if value else ""
    if len(rows) > _ROWS_SHOWN:
        return f"{what} ({len(rows)} rows: {', '.join(rows[:_ROWS_SHOWN])}, …{such})"
    return f"{what} (row{'s' * (len(rows) > 1)} {', '.join(rows)}{such})" if rows else what


@dataclass(frozen=True, kw_only=True)
class QuestionsRead:
    """What was read of a file of questions of one's own."""

    file: str
    shape: str
    """"CSV", "TSV", "a workbook", "JSON" or "JSON Lines"."""
    questions: int
    with_answers: int
    """Questions with a gold answer."""
    unanswerable: int
    """Questions to which a refusal is the right answer."""
    with_supporting: int
    """Questions that name supporting files or documents."""
    left_out: int
    """Bad rows that were left out."""
    separator: str
    """What separates the cells of a text table; ``""`` for other files."""
    encoding: str
    """Encoding of a text; ``""`` for a workbook."""
    sheet: str
    """Name of the sheet of a workbook that was read; ``""`` for other files."""
    other_sheets: tuple[str, ...]
    """Names of the sheets that were not."""
    columns: Mapping[str, str]
    """Names of the columns that were used, by what they hold."""
    unused: tuple[str, ...]
    """Names of the other columns, in the order of the file."""
    doubts: tuple[str, ...]
    """What may have been meant otherwise, a phrase each with its rows, the most suspicious first."""
    doubtful_rows: int
    """Rows that one of them is about."""

    def to_document(self) -> dict[str, object]:
        """Return it as plain data for ``json.dumps``."""
        lists = {name: [*getattr(self, name)] for name in ("other_sheets", "unused", "doubts")}
        return {**asdict(self), "columns": dict(self.columns), **lists}

    def to_line(self) -> str:
        """Describe it in a line."""
        counts = [f"{self.questions} questions", f"{self.with_answers} with answers"]
        counts += [f"{self.unanswerable} unanswerable"] if self.unanswerable else []
        counts += [f"{self.with_supporting} with supporting files"]
        counts += [f"{self.left_out} bad rows left out"] if self.left_out else []
        parted = f" separated by {_NAMES[self.separator]}" if self.separator else ""
        encoded = f" in {self.encoding}" if self.encoding else ""
        others = ", ".join(map(repr, self.other_sheets[:_SHOWN])) + ", …" * (len(self.other_sheets) > _SHOWN)
        sheet = f", sheet {self.sheet!r} (not read: {others or 'none'})" if self.sheet else ""
        used = ", ".join(kind if kind == name else f"{kind}={name}" for kind, name in self.columns.items())
        unused = ", ".join(self.unused[:_SHOWN]) + (", …" if len(self.unused) > _SHOWN else "")
        return (
            f"Read {self.file}: {', '.join(counts)}; {self.shape}{sheet}{parted}{encoded}; columns: {used}; not used: "
            f"{unused or 'none'}"
        )

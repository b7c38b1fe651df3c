"""What was read of a file of questions, in a line and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

_NAMES = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "|", "": ""}
_SHOWN = 12


class Doubts:
    """What may have been meant otherwise in the cells of a file, with the rows where it stands."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}

    def add(self, what: str, row: int) -> None:
        """Note it for a row."""
        self._rows.setdefault(what, []).append(row)

    def phrases(self) -> list[str]:
        """Return a phrase for each, in the order in which they were found."""
        return [
            f"{what} (row {rows[0]})" if len(rows) == 1 else f"{what} ({len(rows)} rows, the first is {rows[0]})"
            for what, rows in self._rows.items()
        ]


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
    columns: Mapping[str, str]
    """Names of the columns that were used, by what they hold."""
    unused: tuple[str, ...]
    """Names of the other columns, in the order of the file."""
    doubts: tuple[str, ...]
    """What may have been meant otherwise, a phrase each."""

    def to_document(self) -> dict[str, object]:
        """Return it as plain data for ``json.dumps``."""
        return {**asdict(self), "columns": dict(self.columns), "unused": [*self.unused], "doubts": [*self.doubts]}

    def to_line(self) -> str:
        """Describe it in a line."""
        counts = [f"{self.questions} questions", f"{self.with_answers} with answers"]
        counts += [f"{self.unanswerable} unanswerable"] if self.unanswerable else []
        counts += [f"{self.with_supporting} with supporting files"]
        counts += [f"{self.left_out} bad rows left out"] if self.left_out else []
        parted = f" separated by {_NAMES[self.separator]}" if self.separator else ""
        encoded = f" in {self.encoding}" if self.encoding else ""
        used = ", ".join(kind if kind == name else f"{kind}={name}" for kind, name in self.columns.items())
        unused = ", ".join(self.unused[:_SHOWN]) + (", …" if len(self.unused) > _SHOWN else "")
        return (
            f"Read {self.file}: {', '.join(counts)}; {self.shape}{parted}{encoded}; columns: {used}; not used: "
            f"{unused or 'none'}"
        )

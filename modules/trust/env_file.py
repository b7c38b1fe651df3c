"""The ``.env`` of a folder: its bytes, read once, and what they set."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

ENV_NAME = ".env"
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class EnvFile:
    """A file of variables, whose digest and values are those of the same bytes."""

    path: Path
    content: bytes

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self.path.parent

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def values(self) -> Mapping[str, str | None]:
        """The values by their names as written, with ``${NAME}`` replaced.

        Raises:
            UnicodeDecodeError: The file is not UTF-8.
        """
        return dotenv_values(stream=io.StringIO(self.content.decode("utf-8")))

    def lines(self) -> tuple[tuple[int, str, str], ...]:
        """Return number, name and value of each line, the value as written; a name that stands twice comes twice.

        Raises:
            UnicodeDecodeError: The file is not UTF-8.
        """
        return _lines(self.content)


@lru_cache(maxsize=8)
def _lines(content: bytes) -> tuple[tuple[int, str, str], ...]:
    found = []
    for binding in parse_stream(io.StringIO(content.decode("utf-8"))):
        if binding.key is not None:
            text = binding.original.string
            blank = text[: len(text) - len(text.lstrip())].count("\n")
            found.append((binding.original.line + blank, binding.key, binding.value or ""))
    return tuple(found)


def read_env_file(folder: Path) -> EnvFile | None:
    """Read the ``.env`` of a folder; None if there is none.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger than a megabyte.
    """
    path = folder / ENV_NAME
    if not path.exists() or path.is_dir():  # Docker makes a folder of a file to mount that is missing
        return None
    path = folder.resolve() / ENV_NAME
    if not path.is_file():  # opening a FIFO would wait
        raise OSError("it is no regular file")
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"it is larger than {_MOST_BYTES:,} bytes")
    return EnvFile(path, content)

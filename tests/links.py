"""Finds dead links in Markdown files: relative targets that do not exist, and headings that nobody wrote."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)|(?:src|href)=\"([^\"]+)\"")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The anchors that a renderer makes of a file's headings."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in HEADING.findall(text)}


def dead_links(path: Path) -> Iterator[str]:
    """The links of one file that lead nowhere; addresses on the web are not tried."""
    for match in LINK.finditer(FENCE.sub("", path.read_text(encoding="utf-8"))):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file) if file else path
        if not place.exists():
            yield f"{path}: {target} does not exist"
        elif anchor and place.suffix == ".md" and anchor not in anchors(place):
            yield f"{path}: {target} names no heading"


def main(arguments: list[str]) -> int:
    """Check the files and folders given; 1 if any link is dead."""
    files = [
        file for name in arguments for file in ([Path(name)] if Path(name).is_file() else Path(name).rglob("*.md"))
    ]
    faults = [fault for file in files for fault in dead_links(file)]
    sys.stderr.writelines(fault + "\n" for fault in faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Asks a real model the questions of the plan, and writes the pages of what it finds.

``python -m experiments FOLDER`` asks the pilot, stage A and stage B until all is done or it is stopped; the same
command goes on, also on another machine. ``--llm`` names another model, whose rows and pages lie in a folder of their
own.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from .answers import answer
from .answers_page import write_answers
from .batches import kept_folder, model_of
from .evidence import is_whole, write_evidence
from .pages import PAGES
from .record import STAGE_A, record

WRITERS = {"evidence.md": write_evidence, "answers.md": write_answers}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder with the files of the data sets; without it nothing is asked"
    )
    parser.add_argument("--most", type=int, default=1_000, help="questions of each part")
    parser.add_argument("--llm", help="model, as in judgetree eval; default: that of evidence.yaml")
    parser.add_argument(
        "--pages", type=Path, help="where the pages are written; default: docs, of --llm its own folder"
    )
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "judgetree-evidence")
    given = parser.parse_args(arguments)
    model = model_of(given.llm)
    if given.folder:
        asked = {"work": given.work / kept_folder(model).name, "model": model, "most": given.most}
        record(["pilot"], given.folder, **asked)
        record(STAGE_A, given.folder, **asked)
        if is_whole(model):
            answer(given.folder, **asked)
    pages = given.pages or (kept_folder(model) if given.llm else PAGES)
    pages.mkdir(parents=True, exist_ok=True)
    for name, write in WRITERS.items():
        if pages != PAGES:
            shutil.copyfile(PAGES / name, pages / name)
        write(pages / name, model)


if __name__ == "__main__":
    main()

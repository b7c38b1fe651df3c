"""Keep what was screened on the tuning questions: ``python -m experiments.screening RUN …`` writes ``screening.csv``.

The runs are of ``screening.yaml``, and one of its plain searches and links with ``--set search_graph=links``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from judgetree import evaluation

from .pages import PAGES
from .runs import question_rows


def screened(runs: list[Path]) -> pd.DataFrame:
    """Return the rows of all runs; ``list`` says whether the links were one more list of the search."""
    found = []
    for run in runs:
        manifest = evaluation.load_rerun(run / "manifest.json").experiment
        found.append(question_rows(run).assign(list=manifest.search_graph or ""))
    return pd.concat(found).drop_duplicates(["id", "system", "list"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    screened(parser.parse_args().runs).to_csv(PAGES / "screening.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()

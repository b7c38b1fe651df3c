"""Tables of the page on order, from the results of ``benchmarks.order``.

``python -m benchmarks.order_tables FOLDER`` prints them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pandas as pd

from judgetree.evaluation.replay.summary import is_shown

_TITLES = {"hotpotqa": "HotpotQA", "musique": "MuSiQue"}
_BY = ["dataset", "judging"]
_CELL = ["dataset", "judging", "auc", "writer", "scale", "sees_wrong", "budget"]
MOST = 60
"""The largest budget."""
POOR_WRITER = 0.5
SCALED_AUC = 0.8


def plain(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of judges with a scale of 1 that see no wrong question."""
    return found[(found["scale"] == 1.0) & ~found["sees_wrong"]]


def number(value: float, digits: int = 3) -> str:
    """Return a number without the zero before its point.

    >>> number(0.0412), number(-0.5, 2), number(1.0)
    ('.041', '-.50', '1.000')
    """
    text = f"{value:.{digits}f}"
    zero = f"{0:.{digits}f}"
    return zero.lstrip("0") if text == f"-{zero}" else text.replace("0.", ".", 1) if abs(value) < 1 else text


def order_table(found: pd.DataFrame) -> str:
    """Return what orders gain over breadth: least, mean and most over judges and writers, and how often it is shown."""
    policies = ("oracle_order", "best_first", "best_first:rank_weight=0", "random")
    return _table(["", "budget", *(f"`{each}`" for each in policies)], _spreads(found, policies))


def asking_table(found: pd.DataFrame) -> str:
    """Return what asking again gains over breadth, as ``order_table``; no judge sees wrong questions."""
    return _table(["", "budget", "`wider`", "`mcts`"], _spreads(found, ("wider", "mcts")))


def seeing_table(found: pd.DataFrame) -> str:
    """Return what asking again gains, under judges that do not see wrong questions and under those that do."""
    rows = []
    seeing = found[found["sees_wrong"]]
    for _, (dataset, judging, auc) in seeing[[*_BY, "auc"]].drop_duplicates().iterrows():
        cells = [_name(dataset, judging), f"{auc:g}"]
        for sees in (False, True):
            cell = {"dataset": dataset, "judging": judging, "auc": auc, "sees_wrong": sees}
            here = at(found, **cell, writer=POOR_WRITER, budget=MOST)
            cells += [_complete(here.loc["breadth"]), _gain(here.loc["wider"]), _gain(here.loc["mcts"])]
        rows.append(cells)
    heads = ["breadth", "`wider`", "`mcts`"]
    return _table(["", "AUC", *heads, *(f"{each}, seen" for each in heads)], rows)


def judging_table(found: pd.DataFrame) -> str:
    """Return what breadth finds with a perfect writer, judging in one call and chunk by chunk."""
    rows = []
    for (dataset, auc), part in plain(found).groupby(["dataset", "auc"], sort=False):
        here = part[(part["writer"] == 1.0) & (part["policy"] == "breadth")].set_index(["judging", "budget"])
        cells = [(judging, budget) for budget in (16, MOST) for judging in ("batched", "per chunk")]
        rows.append([_TITLES[dataset], f"{auc:g}", *(_complete(here.loc[cell]) for cell in cells)])
    return _table(["", "AUC", "batched, budget 16", "per chunk, 16", f"batched, {MOST}", f"per chunk, {MOST}"], rows)


def probability_table(rated: pd.DataFrame) -> str:
    """Return mean P(needed) beside what is true, at one AUC and with a perfect writer."""
    rows = []
    here = plain(rated)
    here = here[(here["auc"] == SCALED_AUC) & (here["writer"] == 1.0)]
    for _, row in here.iterrows():
        shares = [number(row[name]) for name in ("p_needed", "needed", "gold")]
        rows.append([_name(row["dataset"], row["judging"]), row["asked_by"], f"{row['chunks']:,}", *shares])
    return _table(["", "asked by", "chunks", "mean P(needed)", "needed by the query", "gold of the question"], rows)


def stopping_table(found: pd.DataFrame) -> str:
    """Return what ``value_cost`` gains over breadth, and the share of the calls that it saves."""
    calls = plain(found).pivot_table(index=_CELL, columns="policy", values="calls")
    saved = (1 - calls["value_cost"] / calls["breadth"]).groupby([*_BY, "budget"], sort=False)
    spreads = {cell: _spread(part, 2) for cell, part in saved}
    rows = [[*cells, spreads[cell]] for cell, cells in _spreads_of(found, ("value_cost",))]
    return _table(["", "budget", "evidence complete", "share of calls saved"], rows)


def at(found: pd.DataFrame, **cell: object) -> pd.DataFrame:
    """Return the rows of a cell by policy; scale is 1 and no wrong question is seen where nothing is named."""
    where = pd.Series(data=True, index=found.index)
    for name, value in {"scale": 1.0, "sees_wrong": False, **cell}.items():
        where &= found[name] == value
    return found[where].set_index("policy")


def _spreads(found: pd.DataFrame, policies: Iterable[str]) -> Iterator[list[str]]:
    return (cells for _, cells in _spreads_of(found, policies))


def _spreads_of(found: pd.DataFrame, policies: Iterable[str]) -> Iterator[tuple[tuple[object, ...], list[str]]]:
    names = list(policies)
    for cell, part in plain(found).groupby([*_BY, "budget"], sort=False):
        dataset, judging, budget = cell
        texts = []
        for policy in names:
            rows = part[part["policy"] == policy]
            shown = sum(is_shown(row) for _, row in rows.iterrows())
            texts.append(f"{_spread(rows['gain'])} ({shown})")
        yield cell, [_name(dataset, judging), str(budget), *texts]


def _spread(values: pd.Series[float], digits: int = 3) -> str:
    return ", ".join(number(each, digits) for each in (values.min(), values.mean(), values.max()))


def _complete(row: pd.Series[float]) -> str:
    return f"{number(row['complete'])} at {row['calls']:.1f}"


def _gain(row: pd.Series[float]) -> str:
    interval = " to ".join(number(row[name]) for name in ("gain_low", "gain_high"))
    return f"{number(row['gain'])} ({interval}) at {row['calls']:.1f}"


def _name(dataset: str, judging: str) -> str:
    return f"{_TITLES[dataset]}, {judging}"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |")


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "order": order_table,
    "asking": asking_table,
    "seeing": seeing_table,
    "judging": judging_table,
    "stopping": stopping_table,
}


def main() -> None:
    """Print the tables of a folder."""
    folder = Path(sys.argv[1])
    found, rated = (pd.read_csv(folder / f"{name}.csv") for name in ("order", "order-calibration"))
    for make in TABLES.values():
        print(make(found), end="\n\n")
    print(probability_table(rated))


if __name__ == "__main__":
    main()

"""What a page of answers should say, computed from its rows without our statistics."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist, fmean, median, stdev

Row = dict[str, str]
TITLES = {"stage_b_hotpotqa": "HotpotQA", "stage_b_2wiki": "2WikiMultihopQA"}
_ENOUGH = 20
"""Questions that differ, of which the smallest difference that could have been shown is told."""
JUDGE, MATCHED, LINKED = "judge", "naive, as many tokens", "three passages and a link"


def mean(rows: Sequence[Row], column: str, scale: float = 1) -> float:
    return scale * fmean(float(each[column]) for each in rows)


def difference(rows: Sequence[Row], name: str, column: str) -> str:
    """The judge's mean minus another system's, in points, over the questions of both."""
    by_system = {system: [each for each in rows if each["system"] == system] for system in (JUDGE, name)}
    told = round(mean(by_system[JUDGE], column, 100) - mean(by_system[name], column, 100), 1)
    return f"{told + 0.0:+.1f}"


def lines_of(page: str, heads: str) -> dict[str, list[str]]:
    """Cells of the table with these first heads, by the first cell of each line."""
    lines = page.partition(f"| {heads} |")[2].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {first: rest for first, *rest in cells}


def check_told(page: str, rows: Sequence[Row]) -> None:
    """Every mean, count and difference of a whole page is that of its rows."""
    systems = list(dict.fromkeys(each["system"] for each in rows))
    means, sets = lines_of(page, "system | F1 | EM"), lines_of(page, "system | HotpotQA: F1")
    readers = lines_of(page, "system | F1 with all evidence")
    plain = {each["id"]: float(each["evidence"]) for each in rows if each["system"] == "naive, 3 passages"}
    enough = int(sum(plain.values()))
    assert (
        f"| F1 on the {enough} questions that three passages suffice for | on the other {len(plain) - enough} |" in page
    )
    differences = lines_of(page, "in points")
    assert set(means) == set(sets) == set(readers) == {*systems}
    assert set(differences) == {f"judge minus {each}" for each in systems if each != JUDGE}
    for name in systems:
        found = [each for each in rows if each["system"] == name]
        f1, em, cover_em, *others = means[name]
        assert [cell.split()[0] for cell in (f1, em, cover_em)] == [
            f"{mean(found, column, 100):.1f}" for column in ("f1", "em", "cover_em")
        ]
        assert others == [
            str(sum(each["status"] == "refused" for each in found)),
            str(sum(each["status"] not in {"answered", "refused"} for each in found)),
            str(sum(float(each["cut_off"]) > 0 for each in found)),
            str(sum(float(each["evidence"]) == 1 for each in found)),
            f"{mean(found, 'calls'):.1f}",
            f"{mean(found, 'tokens'):,.0f}",
            f"{mean(found, 'written'):,.0f}",
            f"{median(float(each['seconds']) for each in found):.0f}",
        ]
        told = []
        for part in TITLES:
            of = [each for each in found if each["part"] == part]
            whole = sum(float(each["evidence"]) for each in of)
            told += [f"{mean(of, 'f1', 100):.1f}", f"{whole:.0f}", f"{mean(of, 'tokens'):,.0f}"]
        assert sets[name] == told
        told = []
        for is_whole in (1, 0):
            of = [each for each in found if float(each["evidence"]) == is_whole]
            told.append(f"{mean(of, 'f1', 100):.1f} ({len(of)})" if of else "- (0)")
        for is_whole in (1, 0):
            of = [each for each in found if plain[each["id"]] == is_whole]
            told.append(f"{mean(of, 'f1', 100):.1f}" if of else "-")
        assert readers[name] == told
        if name != JUDGE:
            cells = [cell.split()[0] for cell in differences[f"judge minus {name}"]]
            by_set = [difference([e for e in rows if e["part"] == part], name, "f1") for part in TITLES]
            assert cells == [*(difference(rows, name, each) for each in ("f1", "em", "cover_em")), *by_set]
    again = [
        sum(float(each["calls"]) > 2 for each in rows if each["system"] == name)
        for name in ("ircot, 3 rounds", "self-ask, 3 rounds")
    ]
    assert f"Ircot searched again for {again[0]} of {len(plain)} questions;" in page
    rounds = [
        sum(each["system"] == "self-ask, 3 rounds" and float(each["calls"]) == calls for each in rows)
        for calls in (4, 6, 7)
    ]
    assert sum(rounds) == again[1]
    assert "once for {} questions, twice for {} and three times for {}.".format(*rounds) in page
    found = [each for each in rows if each["system"] == "self-ask, 3 rounds" and float(each["cut_off"]) == 0]
    assert f"It wrote {mean(found, 'written'):,.0f} tokens a question without those ({len(plain) - len(found)})" in page
    sentence = page.partition("**Behind judged recursion")[2].partition("<!-- end")[0]
    for name in (JUDGE, MATCHED, LINKED):
        found = [each for each in rows if each["system"] == name]
        assert f" {mean(found, 'f1', 100):.1f}" in sentence
        assert f" {mean(found, 'tokens'):,.0f}" in sentence
    assert f"{difference(rows, MATCHED, 'f1')} (" in sentence or f"{difference(rows, MATCHED, 'f1')} points" in sentence
    f1 = {name: {e["id"]: float(e["f1"]) for e in rows if e["system"] == name} for name in (JUDGE, MATCHED)}
    paired = [f1[JUDGE][each] - f1[MATCHED][each] for each in plain]
    least = 100 * (NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)) * stdev(paired) / len(paired) ** 0.5
    if sum(each != 0 for each in paired) > _ENOUGH:
        assert f"show four times in five is {least:.0f} points." in sentence

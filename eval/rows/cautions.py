"""What bears on every figure of a run: a judge that sees the gold documents, and questions that were chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...graphs.config.variants import read_variant, system_name
from ...graphs.drawing.words import count_of
from ...graphs.systems.registry import judges
from ...modules.judge.gold import SEE_GOLD
from .opponents import opponents_in
from .store import Manifest, RunRow, part_of


def simulated_judge(manifest: Manifest, system: str) -> str:
    """Return the judge of a run's system if it sees the gold documents; ``""`` for any other, and without one."""
    own = manifest.get(f"judge of {system}")
    facts = own if isinstance(own, Mapping) else part_of(manifest, "judge")
    return judge_of(manifest, system) if facts.get("kind") in SEE_GOLD else ""


def judge_of(manifest: Manifest, system: str) -> str:
    """Return the judge of a run's system; ``""`` without one."""
    if not judges(system_name(system)):
        return ""
    own = read_variant(system).options.given.get("judge")
    return str(own or part_of(manifest, "identity").get("judge") or "")


def simulation_words(judge: str) -> str:
    """Say that a judge sees the gold documents, and that its calls are booked but not made."""
    return (
        f"The judge {judge} is simulated: it sees the gold documents, which no judge does. Calls that a model would "
        "make in its place are counted, with estimated tokens."
    )


def gold_words(found: Mapping[str, object]) -> str:
    """Say which gold documents a collection lacks, as ``gold.gold_in`` has counted them; ``""`` for none."""
    documents, missing, example = found.get("documents"), found.get("missing"), found.get("example")
    if not isinstance(documents, int) or not isinstance(missing, int) or not isinstance(example, list) or not missing:
        return ""
    where = f"in the collection by its {found.get('field')}, such as {example[0]!r}"
    if missing == documents:
        return f"None of the {count_of(documents, 'gold document')} is {where}: figures of recall are left out."
    if missing == 1:
        return f"1 of the {documents:,} gold documents is not {where}: recall counts it as not found."
    where = where.replace(" by its ", " by their ", 1)
    return f"{missing:,} of the {documents:,} gold documents are not {where}: recall counts them as not found."


def lacks_all_gold(manifest: Manifest) -> bool:
    """Whether the collection that a run searched has none of its gold documents."""
    found = part_of(manifest, "gold")
    return bool(found.get("missing")) and found.get("missing") == found.get("documents")


def run_cautions(manifest: Manifest, rows: Sequence[RunRow], there: int) -> Iterator[str]:
    """Yield a sentence each on a judge that sees the gold documents, on those that were not searched, and on questions
    that are not the whole set.

    Args:
        manifest: The run's.
        rows: Its rows.
        there: Number of questions in its data set.
    """
    systems, experiment = dict.fromkeys(row.system for row in rows), part_of(manifest, "experiment")
    for judge in dict.fromkeys(filter(None, (simulated_judge(manifest, system) for system in systems))):
        yield simulation_words(judge)
    if said := gold_words(part_of(manifest, "gold")):
        yield said
    yield from (each.words() for each in opponents_in(manifest) if each.system in systems)
    asked = len({row.question_id for row in rows})
    if experiment.get("limit") is not None and asked < there:
        yield (
            f"These are the first {asked:,} of {there:,} questions, which may be of other kinds than the rest; "
            "`--sample` draws them."
        )
    elif experiment.get("sample") is not None and asked < there:
        yield (
            f"These are {asked:,} of {there:,} questions, drawn by seed {experiment.get('seed', 0)}: of each kind its "
            "share."
        )

"""``GET /v1/runs/{run}/questions``: the questions of a run with each system's answers, and one with its gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict

from ....modules.storage.texts import printable
from ..serving.errors import ApiError
from ..serving.segment_route import SegmentRoute
from .folder import RunName, RunsBy
from .plain import plain
from .scored import ScoredRun, scored

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=SegmentRoute)

_ANSWER: JsonDict = {
    "system": "judge",
    "repeat": 0,
    "answer": "40 mm",
    "status": "answered",
    "error": "",
    "em": 1.0,
    "f1": 1.0,
    "failure": None,
    "seconds": 3.2,
    "thread_id": "0b6c1f0e",
}
_QUESTION: JsonDict = {
    "id": "en-2hop-02",
    "question": "How thick is the wall?",
    "type": "bridge",
    "gold": ["40 mm"],
    "answers": [_ANSWER],
}


class RunAnswer(BaseModel):
    """A system's answer to a question."""

    model_config = ConfigDict(json_schema_extra={"example": _ANSWER})

    system: str
    repeat: int
    answer: str
    """Empty if the question failed."""
    status: str
    """``answered``, ``refused`` or ``failed``."""
    error: str
    em: float | None
    """1 if the answer equals a gold answer, else 0; None if the data set has none."""
    f1: float | None
    """Share of common words with the best gold answer, in [0, 1]."""
    failure: str | None
    """Kind of the failure of a wrong answer, as in the report; None for a right one."""
    seconds: float | None
    thread_id: str
    """Name of its search tree in ``/v1/runs/{run}/trees/{thread_id}``."""


class RunQuestion(BaseModel):
    """A question of a run."""

    model_config = ConfigDict(json_schema_extra={"example": _QUESTION})

    id: str
    question: str
    type: str
    gold: list[str]
    """Right answers; empty if the data set has none."""
    answers: list[RunAnswer]


class MarkedQuestion(RunQuestion):
    """A question of a run with the gold in its search trees."""

    model_config = ConfigDict(json_schema_extra={"example": {**_QUESTION, "marks": {"0b6c1f0e": {"kv-133-2": "fact"}}}})

    marks: dict[str, dict[str, Literal["fact", "document"]]]
    """By thread of a query and id of a chunk. ``fact``: the chunk holds a supporting fact, or was labelled 1 or 2 by
    hand. ``document``: it is of a gold document whose facts are unknown. Others are missing."""


class RunQuestions(BaseModel):
    """A page of the questions that fit."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [_QUESTION], "total": 1}})

    data: list[RunQuestion]
    total: int
    """Number of all questions that fit."""


class Wanted(BaseModel):
    """What a question must be; empty texts are fulfilled by all."""

    right: str = ""
    wrong: str = ""
    failure: str = ""


@router.get("/{run}/questions")
async def run_questions(
    run: RunName,
    runs: RunsBy,
    right: Annotated[str, Query(max_length=200, description="System that was right, in every repeat.")] = "",
    wrong: Annotated[str, Query(max_length=200, description="System that was wrong, in some repeat.")] = "",
    failure: Annotated[str, Query(max_length=50, description="Kind of a failure of any system.")] = "",
    limit: Annotated[int, Query(ge=1, le=500, description="Most questions.")] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Questions to leave out first.")] = 0,
) -> RunQuestions:
    """List questions in the order of the data set, such as those that judge had right and naive wrong."""
    both = await scored(runs, run)
    wanted = Wanted(right=right, wrong=wrong, failure=failure)
    found = await runs.work(_chosen, both, wanted)
    page = found[offset : offset + limit]
    return RunQuestions(data=await runs.work(_described, both, page), total=len(found))


@router.get("/{run}/questions/{question:path}")
async def run_question(
    run: RunName,
    question: Annotated[str, Path(min_length=1, max_length=2_000, description="Id of a question of the run.")],
    runs: RunsBy,
) -> MarkedQuestion:
    """Return one question with each system's answer, and the gold marks of the chunks in their search trees."""
    both = await scored(runs, run)
    if question not in {row.question_id for row in both.run.rows}:
        raise ApiError.not_found("question", question)
    (described,) = await runs.work(_described, both, [question])
    return MarkedQuestion(**described.model_dump(), marks=await runs.work(_marks, both, question))


def _marks(both: ScoredRun, question: str) -> dict[str, dict[str, Literal["fact", "document"]]]:
    from ....evaluation.reports.data import gold_marks, needed_passages
    from ....graphs.tree.nodes import walk_chunks

    needed = needed_passages(both.run)
    found: dict[str, dict[str, Literal["fact", "document"]]] = {}
    for row in both.run.rows:
        tree = both.run.trees.read(row.thread_id) if row.question_id == question else None
        if tree is None:
            continue
        marks = gold_marks(tree.root, row, both.run.questions[question], needed)
        for query, chunk in walk_chunks(tree.root):
            if mark := marks[id(chunk)]:
                found.setdefault(printable(query.thread_id), {})[printable(chunk.chunk_id)] = mark
    return found


def _chosen(both: ScoredRun, wanted: Wanted) -> list[str]:
    """Return the ids of the questions that fit, in the order of the data set."""
    from ....evaluation.reports.means import worst_em

    frame = both.report.questions
    worst = worst_em(frame)
    fitting = {str(question) for question in worst.index}
    for system, is_right in ((wanted.right, True), (wanted.wrong, False)):
        if system:
            _check_known("system", system, [str(each) for each in worst.columns])
            em = worst[system]
            fitting &= {str(question) for question in worst.index[(em == 1.0) if is_right else (em < 1.0)]}
    if wanted.failure:
        from ....evaluation.reports.failures import FAILURE_KINDS

        _check_known("failure", wanted.failure, FAILURE_KINDS)
        fitting &= {str(question) for question in frame[frame["failure"] == wanted.failure]["question_id"]}
    return [question.id for question in both.run.dataset.questions if question.id in fitting]


def _check_known(what: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        raise ApiError(400, f"There is no {what} {name!r:.200} in this run. Allowed: {', '.join(allowed)}.", param=what)


def _described(both: ScoredRun, ids: Sequence[str]) -> list[RunQuestion]:
    from ....evaluation.reports.frames import records_of

    frame: pd.DataFrame = both.report.questions
    by_id: dict[str, list[Mapping[str, object]]] = {}
    for record in records_of(frame[frame["question_id"].isin(ids)]):
        by_id.setdefault(str(record["question_id"]), []).append(record)
    questions = both.run.questions
    documents = (
        {
            "id": each,
            "question": questions[each].question,
            "type": questions[each].type,
            "gold": questions[each].answers,
            "answers": [{**record, "answer": record["prediction"]} for record in by_id[each]],
        }
        for each in ids
    )
    return [RunQuestion.model_validate(plain(document)) for document in documents]

"""The page on which a run is labelled, and the documents that it exchanges with its server."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ...evaluation.labels.labelling import Labelling
from ...evaluation.labels.store import MAX_NOTE_BYTES, Label
from ...graphs.drawing.html import Json, html_page, json_in_html
from ...modules.judge.contract import Score
from ...modules.storage.texts import html_text, printable
from .words import SCORE_WORDS, format_reveal


def _number_as_sent(value: object) -> object:
    """Refuse true and 1.0, which would pass as 1."""
    if value is not None and type(value) is not int:
        raise ValueError("a score is 0, 1, 2 or null")
    return value


class GivenLabel(BaseModel):
    """A label as the page sends it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    passage: str = Field(max_length=64)
    score: Annotated[Score | None, BeforeValidator(_number_as_sent)]
    note: str = Field(default="", max_length=MAX_NOTE_BYTES)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)


def draw_page(work: Labelling) -> str:
    """Draw the page; it holds no verdict and no gold of a passage that is not labelled yet."""
    return html_page(
        __package__,
        served=True,
        title=html_text(f"Label {work.folder.name}"),
        run=html_text(work.folder),
        annotator=html_text(work.annotator),
        data=json_in_html(_page_data(work)),
    )


def save_given(work: Labelling, given: GivenLabel) -> Json:
    """Save a label; returns what the page shows for it, and the ids of the remaining passages.

    Raises:
        UserError: The label cannot be saved.
    """
    label = work.save(given.passage, given.score, note=given.note, seconds=given.seconds)
    return {"label": _label_data(work, label), "due": [passage.id for passage in work.due()]}


def _page_data(work: Labelling) -> Json:
    mine = work.mine()
    return {
        "scores": [[key, words] for key, words in SCORE_WORDS.items()],
        "passages": [
            {
                "id": passage.id,
                "question": printable(passage.question) if passage.question != passage.query else "",
                "query": printable(passage.query),
                "source": printable(passage.source),
                "text": printable(passage.text),
                "label": _label_data(work, mine[passage.id]) if passage.id in mine else None,
            }
            for passage in work.passages
        ],
        "due": [passage.id for passage in work.due()],
    }


def _label_data(work: Labelling, label: Label) -> Json:
    return {
        "key": "?" if label.score is None else str(label.score),
        "note": printable(label.note),
        "reveal": format_reveal(work.reveal(label.passage.id)),
    }

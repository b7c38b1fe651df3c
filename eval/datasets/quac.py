"""QuAC (Choi et al. 2018, arXiv:1808.07036), and your own dialogues in a similar layout.

The official file is one JSON object: ``data`` ``[{title, section_title, paragraphs [{id, context, qas}]}]`` with
questions of ``id``, ``question``, ``orig_answer {text}`` and ``answers [{text}]``.

Your own file is JSON Lines (or a JSON list) of turns with these keys:

- ``dialogue_id``, ``turn`` (a number from 1, unique in the dialogue) and ``question`` are required.
- ``id`` defaults to ``<dialogue_id>_<turn>``.
- ``parent`` is the id of the preceding turn, which must have a lower number; ``""`` begins a path; by default the turn
  follows the one with the previous number.
- ``answer`` or ``answers``: the first is the gold answer, the others aliases. "CANNOTANSWER" or an empty list makes the
  question unanswerable; with neither key, the answer is unknown.
- ``rewrite``, ``type``, ``lang``, ``topic_switch``, ``from_history`` are optional.
- ``context`` (a text, with ``title``), ``passages`` ``[{id, title, text}]``, or both are indexed.
- ``supporting`` lists the ids of passages that answer the question; by default the context does.

A row may also be a dialogue: ``id``, ``turns`` (turns without ``dialogue_id``; ``turn`` is optional) and keys that all
turns share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from ...modules.errors import LoadingError
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_regular
from .dialogue_turns import History, in_dialogue_order
from .questions import CorpusDocument, Dataset, DialogueTurn, EvalQuestion
from .rows import (
    DatasetRow,
    Filled,
    PooledRow,
    RowReader,
    Text,
    content_document,
    language_tag,
    parse_json,
    pooled,
    unique_answers,
)

UNANSWERABLE = "CANNOTANSWER"
"""The official answer to a question that cannot be answered."""


def load_quac(path: Path) -> Dataset:
    """Read the questions and pooled passages of an official QuAC file, or of your own dialogues (see the module).

    A question of QuAC is unanswerable if ``orig_answer`` says so; further answers are aliases. The section that it was
    asked about is its supporting document. A malformed entry of ``data`` is left out; so is a dialogue with a malformed
    turn; in a file of turns, so are the turns that follow a malformed one. Your own file is read twice.

    Raises:
        LoadingError: The file cannot be read or has no valid row (QuAC's test split is not public).
    """
    reader = RowReader(file=Path(path))
    articles = _official_data(reader.file)
    rows = list(_official(reader, articles) if articles is not None else _own(reader))
    return pooled("quac", rows, malformed=reader.checked(), order=in_dialogue_order)


class _Answer(DatasetRow):
    text: Filled


class _OfficialQuestion(DatasetRow):
    id: Filled
    question: Filled
    orig_answer: _Answer
    answers: tuple[_Answer, ...] = ()


class _Paragraph(DatasetRow):
    id: Filled
    context: Filled
    qas: tuple[_OfficialQuestion, ...] = Field(min_length=1)


class _Article(DatasetRow):
    title: Text = ""
    section_title: Text = ""
    paragraphs: tuple[_Paragraph, ...] = Field(min_length=1)


class _Passage(DatasetRow):
    id: Text = ""
    title: Text = ""
    text: Filled


class _Turn(DatasetRow):
    id: Text = ""
    dialogue_id: Filled
    turn: int = Field(ge=1)
    parent: Text | None = None
    question: Filled
    answer: Text | None = None
    answers: tuple[Text, ...] | None = None
    rewrite: Text = ""
    type: Text = ""
    lang: Text = ""
    topic_switch: bool | None = None
    from_history: bool | None = None
    title: Text = ""
    context: Text = ""
    passages: tuple[_Passage, ...] = ()
    supporting: tuple[Text, ...] | None = None

    @property
    def key(self) -> str:
        """Id of the question."""
        return self.id or f"{self.dialogue_id}_{self.turn}"

    @property
    def golds(self) -> tuple[str, ...] | None:
        """The answers; empty if the question is unanswerable, None if they are unknown."""
        if self.answers is None and self.answer is None:
            return None
        given = (*((self.answer,) if self.answer is not None else ()), *(self.answers or ()))
        return () if UNANSWERABLE in given[:1] else unique_answers(each for each in given if each != UNANSWERABLE)


def _official_data(file: Path) -> list[object] | None:
    """Read the entries of an official file; None if it is not one, or cannot be read."""
    if file.suffix.lower() != ".json":
        return None
    try:
        content = parse_json(read_regular(file, max_bytes=MAX_DATA_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, LoadingError):  # RowReader reports the fault
        return None
    data = content.get("data") if isinstance(content, dict) else None
    return data if isinstance(data, list) else None


def _official(reader: RowReader, articles: Sequence[object]) -> Iterator[PooledRow]:
    seen: set[str] = set()
    numbered = enumerate(articles, start=1)
    return reader.items(numbered, lambda content: _article(content, seen), key=lambda row: row.questions[0].id)


def _article(content: object, seen: set[str]) -> PooledRow:
    article = _Article.model_validate(content)
    title = ", ".join(part for part in (article.title, article.section_title) if part)
    questions: list[EvalQuestion] = []
    documents: list[CorpusDocument] = []
    for paragraph in article.paragraphs:
        # Every section of QuAC ends with the word, as a span that an answer can point at.
        document = content_document(title, paragraph.context.removesuffix(UNANSWERABLE).rstrip())
        documents.append(document)
        history: History = ()
        for number, asked in enumerate(paragraph.qas, start=1):
            parent = paragraph.qas[number - 2].id if history else ""
            turn = DialogueTurn(dialogue_id=paragraph.id, number=number, parent=parent, history=history)
            questions.append(_official_question(asked, turn, document.key))
            history = (*history, (asked.question, next(iter(questions[-1].answers), "")))
    _check_new_names([question.id for question in questions], seen)
    return PooledRow(questions=tuple(questions), documents=tuple(documents))


def _official_question(asked: _OfficialQuestion, turn: DialogueTurn, section: str) -> EvalQuestion:
    texts = [asked.orig_answer.text, *(answer.text for answer in asked.answers)]
    answers = () if texts[0] == UNANSWERABLE else unique_answers(text for text in texts if text != UNANSWERABLE)
    return EvalQuestion(
        id=asked.id,
        question=asked.question,
        answers=answers,
        type="" if answers else "unanswerable",
        supporting=(section,) if answers else (),
        turn=turn,
    )


@dataclass(frozen=True, kw_only=True)
class _KnownTurns:
    """All turns of a file that are valid by themselves."""

    by_id: Mapping[str, _Turn]
    by_number: Mapping[tuple[str, int], _Turn]

    def before(self, turn: _Turn) -> _Turn | None:
        """Return the predecessor of a turn, which must be an earlier turn of the same dialogue; None without one."""
        if turn.parent == "" or (turn.parent is None and turn.turn == 1):
            return None
        if turn.parent is None:
            found = self.by_number.get((turn.dialogue_id, turn.turn - 1))
        else:
            found = self.by_id.get(turn.parent)
        if found is None:
            raise ValueError(f"parent: {turn.parent or f'turn {turn.turn - 1}'} is missing or malformed")
        if found.dialogue_id != turn.dialogue_id or found.turn >= turn.turn:
            raise ValueError(f"parent: {found.key} is not an earlier turn of the same dialogue")
        return found

    def path_to(self, turn: _Turn) -> list[_Turn]:
        """Return the turns before one, first turn first."""
        path: list[_Turn] = []
        before = self.before(turn)
        while before is not None:
            path.append(before)
            before = self.before(before)
        return path[::-1]


def _own(reader: RowReader) -> Iterator[PooledRow]:
    # Two passes: whether the predecessors of a turn are valid is known only after all rows are read.
    seen: set[str] = set()
    rows = RowReader(file=reader.file).rows(lambda content: _turns(content, seen), key=lambda turns: turns[0].key)
    turns = [turn for row in rows for turn in row]
    known = _KnownTurns(
        by_id={turn.key: turn for turn in turns}, by_number={(turn.dialogue_id, turn.turn): turn for turn in turns}
    )
    again: set[str] = set()
    yield from reader.rows(lambda row: _asked(_turns(row, again), known), key=lambda asked: asked.questions[0].id)


def _turns(content: object, seen: set[str]) -> tuple[_Turn, ...]:
    """Parse the turns of a row, which is one turn or a dialogue; rejects turns that were seen before."""
    turns = tuple(_Turn.model_validate(row) for row in _turn_rows(content))
    for turn in turns:
        passages = {passage.id for passage in turn.passages}
        if strangers := [name for name in turn.supporting or () if name not in passages]:
            raise ValueError(f"supporting: {strangers[0]!r} is not the id of one of its passages")
    _check_new_names([turn.key for turn in turns] + [f"turn {turn.turn} of {turn.dialogue_id}" for turn in turns], seen)
    return turns


def _turn_rows(content: object) -> list[object]:
    if not (isinstance(content, dict) and isinstance(content.get("turns"), list)):
        return [content]
    if not content["turns"]:
        raise ValueError("turns: the list is empty")
    shared = {"dialogue_id": content.get("id"), **content}
    del shared["turns"]
    shared.pop("id", None)
    return [
        {**shared, "turn": place, **turn} if isinstance(turn, dict) else turn
        for place, turn in enumerate(content["turns"], start=1)
    ]


def _check_new_names(names: Sequence[str], seen: set[str]) -> None:
    again = [name for place, name in enumerate(names) if name in seen or name in names[:place]]
    if again:
        raise ValueError(f"{again[0]!r} occurs twice")
    seen.update(names)


def _asked(turns: Iterable[_Turn], known: _KnownTurns) -> PooledRow:
    questions: list[EvalQuestion] = []
    documents: list[CorpusDocument] = []
    for turn in turns:
        context = [content_document(turn.title, turn.context)] if turn.context.strip() else []
        passages = [(passage.id, content_document(passage.title, passage.text)) for passage in turn.passages]
        documents += [*context, *(document for _, document in passages)]
        if turn.supporting is None:
            meant = [] if turn.golds == () else context
        else:
            meant = [document for name, document in passages if name in turn.supporting]
        questions.append(_question(turn, known.path_to(turn), tuple(dict.fromkeys(each.key for each in meant))))
    return PooledRow(questions=tuple(questions), documents=tuple(documents))


def _question(turn: _Turn, path: Sequence[_Turn], supporting: tuple[str, ...]) -> EvalQuestion:
    return EvalQuestion(
        id=turn.key,
        question=turn.question,
        answers=turn.golds or (),
        answers_known=turn.golds is not None,
        lang=turn.lang or language_tag(turn.question),
        type=turn.type or ("unanswerable" if turn.golds == () else ""),
        supporting=supporting,
        turn=DialogueTurn(
            dialogue_id=turn.dialogue_id,
            number=turn.turn,
            parent=path[-1].key if path else "",
            history=tuple((before.question, next(iter(before.golds or ()), "")) for before in path),
            rewrite=turn.rewrite.strip(),
            topic_switch=turn.topic_switch,
            from_history=turn.from_history,
        ),
    )

"""QuAC (Choi et al. 2018, arXiv:1808.07036), and dialogues of one's own in a layout like it.

The official file is one JSON object: ``data`` ``[{title, section_title, paragraphs [{id, context, qas}]}]``, a question
being ``id``, ``question``, ``orig_answer {text}`` and ``answers [{text}]``.

One's own are JSON Lines (or a JSON list) of turns:

- ``dialogue_id``, ``turn`` (a number from 1 on, its own within the dialogue) and ``question`` are needed;
- ``id``, else it is ``<dialogue_id>_<turn>``;
- ``parent``, the id of the turn that it follows, which must have a lower number; ``""`` begins a path; without it, the
  turn follows the one with the number before;
- ``answer`` or ``answers`` (the first is the gold answer, the others aliases); "CANNOTANSWER", or an empty list, makes
  the question unanswerable; with neither, the answer is not known;
- ``rewrite``, ``type``, ``lang``, ``topic_switch``, ``from_history``;
- ``context`` (a text, with ``title``), ``passages`` ``[{id, title, text}]``, or both: what is indexed;
- ``supporting``, ids of its passages that answer it; without it, the context does.

or of dialogues: ``id``, ``turns`` (as above, without ``dialogue_id``; ``turn`` may be left out) and whatever all turns
share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from .dialogue_turns import History, in_dialogue_order
from .questions import CorpusDocument, Dataset, DialogueTurn, EvalQuestion
from .rows import (
    DatasetRow,
    Filled,
    RowReader,
    Text,
    content_document,
    explain,
    language_tag,
    parse_json,
    unique_answers,
    with_digests,
)

UNANSWERABLE = "CANNOTANSWER"
"""Stands for the answer to a question that cannot be answered."""


def load_quac(path: Path) -> Dataset:
    """Questions and pooled passages of an official QuAC file, or of one's own dialogues (see the module).

    A question of QuAC is unanswerable if the one who answered it in the dialogue said so; the answers of others are
    aliases. The section that it is asked of is its supporting document. Rows of an official file are the entries of
    ``data``; in a file of dialogues, a dialogue with a malformed turn is left out whole; in a file of turns, so are
    those that follow a malformed one. A file of one's own is read twice.

    Raises:
        LoadingError: The file cannot be read or has no good row (QuAC's test split is not public).
    """
    reader = RowReader(file=Path(path))
    articles = _official_data(reader.file)
    dialogues = list(_official(reader, articles) if articles is not None else _own(reader))
    pool = {document.key: document for dialogue in dialogues for document in dialogue.documents}
    return with_digests(
        Dataset(
            name="quac",
            questions=in_dialogue_order(question for dialogue in dialogues for question in dialogue.questions),
            documents=tuple(pool.values()),
            malformed=reader.checked(),
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What a row gives: questions, and the passages that it brings into the corpus."""

    questions: tuple[EvalQuestion, ...]
    documents: tuple[CorpusDocument, ...]


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
        """The answers; none where it cannot be answered, None where they are not known."""
        if self.answers is None and self.answer is None:
            return None
        given = (*((self.answer,) if self.answer is not None else ()), *(self.answers or ()))
        return () if UNANSWERABLE in given[:1] else unique_answers(each for each in given if each != UNANSWERABLE)


def _official_data(file: Path) -> list[object] | None:
    """The entries of an official file; None if it is not one, or cannot be read."""
    if file.suffix.lower() != ".json":
        return None
    try:
        content = parse_json(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):  # the reader will say what is wrong
        return None
    data = content.get("data") if isinstance(content, dict) else None
    return data if isinstance(data, list) else None


def _official(reader: RowReader, articles: Sequence[object]) -> Iterator[_Asked]:
    seen: set[str] = set()
    for number, content in enumerate(articles, start=1):
        try:
            asked = _article(_Article.model_validate(content))
            _refuse_known([question.id for question in asked.questions], seen)
        except ValueError as error:
            reader.malformed.append((number, explain(error)))
            continue
        reader.accepted += 1
        yield asked


def _article(article: _Article) -> _Asked:
    title = ", ".join(part for part in (article.title, article.section_title) if part)
    questions: list[EvalQuestion] = []
    documents: list[CorpusDocument] = []
    for paragraph in article.paragraphs:
        # The word stands at the end of every section, so that it can be pointed at like an answer.
        document = content_document(title, paragraph.context.removesuffix(UNANSWERABLE).rstrip())
        documents.append(document)
        history: History = ()
        for number, asked in enumerate(paragraph.qas, start=1):
            parent = paragraph.qas[number - 2].id if history else ""
            turn = DialogueTurn(dialogue_id=paragraph.id, number=number, parent=parent, history=history)
            questions.append(_official_question(asked, turn, document.key))
            history = (*history, (asked.question, next(iter(questions[-1].answers), "")))
    return _Asked(questions=tuple(questions), documents=tuple(documents))


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
    """All turns of a file that are good by themselves."""

    by_id: Mapping[str, _Turn]
    by_number: Mapping[tuple[str, int], _Turn]

    def before(self, turn: _Turn) -> _Turn | None:
        """The turn that one follows; None for the first of a path.

        Raises:
            ValueError: It is not there, or is none that one can follow.
        """
        if turn.parent == "" or (turn.parent is None and turn.turn == 1):
            return None
        if turn.parent is None:
            found = self.by_number.get((turn.dialogue_id, turn.turn - 1))
        else:
            found = self.by_id.get(turn.parent)
        if found is None:
            raise ValueError(f"parent: {turn.parent or f'turn {turn.turn - 1}'} is not there, or is malformed")
        if found.dialogue_id != turn.dialogue_id or found.turn >= turn.turn:
            raise ValueError(f"parent: {found.key} is no earlier turn of the same dialogue")
        return found

    def path_to(self, turn: _Turn) -> list[_Turn]:
        """The turns before one, the first one first.

        Raises:
            ValueError: One of them is not there, or is none that the next can follow.
        """
        path: list[_Turn] = []
        before = self.before(turn)
        while before is not None:
            path.append(before)
            before = self.before(before)
        return path[::-1]


def _own(reader: RowReader) -> Iterator[_Asked]:
    # Whether the turns before one are there is known only when all are read.
    seen: set[str] = set()
    rows = RowReader(file=reader.file).rows(lambda content: _turns(content, seen), key=lambda turns: turns[0].key)
    turns = [turn for row in rows for turn in row]
    known = _KnownTurns(
        by_id={turn.key: turn for turn in turns}, by_number={(turn.dialogue_id, turn.turn): turn for turn in turns}
    )
    again: set[str] = set()
    yield from reader.rows(lambda row: _asked(_turns(row, again), known), key=lambda asked: asked.questions[0].id)


def _turns(content: object, seen: set[str]) -> tuple[_Turn, ...]:
    """The turns of a row, be it one or a dialogue; refuses those that were seen before."""
    turns = tuple(_Turn.model_validate(row) for row in _turn_rows(content))
    for turn in turns:
        passages = {passage.id for passage in turn.passages}
        if strangers := [name for name in turn.supporting or () if name not in passages]:
            raise ValueError(f"supporting: {strangers[0]!r} is no id of its passages")
    _refuse_known([turn.key for turn in turns] + [f"turn {turn.turn} of {turn.dialogue_id}" for turn in turns], seen)
    return turns


def _turn_rows(content: object) -> list[object]:
    if not (isinstance(content, dict) and isinstance(content.get("turns"), list)):
        return [content]
    if not content["turns"]:
        raise ValueError("turns: there is none")
    shared = {"dialogue_id": content.get("id"), **content}
    del shared["turns"]
    shared.pop("id", None)
    return [
        {**shared, "turn": place, **turn} if isinstance(turn, dict) else turn
        for place, turn in enumerate(content["turns"], start=1)
    ]


def _refuse_known(names: Sequence[str], seen: set[str]) -> None:
    again = [name for place, name in enumerate(names) if name in seen or name in names[:place]]
    if again:
        raise ValueError(f"{again[0]!r} was there already")
    seen.update(names)


def _asked(turns: Iterable[_Turn], known: _KnownTurns) -> _Asked:
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
    return _Asked(questions=tuple(questions), documents=tuple(documents))


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

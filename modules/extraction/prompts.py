"""The prompt that asks a model for the triples of a passage, and the parser of its reply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from ..calls.messages import Message, version_of
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, PromptGroup, Prompts
from ..formats import printable
from ..llm.json_reply import parse_json_reply
from ..reader.evidence import as_material
from ..structure.triples import Triple

MOST_TRIPLES = 20
"""Most triples that are kept of a passage."""
MOST_REPLY_TOKENS = 1_500
MOST_LETTERS = 150
"""Most characters of a subject, relation or object; a longer one is a sentence."""
_VERSION = "1"
"""Of the parser: a higher one has every passage asked for anew."""

TRIPLES = Prompt(
    name="triples",
    about="index --graph triples: facts of a passage; JSON with triples, each a list of subject, relation and object",
    system=f"""\
You list the facts that a passage states, as triples of subject, relation and object.
- subject, object: names, terms, numbers or dates, as the passage writes them, at most 10 words. Write the name in place
  of a pronoun.
- relation: a few words that join them, such as "was born in".
- Take facts about named things first. At most {MOST_TRIPLES} triples, an empty list if the passage states no fact.
Write in the language of the passage.

Reply with one JSON object and nothing else: {{"triples": [[subject, relation, object], ...]}}.""",
    user="Passage:\n{passage}",
    is_json=True,
)
EXTRACTION = PromptGroup(prompts=(TRIPLES,), version=version_of(TRIPLES.version, _VERSION))

TRIPLES_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "triples": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3},
            "maxItems": MOST_TRIPLES,
        }
    },
    "required": ["triples"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The triples of one passage."""

    triples: tuple[Triple, ...]
    """In the order of the reply, each once; at most ``MOST_TRIPLES``."""
    dropped: int
    """Entries of the reply that were left out: malformed, too long, repeated, or too many."""


class _Reply(BaseModel):
    triples: list[object]


def triples_messages(text: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Return the messages that ask for the triples of a passage."""
    return prompts.messages(TRIPLES, passage=as_material(text))


def parse_triples(reply: str, *, cut_off: bool = False) -> Extracted:
    """Parse the triples in a reply; what is no usable triple is dropped, and of a ``cut_off`` reply the last one.

    >>> parse_triples('{"triples": [["Ada", "born in", "Oslo"], ["Ada", "is"]]}')
    Extracted(triples=(Triple(subject='Ada', relation='born in', object='Oslo'),), dropped=1)

    Raises:
        ReplyProblem: The reply holds no JSON object with a list of triples.
    """
    entries = parse_json_reply(reply, _Reply).triples
    triples = list(dict.fromkeys(_usable(entries[:-1] if cut_off else entries)))[:MOST_TRIPLES]
    return Extracted(triples=tuple(triples), dropped=len(entries) - len(triples))


def _usable(entries: list[object]) -> Iterator[Triple]:
    for entry in entries:
        parts = _parts(entry)
        texts = [" ".join(printable(str(part)).split()) for part in parts if isinstance(part, str | int | float)]
        if len(texts) != 3 or not all(0 < len(text) <= MOST_LETTERS for text in texts):
            continue
        triple = Triple(*texts)
        if triple.subject.casefold() != triple.object.casefold():
            yield triple


def _parts(entry: object) -> list[object]:
    """Return the parts of a list, or of an object with the keys that models use."""
    if isinstance(entry, dict):
        relation = entry.get("relation", entry.get("predicate"))
        return [entry.get("subject"), relation, entry.get("object")]
    return entry if isinstance(entry, list) else []

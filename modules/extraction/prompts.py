"""The prompt that asks a model for the triples of a passage; ``replies`` parses what it answers."""

from __future__ import annotations

from ..calls.messages import Message, version_of
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, PromptGroup, Prompts
from ..reader.evidence import as_material

MOST_TRIPLES = 20
"""Most triples that are kept of a passage."""
MOST_REPLY_TOKENS = 1_500
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


def triples_messages(text: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Return the messages that ask for the triples of a passage."""
    return prompts.messages(TRIPLES, passage=as_material(text))

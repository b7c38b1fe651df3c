"""The graph of entities: passages and the names in them, made without a model.

A passage has an edge ``mentions`` to each phrase that it names, its own title among them; the weight is how often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .passage_graph import Edges, PassageGraph
from .passages import Passage
from .phrases import phrase_of, phrases_in
from .titles import TitleFinder, documents_of, names_of

KIND = "entities"
MENTIONS = "mentions"
"""Type of the edges."""
MOST_SHARE = 0.05
MOST_AT_LEAST = 20
"""A phrase of more than 5 % of the passages, and of more than 20, is left out: it tells next to nothing."""
_VERSION = 3


def entity_graph(passages: Iterable[Passage], content: str) -> PassageGraph:
    """Join passages with the phrases in them; ``content`` is the collection's content digest.

    The phrases are titles of documents, where a text names them, and ``phrases_in`` the text. A single word that stands
    at the start of a sentence counts if it is a name elsewhere.
    """
    given = sorted(passages, key=lambda each: each.chunk_id)
    titles = _titles(given)
    finder = TitleFinder(name for names in titles.values() for name in names)
    found = [_phrases(each, finder, titles.get(each.chunk_id, ())) for each in given]
    sure = {phrase for names, _ in found for phrase in names}
    mentioned = [names + Counter({p: n for p, n in unsure.items() if p in sure}) for names, unsure in found]
    most = max(MOST_AT_LEAST, int(MOST_SHARE * len(given)))
    passages_of = Counter(phrase for names in mentioned for phrase in names)
    phrases = sorted(phrase for phrase, count in passages_of.items() if count <= most)
    number = {phrase: node for node, phrase in enumerate(phrases, start=len(given))}
    return PassageGraph(
        kind=KIND,
        content=content,
        passages=[each.chunk_id for each in given],
        phrases=phrases,
        edges={MENTIONS: Edges.counted(mentioned, number)},
        made_with={"version": _VERSION, "too_common": len(passages_of) - len(phrases)},
    )


def _titles(passages: Iterable[Passage]) -> dict[str, list[str]]:
    """Return the names of each chunk's document."""
    return {
        chunk_id: names_of(document.title) for document in documents_of(passages) for chunk_id in document.chunk_ids
    }


def _phrases(passage: Passage, finder: TitleFinder, titles: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count the sure and the unsure phrases of a passage."""
    sure = Counter(map(phrase_of, titles))
    unsure: Counter[str] = Counter()
    named = Counter(phrase_of(names[0]) for names in finder.mentions_in(passage.text))
    for phrase, is_sure in phrases_in(passage.text):
        (sure if is_sure else unsure)[phrase] += 1
    sure += Counter({phrase: count for phrase, count in named.items() if phrase not in sure})
    sure.pop("", None)
    return sure, unsure - Counter(dict.fromkeys(sure, len(passage.text)))

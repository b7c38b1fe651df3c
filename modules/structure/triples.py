"""The graph of triples: what passages state, as subjects, relations and objects that a model drew from them.

A passage has an edge ``subject`` to each subject of its triples and an edge ``object`` to each object, and a subject an
edge ``related`` to its object. All three are labelled with the relation, so that the passages of a relation are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .passage_graph import Edges, PassageGraph
from .passages import Passage
from .phrases import phrase_of

KIND = "triples"
SUBJECT, OBJECT, RELATED = "subject", "object", "related"
"""Types of edges."""
_VERSION = 1


class Triple(NamedTuple):
    """One fact of a passage.

    >>> Triple("Ada Korm", "was born in", "Oslo").object
    'Oslo'
    """

    subject: str
    relation: str
    object: str


class _Fact(NamedTuple):
    passage: int
    subject: str
    relation: str
    object: str


def triple_graph(
    passages: Iterable[Passage], content: str, triples: Mapping[str, Sequence[Triple]], made_by: str
) -> PassageGraph:
    """Join passages with the subjects and objects of their triples, and these with each other.

    Args:
        passages: All passages of the collection.
        content: Its content digest.
        triples: By chunk id; a passage without any has no edges. Phrases that differ in case or punctuation are one.
        made_by: What the triples depend on, such as a digest of model and prompt.
    """
    given = sorted(each.chunk_id for each in passages)
    facts = [fact for node, chunk_id in enumerate(given) for fact in _facts(node, triples.get(chunk_id, ()))]
    phrases = sorted({phrase for fact in facts for phrase in (fact.subject, fact.object)})
    relations = sorted({fact.relation for fact in facts})
    number = {phrase: node for node, phrase in enumerate(phrases, start=len(given))}
    label = {relation: place for place, relation in enumerate(relations)}
    return PassageGraph(
        kind=KIND,
        content=content,
        passages=given,
        phrases=phrases,
        relations=relations,
        edges={
            SUBJECT: Edges.labelled((each.passage, number[each.subject], label[each.relation], 1.0) for each in facts),
            OBJECT: Edges.labelled((each.passage, number[each.object], label[each.relation], 1.0) for each in facts),
            RELATED: Edges.labelled(
                (number[each.subject], number[each.object], label[each.relation], 1.0) for each in facts
            ),
        },
        made_with={
            "version": _VERSION,
            "made_by": made_by,
            "without_triples": sum(chunk_id not in triples for chunk_id in given),
        },
    )


def _facts(passage: int, triples: Iterable[Triple]) -> Iterator[_Fact]:
    for triple in triples:
        subject, object_ = phrase_of(triple.subject), phrase_of(triple.object)
        if subject and object_ and subject != object_:
            yield _Fact(passage, subject, triple.relation, object_)

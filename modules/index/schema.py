"""The schema of a collection in Milvus, and its stored description.

A collection is a name (a Milvus alias) that points to a physical collection ``name__xxxxxxxx``. A rewrite fills a new
physical collection and then moves the name in one step, so that an interrupted rewrite loses nothing.

BM25 ignores stop words: Milvus Lite would scan nearly all chunks for each of them, and gives a word in more than half
of the chunks a negative weight.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import CollectionError, SettingsError
from ..language.search_form import SearchForm
from ..settings import Settings, load_settings
from ..storage.formats import FORMAT_KEY, Thing, check_format, format_of
from .chunking import CHUNK_OVERLAP, CHUNK_SIZE, MAX_TEXT_BYTES
from .connection import is_lite

if TYPE_CHECKING:
    from pymilvus import MilvusClient
    from pymilvus.milvus_client.index import IndexParams as MilvusIndexParams

_ENGLISH = """
a an the and or but if of in on at by to for from with as into than then that this these those there here
is are was were be been being am do does did has have had can could may might must shall should will would
it its he him his she her hers they them their we us our you your i me my
what which who whom whose when where why how not no nor so such also both each more most other some
"""
_CHINESE = "的 了 是 在 和 与 及 或 也 就 都 而 被 把 对 从 到 于 以 之 其 这 那 有 为 个 他 她 它 我 你 们 什么"

STOP_WORDS = (*_ENGLISH.split(), *_CHINESE.split())


PROPERTY = "judgetree"
REVISION = "judgetree_revision"
PK_FIELD = "pk"
TEXT_FIELD = "text"
SEARCH_FIELD = "search_text"
"""What BM25 counts of the text, in a collection whose ``search_form`` is folded."""
DENSE_FIELD = "dense"
SPARSE_FIELD = "sparse"

IndexValue = str | int | float
IndexParams = Mapping[str, "IndexValue | Mapping[str, IndexValue]"]
"""``{"index_type": …, "metric_type": …, "params": {…}}`` of one vector field."""
Analyzer = Literal["standard", "jieba"]

DENSE_INDEX: IndexParams = {"index_type": "HNSW", "metric_type": "COSINE", "params": {"M": 16, "efConstruction": 200}}
SPARSE_INDEX: IndexParams = {"index_type": "SPARSE_INVERTED_INDEX", "metric_type": "BM25"}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_PHYSICAL = re.compile(r"(?P<name>.+)__[0-9a-f]{8}")
_LOCK = re.compile(r"(?P<name>.+)__lock(_(?P<number>[1-9][0-9]*))?")


@dataclass(frozen=True, kw_only=True)
class CollectionInfo:
    """The description of a collection, which is stored in Milvus."""

    embedders: Mapping[str, str]
    """Names of the embedders by vector field, in the order of the fields."""
    dimensions: Mapping[str, int]
    """Lengths of vectors by vector field."""
    analyzer: Analyzer
    cjk_share: float
    """Share of Chinese, Japanese and Korean letters, in [0, 1], when the collection was made."""
    chunk_size: int = CHUNK_SIZE
    chunk_overlap: int = CHUNK_OVERLAP
    index_params: Mapping[str, IndexParams] = field(default_factory=dict)
    """Index type, metric and parameters by vector field, if not the default."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Folders by the prefix of their sources (``""`` for the first folder)."""
    search_form: SearchForm = "written"
    """How texts are held for search: in ``SEARCH_FIELD`` and folded, or in older collections as they are written."""

    told_scripts: Sequence[str] = ()
    """Scripts of which was told that the embedder does not know them, sorted."""

    @property
    def words_field(self) -> str:
        """The field that BM25 reads."""
        return SEARCH_FIELD if self.search_form == "folded" else TEXT_FIELD

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The fields of texts, that of the text first."""
        return tuple(dict.fromkeys((TEXT_FIELD, self.words_field)))

    def to_json(self, thing: Thing = "collection") -> str:
        """Return the description as JSON, with its format."""
        kept = asdict(self)
        # Versions that do not know these can read a collection without them.
        if self.search_form == "written":
            del kept["search_form"]
        if not self.told_scripts:
            del kept["told_scripts"]
        return json.dumps({FORMAT_KEY: format_of(thing), PROPERTY: kept})

    @classmethod
    def from_json(cls, description: str, thing: Thing = "collection", *, where: str) -> CollectionInfo | None:
        """Parse the description of the collection ``where``; None if judgetree did not write it.

        Raises:
            CollectionError: The description has another format.
        """
        try:
            document = json.loads(description)
            kept = dict(document[PROPERTY])
        except (ValueError, KeyError, TypeError):
            return None
        remedy = "Choose another name for the collection, and put its content in again under that name."
        check_format(document.get(FORMAT_KEY), thing, where=where, remedy=remedy, error=CollectionError)
        try:
            return cls(**kept)
        except TypeError:
            return None


def check_name(name: str) -> None:
    """Refuse a collection name that Milvus does not allow or that looks like a physical one.

    Raises:
        CollectionError: The name is not allowed.
    """
    if not _NAME.fullmatch(name) or _PHYSICAL.fullmatch(name) or _LOCK.fullmatch(name):
        raise CollectionError(
            f"{name[:60]!r} cannot be a collection's name. Allowed: letters, digits and underscores, a letter or "
            "underscore first, at most 200; not ending in two underscores and eight hexadecimal digits, nor in __lock."
        )


def check_documents_name(name: str, settings: Settings | None = None) -> None:
    """Check that a collection of documents can have a name, as ``check_name`` and ``check_not_reserved`` do.

    Raises:
        CollectionError: The name is not allowed.
    """
    check_name(name)
    check_not_reserved(name, settings)


def check_not_reserved(name: str, settings: Settings | None = None) -> None:
    """Refuse the names of the conversations' memory: the default one, and that of the settings.

    Whatever takes the name of a collection of documents calls this first. None takes the settings of the environment,
    as far as they can be read.

    Raises:
        CollectionError: The name is one of them; the message says what to do with documents that have it.
    """
    field = "conversation_collection"
    taken = {Settings.model_fields[field].default}
    with suppress(SettingsError):
        taken.add(getattr(settings or load_settings(), field))
    if name in taken:
        raise CollectionError(
            f"{name!r} is the name of the collection that remembers conversations (JUDGETREE_{field.upper()}). Choose "
            "another name for documents. Documents that it holds from before stay, under another name: "
            f"judgetree collections --rename {name} NEW"
        )


def new_physical_name(name: str) -> str:
    """Return a fresh name for a physical collection behind ``name``."""
    return f"{name}__{uuid.uuid4().hex[:8]}"


def physical_name(client: MilvusClient, name: str) -> str | None:
    """Return the physical collection that a name points to; None when there is no such collection."""
    return str(client.describe_collection(name)["collection_name"]) if client.has_collection(name) else None


def primary_key(described: Mapping[str, Any]) -> tuple[str, str | int]:
    """Return the name of the primary key of a described collection, and a value before all of its values."""
    key = next(field for field in described["fields"] if field.get("is_primary"))
    return str(key["name"]), -(2**63) if key["type"].name.startswith("INT") else ""


def lock_alias(name: str, number: int) -> str:
    """Return the alias of a writer's lock on a collection."""
    return f"{name}__lock_{number}"


def lock_number(alias: str, name: str) -> int | None:
    """Return the number of a lock's alias; None for any other alias."""
    match = _LOCK.fullmatch(alias)
    return int(match["number"]) if match and match["name"] == name and match["number"] else None


def new_lock_name(name: str) -> str:
    """Return a fresh name for the collection behind a lock's alias."""
    return new_physical_name(f"{name}__lock")


def lock_collections(client: MilvusClient, name: str) -> list[str]:
    """Return the collections of locks, with or without an alias."""
    return physical_of(client.list_collections(), f"{name}__lock")


def revision(client: MilvusClient, name: str) -> str:
    """Return a text that changes with every write to a collection, at the cost of one request.

    Raises:
        CollectionError: The collection does not exist.
    """
    described = client.describe_collection(name)
    return f"{described['collection_name']} {(described.get('properties') or {}).get(REVISION, '')}"


def physical_of(collections: Iterable[str], name: str) -> list[str]:
    """Return those of the physical collections that are called like ones behind ``name``, in order."""
    matches = ((physical, _PHYSICAL.fullmatch(physical)) for physical in collections)
    return [physical for physical, match in matches if match and match["name"] == name]


def list_collections(client: MilvusClient) -> list[str]:
    """Return the names of the collections, sorted, without leftovers of interrupted rewrites."""
    names: set[str] = set()
    for physical in client.list_collections():
        aliases = client.list_aliases(collection_name=physical)["aliases"]
        aliases = [alias for alias in aliases if not _LOCK.fullmatch(alias)]
        names.update(aliases if aliases or _PHYSICAL.fullmatch(physical) else [physical])
    return sorted(names)


def leftovers(client: MilvusClient, name: str) -> list[str]:
    """Return the physical collections of a name to which no name points, left by interrupted rewrites."""
    made = physical_of(client.list_collections(), name)
    return [physical for physical in made if not client.list_aliases(collection_name=physical)["aliases"]]


def read_collection_info(client: MilvusClient, name: str) -> CollectionInfo:
    """Return the description of a collection.

    Raises:
        CollectionError: The collection does not exist (the message lists the others), or is not judgetree's.
    """
    if not client.has_collection(name):
        there = ", ".join(list_collections(client)) or "none yet"
        raise CollectionError(f"There is no collection {name!r}. Collections: {there}. Index documents into it first.")
    info = described_info(client.describe_collection(name), name)
    if info is None:
        raise CollectionError(f"The collection {name!r} was not made by judgetree. Choose another name.")
    return info


def described_info(described: Mapping[str, Any], name: str) -> CollectionInfo | None:
    """Return the description of a collection as Milvus describes it; None if judgetree did not make it.

    Raises:
        CollectionError: The description has another format.
    """
    # Properties are updated with every change; Milvus Lite drops the description.
    texts = ((described.get("properties") or {}).get(PROPERTY), described.get("description"))
    where = f"The collection {name!r}"
    return next((found for text in texts if text and (found := CollectionInfo.from_json(str(text), where=where))), None)


def rename_collection(client: MilvusClient, old: str, new: str) -> None:
    """Give a collection of documents another name; its content stays in place, and under both names if interrupted.

    Raises:
        CollectionError: The collection does not exist or is not judgetree's, or the new name is taken.
    """
    read_collection_info(client, old)
    if client.has_collection(new):
        raise CollectionError(f"There is a collection {new!r} already. Choose another name.")
    client.create_alias(physical_name(client, old), new)
    client.drop_alias(old)


def create_physical(client: MilvusClient, physical: str, info: CollectionInfo) -> None:
    """Create an empty, loaded collection with the fields of ``info`` and an index on each vector field.

    Raises:
        CollectionError: ``info.index_params`` names an unknown field.
    """
    from pymilvus import DataType, Function, FunctionType  # noqa: PLC0415 - takes a second to import

    schema = client.create_schema(auto_id=False, enable_dynamic_field=True, description=info.to_json())
    schema.add_field(PK_FIELD, DataType.VARCHAR, is_primary=True, max_length=64)
    for text_field in info.text_fields:
        analyzed = {"enable_analyzer": True, "analyzer_params": analyzer_params(info.analyzer)}
        options = analyzed if text_field == info.words_field else {}
        schema.add_field(text_field, DataType.VARCHAR, max_length=MAX_TEXT_BYTES, **options)
    for vector_field, dimension in info.dimensions.items():
        schema.add_field(vector_field, DataType.FLOAT_VECTOR, dim=dimension)
    schema.add_field(SPARSE_FIELD, DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(
            name="bm25",
            function_type=FunctionType.BM25,
            input_field_names=[info.words_field],
            output_field_names=[SPARSE_FIELD],
        )
    )
    properties = {PROPERTY: info.to_json()}
    client.create_collection(physical, schema=schema, properties=properties, consistency_level="Strong")
    # pymilvus would wait half a second a field for the index of an empty collection.
    client.create_index(physical, prepared_indexes(client, all_index_params(info)), sync=False)
    client.load_collection(physical)


def prepared_indexes(client: MilvusClient, params: Mapping[str, IndexParams]) -> MilvusIndexParams:
    """Return index parameters by vector field as ``create_index`` takes them."""
    indexes = client.prepare_index_params()
    for vector_field, given in params.items():
        sent: dict[str, object] = dict(given)
        inner = given.get("params")
        if isinstance(inner, Mapping) and is_lite(client):  # pymilvus sends one by one what Lite reads in one
            sent["params"] = {**inner, "params": dict(inner)}
        indexes.add_index(field_name=vector_field, **sent)
    return indexes


def analyzer_params(analyzer: Analyzer) -> dict[str, object]:
    """Return the parameters of the analyzer for BM25: lower case, without stop words."""
    # Lite always lowers the case, and ignores unknown filters.
    return {"tokenizer": analyzer, "filter": ["lowercase", {"type": "stop", "stop_words": list(STOP_WORDS)}]}


def all_index_params(info: CollectionInfo, fields: Iterable[str] = ()) -> dict[str, IndexParams]:
    """Return the index parameters of all vector fields, in order: their own, else the default.

    Raises:
        CollectionError: ``info.index_params`` or ``fields`` name an unknown field.
    """
    defaults = {**dict.fromkeys(info.dimensions, DENSE_INDEX), SPARSE_FIELD: SPARSE_INDEX}
    unknown = sorted({*info.index_params, *fields} - defaults.keys())
    if unknown:
        raise CollectionError(f"There is no vector field {', '.join(unknown)}. Vector fields: {', '.join(defaults)}.")
    return {vector_field: info.index_params.get(vector_field, default) for vector_field, default in defaults.items()}

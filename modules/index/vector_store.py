"""The collection as LangChain sees it."""

from __future__ import annotations

from langchain_milvus import BM25BuiltInFunction, Milvus

from .connection import MilvusConnection, client_arguments
from .dense_fields import Embedders
from .schema import PK_FIELD, SPARSE_FIELD, TEXT_FIELD, CollectionInfo


class _MilvusStore(Milvus):
    """langchain-milvus 0.4.0 adds the BM25 field to its own list of fields at every search, which breaks the second."""

    def _remove_forbidden_fields(self, fields: list[str]) -> list[str]:
        return [field for field in fields if field not in self.vector_fields]


def open_vector_store(connection: MilvusConnection, name: str, info: CollectionInfo, embedders: Embedders) -> Milvus:
    """Open an existing collection; its vector fields are the dense ones in order, then the sparse one."""
    client = connection.client
    fields = [*info.embedders, SPARSE_FIELD]
    indexes = [client.describe_index(name, field) for field in fields]
    params = [{"index_type": index["index_type"], "metric_type": index["metric_type"]} for index in indexes]
    return _MilvusStore(
        embedding_function=[embedders[field] for field in info.embedders],
        builtin_function=BM25BuiltInFunction(input_field_names=TEXT_FIELD, output_field_names=SPARSE_FIELD),
        vector_field=fields,
        primary_field=PK_FIELD,
        text_field=TEXT_FIELD,
        collection_name=name,
        connection_args=dict(client_arguments(connection.uri, connection.token)),
        # Both spelled out: langchain-milvus's own defaults are refused by Milvus Lite.
        index_params=params,
        search_params=[{"metric_type": index["metric_type"]} for index in indexes],
        consistency_level="Strong",
        enable_dynamic_field=True,
    )

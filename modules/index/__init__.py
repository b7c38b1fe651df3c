"""Indexing of files as chunks in a collection of Milvus."""

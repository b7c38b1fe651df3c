"""Retrieval of chunks for a query: search, fusion, reranking, and web search."""

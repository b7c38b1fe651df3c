"""Chunks for a query: search, fusion, reranking, and the web."""

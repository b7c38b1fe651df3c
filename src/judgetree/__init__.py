"""Recursive RAG with a judge."""

"""Embedders of texts, and caches of their vectors."""

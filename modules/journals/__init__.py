"""Journals of model calls: in SQL and in Redis."""

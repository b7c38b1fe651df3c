"""Locks by name, in memory, as files, in PostgreSQL and in Redis."""

"""Locks by name, in memory, as files and in PostgreSQL."""

"""LangGraph savers whose newest checkpoint is the one that was saved last: SQLite, PostgreSQL, memory."""

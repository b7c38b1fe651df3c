"""Where transcripts of model calls are kept: in SQL and in Redis."""

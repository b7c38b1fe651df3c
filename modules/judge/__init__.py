"""Verdicts on chunks: 0, 1 or 2, and the question that is still open."""

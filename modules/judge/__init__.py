"""Judges of chunks: a score of 0, 1 or 2, and a sub-question for the missing fact."""

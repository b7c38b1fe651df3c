"""Answers from evidence: prompts, strategies, and foreign text in prompts."""

"""The reader, which answers from evidence: prompts, strategies, and foreign text in prompts."""

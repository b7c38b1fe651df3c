"""The configuration of a question: groups of keys of the search, and their sum with those of ``modules.config``."""

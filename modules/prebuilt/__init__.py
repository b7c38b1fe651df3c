"""Indexes that others have built: a corpus file with a faiss index, a ``bm25s`` index, or both."""

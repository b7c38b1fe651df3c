"""Parsers from the bytes of documents to texts, a file a format."""

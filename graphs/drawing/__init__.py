"""Drawings of search trees, one format per file; each takes the root query node and returns text."""

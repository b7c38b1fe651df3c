"""Rows of results: what one holds, how it is made from an answer, and the files that keep them."""

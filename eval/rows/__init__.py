"""Rows of results and the files that hold them."""

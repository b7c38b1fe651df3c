"""Commands for search trees that are there: show, change, compare and explain them."""

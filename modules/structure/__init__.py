"""The structure of a collection: graphs over its passages, and the files that keep them."""

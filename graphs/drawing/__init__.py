"""Pictures of search trees, a file a form; each takes the root query node and gives back text."""

"""Tools of agents, besides the search of the collection."""

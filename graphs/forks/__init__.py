"""What can be asked about a search tree that is there: the same with one change, and without one chunk."""

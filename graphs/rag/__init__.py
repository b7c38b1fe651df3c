"""A search graph as users hold it: runs, sub-runs on threads of their own, and the tree of both."""

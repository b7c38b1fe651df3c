"""Watching a server: health, metrics, and a line of the log for each request."""

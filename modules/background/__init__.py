"""Threads for blocking work beside event loops."""

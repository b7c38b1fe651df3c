"""Conversations of the caller: listed, read, asked as streams of events, and changed."""

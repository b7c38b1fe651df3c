"""Conversation trees as data, graphs, text, SVG and HTML."""

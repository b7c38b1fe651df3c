"""Reads files, texts and numbers that come from outside, within limits."""

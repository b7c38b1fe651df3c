"""Kinds of checkpoint stores, each in a file: how saver, locks and journal are opened, and where transcripts lie."""

"""Word documents: what a reader sees in them as one text, a file a part of the format."""

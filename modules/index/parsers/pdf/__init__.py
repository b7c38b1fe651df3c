"""PDF documents: what a reader sees on their pages as texts in the order of reading, a file a part of the work."""

"""What keeps event loops free: threads for blocking work, fewer searches for garbage."""

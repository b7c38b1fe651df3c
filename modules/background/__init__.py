"""What keeps event loops free: threads for blocking work, waits that signals end, fewer searches for garbage."""

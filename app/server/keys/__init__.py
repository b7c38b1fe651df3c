"""Keys of callers: what they grant and what they may spend, at rest as hashes."""

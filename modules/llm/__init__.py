"""Chat models behind endpoints: calls, retries, rate limits and the cache."""

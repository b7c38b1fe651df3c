"""Chat models behind endpoints: making calls, retrying them, and keeping what they gave."""

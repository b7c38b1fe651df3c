"""What a model draws from the passages of a collection at index time."""

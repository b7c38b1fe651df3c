"""Keys of a question's configuration, in groups: models, retrieval, judging and reading."""

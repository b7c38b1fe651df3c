"""``judgetree new``; a ``.txt`` file a kind of part, and the test and the pyproject.toml of all kinds."""

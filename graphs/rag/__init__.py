"""Search graphs: their runs and sub-runs, one thread each, their results and search trees."""

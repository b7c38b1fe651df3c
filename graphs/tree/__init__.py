"""Search trees as data: read from the history of threads, written as JSON and GraphML."""

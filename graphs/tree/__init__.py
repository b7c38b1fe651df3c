"""Search trees as data: read from checkpoints, written as JSON and GraphML."""

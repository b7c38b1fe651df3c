"""One thread of a search: state, context, storage, and the status of its checkpoints."""

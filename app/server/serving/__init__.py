"""What all doors of the server stand on: options, callers, errors, streams, and the conversations served."""

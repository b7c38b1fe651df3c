"""Search trees over HTTP: whole, drawn, chunk by chunk, growing, and two beside each other."""

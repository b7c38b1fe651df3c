"""What a question reaches in the graph of a collection, as a value that shows, draws and exports itself."""

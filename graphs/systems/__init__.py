"""The systems that are compared: the judge graph, its baselines, and the nodes that they share."""

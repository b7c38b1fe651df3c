"""What the databases of the settings hold, for all front doors."""

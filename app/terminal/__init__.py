"""Shared parts of commands: output, progress, live trees, tree files, exit statuses."""

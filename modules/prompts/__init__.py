"""All prompts by name, prompts of one's own from YAML files, and how they differ."""

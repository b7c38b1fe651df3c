"""What makes a model's reply worse than it looks: the kinds, and the rule for prompts that a server cut silently."""

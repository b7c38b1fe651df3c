"""How data of judgetree and its users is written and opened: files, databases, their formats and locks."""

"""How files of judgetree and of its users reach the disk: each one whole, or as it was."""

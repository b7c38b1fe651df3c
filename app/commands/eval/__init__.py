"""``judgetree eval`` and its commands, a file each."""

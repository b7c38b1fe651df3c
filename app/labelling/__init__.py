"""``judgetree label``: its page on loopback and its lines in a terminal."""

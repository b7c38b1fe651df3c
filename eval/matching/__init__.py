"""Opponents that spend as much as the system that they are compared with."""

"""Sweeps: one experiment for each combination of listed values."""

"""Replays of recorded searches: policies, stops, budgets and judges on what was found, without a model call."""

"""Fixtures of the command line's tests, for attacks that go through it."""

from tests.app.conftest import cli, home, indexed_home, scripted, surroundings, talking_home

__all__ = ["cli", "home", "indexed_home", "scripted", "surroundings", "talking_home"]

"""Servers of the other rooms' tests that runs of several processes are shared over."""

from tests.graphs.conftest import postgres_url
from tests.modules.conftest import lite_server

__all__ = ["lite_server", "postgres_url"]

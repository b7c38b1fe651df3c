"""Servers of the other rooms' tests."""

from tests.graphs.conftest import postgres_url
from tests.modules.conftest import lite_server, server, started_server

__all__ = ["lite_server", "postgres_url", "server", "started_server"]

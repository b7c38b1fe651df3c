"""File descriptors: a server's connections must leave some to its stores, its models and the files that it opens."""

from __future__ import annotations

import sys

from ....modules.errors import SettingsError
from ..serving.options import ServerOptions
from .connections import SPARE_CONNECTIONS
from .start import BACKLOG

_OTHERS = 400
"""Descriptors besides connections: stores, model clients, checkpoints, uploads, processes that draw and parse."""


def check_descriptors(options: ServerOptions) -> None:
    """Allow this process as many open files as its connections need, up to what the system allows it.

    Connections that wait are taken all at once, before any is counted. Where descriptors run out nevertheless, asyncio
    takes new connections again after a second.

    Raises:
        SettingsError: The system allows fewer than the connections need.
    """
    if sys.platform == "win32":  # which has no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = options.max_connections + SPARE_CONNECTIONS + _OTHERS
    wanted = least + BACKLOG
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < least:
        raise SettingsError(
            f"{options.max_connections} connections need {least} open files, and this process may open {soft}. "
            f"Allow more (ulimit -n {wanted}), or give a smaller --max-connections."
        )

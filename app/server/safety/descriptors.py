"""File descriptors: a server's connections must leave some to its stores, its models and the files that it opens."""

from __future__ import annotations

import logging
import sys

from ....modules.errors import SettingsError
from ..serving.options import ServerOptions
from .connections import SPARE_CONNECTIONS
from .start import BACKLOG

logger = logging.getLogger(__name__)

_OTHERS = 400
"""Descriptors besides connections: stores, model clients, checkpoints, uploads, processes that draw and parse."""


def within_descriptors(options: ServerOptions) -> ServerOptions:
    """Allow this process the open files that its connections need; returns fewer connections if the system allows less.

    Connections that wait are taken all at once, before any is counted. Where descriptors run out nevertheless, asyncio
    takes new connections again after a second.

    Raises:
        SettingsError: The system allows too few for any connection.
    """
    if sys.platform == "win32":  # which has no such limit
        return options
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.max_connections + SPARE_CONNECTIONS + _OTHERS + BACKLOG
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = soft - SPARE_CONNECTIONS - _OTHERS
    if soft == resource.RLIM_INFINITY or room >= options.max_connections:
        return options
    if room < 1:
        raise SettingsError(f"This process may open {soft} files, too few for a server. Allow more: ulimit -n {wanted}")
    logger.warning("%d connections at once, since this process may open only %d files.", room, soft)
    return options.model_copy(update={"max_connections": room})

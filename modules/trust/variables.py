"""Variables that look like settings and are none, which are named once in a warning."""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Collection

from .owners import SAFE_FOLDERS
from .usable import env_file_here

logger = logging.getLogger(__name__)

_OTHER_VARIABLE = re.compile(
    r"DEBUG|SAFE_FOLDERS|TEST_.*|(.*_)?SERVICE_(HOST|PORT).*|(.*_)?PORT(_\d+_(TCP|UDP).*)?", re.DOTALL
)
"""Variables with the prefix that are no settings: of the command line, of tests, and of Kubernetes for its services."""
_KEYS_ELSEWHERE = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY")
"""Variables that choose a model where the environment has them, and that newcomers put into ``.env``."""
_said: set[str] = set()


def warn_of_unknown(known: Collection[str], prefix: str) -> None:
    """Warn once of each variable in the environment and ``.env`` that begins like a setting and has no effect.

    Args:
        known: The names of the settings, in lower case.
        prefix: What their variables begin with.

    Raises:
        NotTrusted: ``.env`` cannot be read.
        UnicodeDecodeError: ``.env`` is not UTF-8.
    """
    file = env_file_here()
    in_file = [] if file is None else [name for _, name, _ in file.lines()]
    for variable in (*os.environ, *in_file):
        _warn_if_unknown(variable.upper(), known, prefix)
    if SAFE_FOLDERS in in_file:
        _warn(SAFE_FOLDERS, "has no effect in .env. Set it in the environment.")
    if f"{prefix}LLM" not in (*os.environ, *in_file):
        for key in _KEYS_ELSEWHERE:
            if key in in_file and key not in os.environ:
                _warn(key, f"has no effect in .env. Set it in the environment, or {prefix}LLM and {prefix}LLM_API_KEY.")


def _warn_if_unknown(variable: str, known: Collection[str], prefix: str) -> None:
    name = variable.removeprefix(prefix)
    if name == variable or name.lower() in known or _OTHER_VARIABLE.fullmatch(name):
        return
    near = difflib.get_close_matches(name, [each.upper() for each in known], n=1, cutoff=0.75)
    meant = f"Did you mean {prefix}{near[0]}? " if near else ""
    _warn(variable, f"is no setting and has no effect. {meant}`judgetree settings` lists them.")


def _warn(variable: str, said: str) -> None:
    if variable in _said:
        return
    _said.add(variable)  # first, since what prints the warning may load settings for their secrets
    logger.warning("%s %s", variable, said)

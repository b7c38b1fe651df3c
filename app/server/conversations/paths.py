"""Names of conversations and of their branches in paths."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from ....modules.storage.texts import MAX_ID_BYTES

Name = Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES, description="Name of the conversation.")]
BranchName = Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES, description="Name of the branch.")]

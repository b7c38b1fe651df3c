"""Names of collections in requests."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

CollectionName = Annotated[str, Path(min_length=1, max_length=255, description="Name of a collection.")]

"""``GET /v1/models``: each collection under each system, and the cheap model."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from ..serving.caller import CallerBy
from ..serving.served import FAST, ServedBy

router = APIRouter(prefix="/v1", tags=["chat"])


class Model(BaseModel):
    """A model as OpenAI's clients list it."""

    id: str
    """``COLLECTION/SYSTEM``, the name of a system without a search, or ``fast``."""
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "judgetree"


class ModelList(BaseModel):
    """All models that the caller may ask."""

    object: Literal["list"] = "list"
    data: list[Model]


@router.get("/models")
async def models(served: ServedBy, caller: CallerBy) -> ModelList:
    """List the models; ``fast`` runs no search, for the title and tag prompts of chat clients."""
    return ModelList(data=[Model(id=each) for each in [*(m.id for m in await served.models(caller)), FAST]])


@router.get("/models/{model_id:path}")
async def model(model_id: str, served: ServedBy, caller: CallerBy) -> Model:
    """Return one model."""
    return Model(id=model_id if model_id == FAST else (await served.find_model(caller, model_id)).id)

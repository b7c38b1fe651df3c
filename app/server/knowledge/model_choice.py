"""Which collection, system and model answer: only what the server's owner allows."""

from __future__ import annotations

from ..serving.caller import Caller
from ..serving.errors import ApiError
from ..serving.served import Served, ServedModel

_AT = "@"


async def chosen_model(served: Served, caller: Caller, model_id: str) -> tuple[ServedModel, str | None]:
    """Return the model of an id, and the spec of the answering model that it names, if any.

    An id is that of a served model, the name of an answering model in ``ServerOptions.llms``, or both, joined by "@".
    An id without a served model, or an empty one, takes the first system over the only collection.

    Raises:
        ApiError: HTTP 404 for an unknown part, 400 if several collections are served and the id names none.
    """
    place, name = _parts(served, model_id)
    model = await served.find_model(caller, place) if place else await _only_model(served, caller)
    return model, named_llm(served, name, param="model_id") if name else None


def named_llm(served: Served, name: str, *, param: str) -> str:
    """Return the spec of a model that a request names.

    Raises:
        ApiError: HTTP 404: the server's owner has named no such model.
    """
    llms = served.options.llms
    if name not in llms:
        allowed = ", ".join(llms) or "none, since the server has no --name-llm"
        message = f"There is no answering model {name!r:.200}. Allowed: {allowed}."
        raise ApiError(404, message, param=param, code="model_not_found")
    return llms[name]


def _parts(served: Served, model_id: str) -> tuple[str, str]:
    if model_id in served.options.llms:
        return "", model_id
    place, at, name = model_id.rpartition(_AT)
    return (place, name) if at else (model_id, "")


async def _only_model(served: Served, caller: Caller) -> ServedModel:
    models = await served.models(caller)
    found = [model for model in models if model.collection] or models
    if not found:
        raise ApiError(404, "The server has no collection yet. Index one.", param="model_id", code="model_not_found")
    if len({model.collection for model in found}) > 1:
        allowed = ", ".join(model.id for model in found)
        raise ApiError(
            400, f"Several collections are served: name one in model_id. Allowed: {allowed}.", param="model_id"
        )
    return found[0]

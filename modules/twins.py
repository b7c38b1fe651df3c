"""Verbs in pairs: the work is written once, and called blocking or awaited, from any thread or event loop.

>>> import asyncio
>>> class Oven:
...     @blocking
...     async def bake(self, minutes: int) -> str:
...         '''Bake a cake.'''
...         return f"baked for {minutes} minutes"
...
...     abake = async_twin(bake)
>>> Oven().bake(40)
'baked for 40 minutes'
>>> asyncio.run(Oven().abake(40))
'baked for 40 minutes'
>>> Oven.abake.__doc__
'Async twin of ``bake``.'

The work runs on judgetree's own loop. There it calls the async twins of other verbs, which then run in place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import GenericAlias
from typing import Any, ParamSpec, TypeVar, overload

from .background_loop import background_loop

P = ParamSpec("P")
T = TypeVar("T")


@overload
def blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]: ...
@overload
def blocking(work: Callable[P, AsyncIterator[T]]) -> Callable[P, Iterator[T]]: ...
def blocking(work: Callable[P, Any]) -> Callable[P, Any]:
    """Make a blocking verb of an ``async def``, or of a function that returns an asynchronous iterator.

    The verb has the name, the parameters and the docstring of ``work``. It waits for the result, or yields the items.
    On judgetree's own loop it raises ``LoopReentryError``.
    """
    if inspect.iscoroutinefunction(work):

        @functools.wraps(work)
        def run(*args: P.args, **kwargs: P.kwargs) -> object:
            return background_loop().run(work(*args, **kwargs))

        return run

    @functools.wraps(work)
    def iterate(*args: P.args, **kwargs: P.kwargs) -> Iterator[object]:
        return background_loop().iterate(work(*args, **kwargs))

    item = str(work.__annotations__["return"]).partition("[")[2].removesuffix("]")
    iterate.__annotations__ = work.__annotations__ | {"return": GenericAlias(Iterator, (item,))}
    signature = inspect.signature(work).replace(return_annotation=f"Iterator[{item}]")
    vars(iterate)["__signature__"] = signature
    return iterate


@overload
def async_twin(verb: Callable[P, Iterator[T]]) -> Callable[P, AsyncIterator[T]]: ...  # type: ignore[overload-overlap]
@overload
def async_twin(verb: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]: ...
def async_twin(verb: Callable[P, Any]) -> Callable[P, Any]:
    """Make the async twin of a ``blocking`` verb, to be bound to the name ``a<verb>``.

    It is a coroutine function, or an asynchronous generator function. Cancelling it cancels the work and waits for the
    work's end.
    """
    work: Callable[P, Any] = vars(verb)["__wrapped__"]
    if inspect.iscoroutinefunction(work):

        async def arun(*args: P.args, **kwargs: P.kwargs) -> object:
            return await background_loop().arun(work(*args, **kwargs))

        return _as_twin_of(work, arun)

    async def aiterate(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[object]:
        async for item in background_loop().aiterate(work(*args, **kwargs)):
            yield item

    return _as_twin_of(work, aiterate)


def _as_twin_of(work: Callable[P, Any], twin: Callable[P, Any]) -> Callable[P, Any]:
    functools.update_wrapper(twin, work)
    twin.__qualname__ = f"{work.__qualname__.removesuffix(work.__name__)}a{work.__name__}"
    twin.__name__ = f"a{work.__name__}"
    twin.__doc__ = f"Async twin of ``{work.__name__}``."
    return twin

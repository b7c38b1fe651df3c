"""Recursive RAG with a judge.

>>> import judgetree
>>> sorted(judgetree.__all__)[:3]
['BatchedJudge', 'CallGate', 'CallMeter']

Names are imported when they are first used, so that ``import judgetree`` stays quick.
"""

from .modules.lazy_exports import lazy_exports

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
__all__ += ["__version__"]

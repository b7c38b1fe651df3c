"""Batch evaluation: systems over question-answer data sets, their reports and comparisons.

>>> from judgetree import evaluation
>>> sorted(evaluation.__all__)[:3]
['Comparison', 'CorpusDocument', 'DATASETS']

Names are imported when they are first used; those that make reports need the extra ``eval``.
"""

from ..modules.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__, extra="eval")

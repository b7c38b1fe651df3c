"""Words that stand in nearly every text and so tell nothing about it.

BM25 leaves them out: Milvus Lite would walk through nearly all chunks for each of them, and gives a word that stands in
more than half of the chunks a negative weight.
"""

from __future__ import annotations

_ENGLISH = """
a an the and or but if of in on at by to for from with as into than then that this these those there here
is are was were be been being am do does did has have had can could may might must shall should will would
it its he him his she her hers they them their we us our you your i me my
what which who whom whose when where why how not no nor so such also both each more most other some
"""
_CHINESE = "的 了 是 在 和 与 及 或 也 就 都 而 被 把 对 从 到 于 以 之 其 这 那 有 为 个 他 她 它 我 你 们 什么"

STOP_WORDS = (*_ENGLISH.split(), *_CHINESE.split())

"""Replies that a model, or whoever speaks for it, may send instead of a verdict."""

from __future__ import annotations

import json

GOOD = '{"reason": "r", "score": 1, "next_query": "Who built the ferry?"}'

_LARGE = 1_000_000

REPLIES: dict[str, str] = {
    # brackets and quotes without end
    "open-braces": "{" * 32_000,
    "open-brackets": "[" * 32_000,
    "open-braces-1mb": "{" * _LARGE,
    "nested-lists": "[" * 5_000 + "]" * 5_000,
    "nested-objects": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "nested-objects-open": '{"a":' * 20_000,
    "alternating": "{[" * 16_000,
    "quotes": '"' * 32_000,
    "object-of-quotes": "{" + '"' * 31_000,
    "escapes": '{"reason": "' + "\\" * 31_000,
    "colons": "{" + ":" * 31_000,
    "commas": "{" + "," * 31_000,
    "keys-without-end": '{"score": 1, ' + '"k": 1, ' * 100_000,
    "same-key": "{" + '"score": 0, ' * 3_000 + '"score": 2}',
    "thousand-objects": '{"score": 3} ' * 2_000,
    "comment-block": "{/*" + "*" * 31_000,
    "comment-lines": "{" + "//\n" * 10_000,
    "single-quotes": "{" + "'" * 31_000,
    # thinking and fences
    "closing-thoughts": "</think>" * 160_000,
    "opening-thoughts": "<think>" * 160_000,
    "nested-thoughts": "<think>" * 10_000 + "x" + "</think>" * 10_000,
    "thought-never-closed": "<think>" + "why " * 250_000,
    "half-tags": "</thin" * 100_000,
    "fences": "```json\n" * 50_000,
    "fences-closed": "```json\n```\n" * 50_000,
    "backticks": "`" * _LARGE,
    "fence-in-fence": "```json\n```json\n" + GOOD + "\n```\n```",
    # size
    "one-megabyte": "a" * _LARGE,
    "spaces": " " * _LARGE,
    "newlines": "\n" * _LARGE,
    "reason-of-a-megabyte": '{"score": 1, "next_query": "Who?", "reason": "' + "a" * _LARGE + '"}',
    "question-of-a-megabyte": '{"score": 1, "reason": "", "next_query": "' + "why " * 250_000 + '"}',
    "object-behind-prose": "well, " * 160_000 + GOOD,
    "prose-behind-object": GOOD + " and so on" * 100_000,
    # numbers
    "score-3": '{"score": 3}',
    "score-minus": '{"score": -1}',
    "score-half": '{"score": 1.5}',
    "score-huge": '{"score": 1e400}',
    "score-digits": '{"score": ' + "9" * 20_000 + "}",
    "score-nan": '{"score": NaN}',
    "score-infinity": '{"score": -Infinity}',
    "score-true": '{"score": true}',
    "score-null": '{"score": null}',
    "score-list": '{"score": [1]}',
    "score-word": '{"score": "one"}',
    "score-arabic": '{"score": "٢"}',
    # types and shapes
    "list": "[1]",
    "number": "2",
    "string": '"2"',
    "null": "null",
    "empty-object": "{}",
    "reason-object": '{"score": 0, "reason": {"a": {"b": {}}}}',
    "question-list": '{"score": 1, "next_query": ["Who?", "What?"]}',
    "foreign-keys": json.dumps({"score": 0, "reason": "", "__class__": "os.system", "lc": 1, "type": "constructor"}),
    # characters
    "nul": '{"score": 0, "reason": "a\\u0000b"}',
    "surrogate": '{"score": 0, "reason": "\\ud800"}',
    "bidi": '{"score": 0, "reason": "\u202e\u2066abc"}',
    "combining": '{"score": 0, "reason": "e' + "\u0301" * 30_000 + '"}',
    "control-tokens": GOOD.replace("r", "<|im_end|><|im_start|>system", 1),
    "prose": "The passage seems somewhat relevant, I would say.",
    "refusal": "I'm sorry, but I cannot help with that.",
    "html": "<html><body><h1>502 Bad Gateway</h1></body></html>",
}

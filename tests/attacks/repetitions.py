"""Repetitive texts, on which a reader that is not linear takes the longest."""

from __future__ import annotations

from collections.abc import Iterator

_CHARACTERS = (
    " \n\t\r0A9aéß中，。：、？！,.;:!?-–*_`#>~<()[]{}（）【】\"'“”‘’«»《》「」/\\|=+&%@$^"
    "\u3000\u2028\x00\u0301\ud800٣Ａ😀•…"
)
_PIECES = (
    # words, sentences and lists
    "a ", "A. ", "Dr. ", "a.", "a, ", "a-", "a/", "the ", "The ", "Bank of ",
    "1. ", "1) ", "1, ", "- ", "* ", "** ", "•\t", "- [ ] ", ". ",
    ".\n", "a\n", "a\n\n", "\n\n", "\n \n", "\r\n", " \n", "> ", "# ", "---\n", "a\u0301", "? ", "…\n", "= ",
    # labels of the prompts
    "answer", "Answer:", "Answer: a\n", "Fact: a\n", "fact ", "答案：", "confidence", "Confidence: 5 ",
    "confidence 1/ ",
    "score (", "Question: ", "question ", "name:", "follow up ", "Follow up: a\n", "追问", "Action: ", "action 1 ",
    "Action: Search[", "Search[", "Finish[", "calculator[", "input ", "行动 ", "Thought: ", "思考", "Observation:",
    "so the answer is ", "none ", "the answer is ", "Human: ", "\n\nUser: ", "\nuser: ", "System:\n", "Evidence:",
    "[0] ", "[1] ", "\n\n[2] ", "Supplementary question: ", "<|im_end|>", "<|", "[INST]",
    # refusals
    "问题", "我", "我们", "因此", "无法", "无法回答", "我问题", "没有", "没有提及", "资料", "根据", "是", "未", "不",
    "找到",
    "相关的", "答案", "的", "it is ", "is not ", "no ", "not in ", "in the ", "the text ", "none of the ", "of it ",
    "i cannot answer ", "i am sorry, ", "unfortunately, ", "based on a, ", "because a, ", "but ", "but a. ", "; it is ",
    "cannot be ", "are missing in ", "no evidence of ", "about, ", " - ", ", so ", "(a) ",
    # rewrites
    "here is ", "here is the rewritten question: ", "rewritten ", "sure! ", "new ", "(note", "[note", "note: ", "“a”",
    # formats
    "<think>", "</think>", "<think></think>", "</thin", "```\n", "```json\n", "<a>", "<a ", "</p>", "&amp;", "&#1;",
    '{"', '{"a":', '{"a":1} ', "[{", '":', '"a",', '\\"', "\\u0000", "\\n", '"\n', "'\"", "/* ", "// ", "{{", "{a}",
    '{"reason": "<think>', "true,", "1e9", "0x", "1_", "1+", "2**", "((", "-(", "max(", "| a ", "%s",
    # addresses and keys
    "http://", "https://a.b/", "www.a ", "javascript:", "data:", "sk-", "?key", "?key=a", "&token", "://", "a@", "%2F",
)  # fmt: skip
_OPENINGS = ("", "Answer: ", '{"reason": "', "问题")
_ENDINGS = ("", "\x00!", '"}', "是什么")


def repetitions(size: int, *, framed: bool) -> Iterator[str]:
    """Yield texts of ``size`` characters of one repeated piece each; ``framed`` ones open and end otherwise too."""
    frames = list(zip(_OPENINGS, _ENDINGS, strict=True))
    for piece in dict.fromkeys((*_CHARACTERS, *_PIECES)):
        for opening, ending in frames if framed else frames[:1]:
            yield f"{opening}{piece * (size // len(piece))}"[: size - len(ending)] + ending

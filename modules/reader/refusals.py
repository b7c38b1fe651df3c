"""Detection of refusals: replies that the answer is unknown or unavailable, in English or Chinese.

A reply is read sentence by sentence. It is a refusal if its first meaningful sentence refuses and no later one answers
("The text does not say so, but he was born in 1950"). Sentences that only describe the evidence have no meaning here.
Titles ("I Don't Know How She Does It", 《不知道》) are answers, and so are texts that only begin like a refusal
("unknown to the public until 1950").

Every repetition in the patterns is bounded, and openings are removed piece by piece, so that every reply takes little
time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST = 2_000
"""Characters that are read: a refusal comes early."""
_AROUND_AN_ANSWER = " \t\r\n\"'“”‘’「」*_`"
_LABEL = re.compile(r"(?:(?:the |my |final ){0,2}answer(?: is)? ?[:：]|答案是?[:：])\s*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s++|(?<!\s)(?:[^\S\n]*+\n\s*+|\s++[-–—]++\s++)")
_CHINESE_CLAUSE_END = re.compile(r"[，,。；;！!？?：:\s]+")

# References to the evidence: "the provided passages", "none of the documents", "it".
_SOURCE = (
    r"(?:evidence|contexts?|passages?|texts?|documents?|documentation|information|info|articles?|sources?|excerpts?"
    r"|extracts?|materials?|data|snippets?|paragraphs?|results?|knowledge base|records?|references|content|chunks?"
    r"|standards?|corpus|conversation|details)"
)
_OF_SOURCE = (
    rf"(?:(?:the|this|these|those|any|all|your|our|of|in|none|neither|each"
    rf"|either) ){{0,3}}(?:[\w'-]+ ){{0,3}}?{_SOURCE}\b"
    r"(?: (?:provided|given|above|available|retrieved|here|i was given))?"
)
_SPEAKER = (
    rf"(?:(?:nothing|no \w+) in {_OF_SOURCE}|{_OF_SOURCE}(?: (?:in|of|on|from) {_OF_SOURCE})?|it|they|none of"
    rf" (?:them|these)|neither)"
)
_HOW = r"(?:(?:explicitly|directly|actually|clearly|specifically|even|currently|appear to|seem to|really) ){0,2}"

# Verbs of giving information, and their objects.
_TELL = (
    r"(?:answer|mention|contain|include|say|state|specify|provide|give|tell|indicate|reveal|disclose|hold|have|address"
    r"|cover|name|identify|list|discuss|describe|support|show|explain|offer|clarify|establish|define|report"
    r"|record|refer"
    r"|detail|determine|make)(?:s|es)?\b"
)
_FIND = (
    r"(?:answer|determine|find|say|provide|confirm|identify|give|establish|verify|locate|conclude|respond"
    r"|ascertain|deduce"
    r"|infer|know|see|specify|derive|judge|assess|offer|tell|be (?:sure|certain)|help (?:you|with)"
    r"|assist)\b(?! (?:a|no|you why)\b)"
)
_TOLD = r"(?:mentioned|stated|specified|given|provided|disclosed|indicated|known|clear|available|listed|answerable)"
_FOUND = (
    rf"(?:{_TOLD}|determined|answered|established|inferred|identified|ascertained|found|verified|deduced"
    rf"|derived|confirmed"
    r"|concluded|determinable|included|recorded|addressed|covered|named|described|discussed|defined|contained"
    r"|present|in|possible)"
)
_DETERMINED = (
    r"(?:determined|answered|established|inferred|identified|ascertained|known|deduced|derived|concluded|found)"
)
_MISSING = r"(?:unknown|unclear|unspecified|unavailable|undetermined|unanswerable|unstated|uncertain)"
_INFORMATION = (
    r"(?:information|info|evidence|data|context|details?|knowledge|mention|indication|records?|reference"
    r"|answer|idea|way to"
    r"|access|passage)\b"
)
_SOME = (
    r"(?:(?:enough|sufficient|any|the|relevant|specific|further|more|necessary|additional|such|that|requested"
    r"|needed) ){0,3}"
)
_BY_SOURCE = (
    rf"(?:,? (?:in|from|by|within|based (?:up)?on|according to|given|with) {_OF_SOURCE}| (?:here|yet|anywhere)){{0,2}}"
)
_WHY = r"(?:[,;]? ?(?:as|since|because|so|and|due to|who|which|what|when|where|whether|if)\b.*)?"
_END = rf"{_BY_SOURCE}{_WHY}[.!]*$"

_BEFORE = re.compile(
    r"(?:(?:i'm|i am|we are) )?(?:very |so )?sorry[,.!: ]+(?:but )?|(?:i|we) apologi[sz]e[,.: ]+(?:but )?"
    r"|(?:my )?apologies[,.: ]+(?:but )?"
    r"|(?:unfortunately|regrettably|therefore|thus|hence|so|however|consequently)[,: ]+|(?:i'm|i am) afraid (?:that )?"
    r"|(?:and|also|note that|it (?:seems|appears) (?:that )?)[, ]+"
    r"|(?:based (?:up)?on|according to|from|given|after|without|as an?|in|within) [^,.;]{1,100}?(?:, | (?=i "
    r"|we |it |there |the answer |no ))"
    r"|(?:because|since|as|although|though|while|even though|even if) [^,.;]{1,200}, (?!but |though )"
)
_ENGLISH = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        # "I cannot answer", "we were unable to find"
        rf"(?:i|we) ?(?:cannot|can't|can not|could not|couldn't|did not|didn't|(?:am|'m|was|are|were)"
        rf" (?:not able|unable) to) {_HOW}{_FIND}",
        # "I don't know who", but no title
        r"(?:i|we) (?:do not|don't) (?:really )?know(?=$|[.!,;:]| (?:the|this|that|who|what|when|where|which"
        r"|why|how|if|whether"
        r"|about|based|because|from)\b)",
        rf"(?:i|we) (?:(?:do not|don't|did not) (?:currently )?have|have (?:no|not enough|insufficient)|lack"
        rf"|(?:would )?need) {_SOME}{_INFORMATION}",
        r"(?:i'm|i am) (?:not|un) ?(?:sure|certain)(?=$|[.!,;]| (?:about|of|who|what|when|where|which|how|if"
        r"|whether)\b)",
        # "the passages do not mention", "it doesn't say"
        rf"{_OF_SOURCE}(?: (?:in|of|on|from) {_OF_SOURCE})? (?:(?:do|does|did|can|could)(?: not|n't)|cannot"
        rf"|fails? to|never) {_HOW}{_TELL}",
        rf"(?:it|they|neither) (?:do|does|did)(?: not|n't) {_HOW}(?:mention|say|state|specify|indicate|tell"
        rf"|answer|provide|give)\b",
        rf"(?:none of|neither|nothing in|no) [^,;.]{{0,80}}?\b{_HOW}{_TELL}",
        rf"{_SPEAKER} (?:lacks?|omits?|(?:gives?|contains?|provides?|has|have|makes?|offers?|includes?) (?:no"
        rf"|not enough|insufficient)) {_SOME}"
        rf"(?:[\w-]+ ){{0,2}}?(?:{_INFORMATION})",
        rf"{_SPEAKER} (?:says?|tells?(?: us)?|states?|mentions?|contains?|reveals?) nothing"
        r" (?:about|of|on|regarding)\b",
        rf"[^,;:.]{{1,120}} (?:is|are) missing (?:in|from) {_OF_SOURCE}[.!]*$",
        rf"{_SPEAKER} (?:is|are|was|were) (?:not |in)(?:sufficient|enough|conclusive|clear|adequate)\b",
        rf"{_OF_SOURCE} (?:is|are) (?:silent|unrelated|irrelevant|not (?:related|relevant))\b",
        rf"none of {_OF_SOURCE} is relevant\b",
        r"(?:nobody|no one) knows\b(?: (?:who|what|when|where|why|how|if|whether)\b.*)?[.!]*$",
        rf"there(?: is|'s| are| was) (?:no|not enough|insufficient) (?:[\w-]+ ){{0,2}}?{_INFORMATION}",
        rf"there (?:is|are)n't (?:[\w-]+ ){{0,2}}?{_INFORMATION}",
        # "No information is available on …", "the answer is not provided"
        rf"(?!no evidence of (?!.*\b(?:given|provided|found|in)\b)[^,;.]*\.?$)"
        rf"(?:no|not enough|insufficient) {_SOME}{_INFORMATION}(?: [^,;.]{{0,30}}?(?:provided|available|given"
        rf"|found|made)\b)?"
        rf"(?: (?:of|on|about|to|regarding|in)\b[^,;.]*)?{_END}",
        rf"(?:the )?(?:answer|information|data|evidence)(?: (?:is|was))? (?:not {_FOUND}|{_MISSING})\b",
        rf"(?:more|additional|further) {_INFORMATION} (?:is|are|would be) (?:needed|required)\b",
        # "it is unclear", "the year cannot be determined", "his nationality is not stated"
        rf"(?:it|this|that|the (?:exact )?answer|(?:this|the|that) (?:question|information))(?:'s| is| was"
        rf"| are)(?: not|n't) {_HOW}(?:{_FOUND}\b(?! (?:to be|in|until|before|outside)\b)|{_FOUND},? (?:in|by"
        rf"|from) {_OF_SOURCE})",
        rf"(?:it|this|that|the answer|(?:this|the) question)(?:'s| is| remains) (?:{_MISSING}\b(?! to the\b)"
        rf"|impossible to|(?:hard|difficult) to (?:say|tell))",
        rf"(?:it|this|that|the answer|(?:this|the) question) (?:cannot|can't|could not) be {_HOW}{_DETERMINED}\b",
        rf"(?:[^,;:.]{{1,120}} )?(?:cannot|can't"
        rf"|could not) be {_HOW}{_DETERMINED}(?: whether [^,;.]*)?{_BY_SOURCE}[.!]*$",
        rf"[^,;:.]{{1,120}} (?:is|are)(?: not|n't) {_HOW}{_TOLD}{_END}",
        rf"[^,;:.]{{1,120}} (?:is|are|was|were)(?: not|n't) (?:{_HOW}{_FOUND} )?(?:in|from|by|within"
        rf"|based on) {_OF_SOURCE}[.!]*$",
        rf"[^,;:.]{{1,80}} (?:is|are|remains?) {_MISSING}{_BY_SOURCE}[.!]*$",
        # "Unknown.", "not mentioned", "unable to determine", "does not mention"
        rf"(?:{_MISSING}|no idea|not sure|no answer|n/a|insufficient|not enough)(?: (?:information|info"
        rf"|evidence|data))?"
        rf"(?: \((?:not|no|the) .*|[,:] (?:as|since|because|the|no|not)\b.*|{_END})",
        rf"(?:unable to|cannot|can't) {_FIND}(?: (?:this|that|it|the (?:answer|question)))?{_END}",
        rf"not {_HOW}{_FOUND}{_BY_SOURCE}[.!]*$",
        rf"not in {_OF_SOURCE}[.!]*$",
        rf"(?:do|does) not {_TELL}(?: (?:it|this|that))?[.!]*$",
    )
)
_SAYS_NOTHING = re.compile(
    rf"{_SPEAKER} (?:only |also |just |do |does )?(?:{_TELL}|talks?\b|(?:is|are) (?:only )?about\b)(?! that\b)"
    r"|(?:please|could you|can you|feel free|let me know|i can only|i'd be|i only)\b"
)
_STILL = re.compile(
    r"(?:^|[,;.(]) ?(?:(?:but|however|though|although|yet) ?,? ?)?(?:(?:it|he|she|they|this|that"
    r"|the answer)(?:'s| is| was| are| were| seems| must)? )?"
    r"(?:probably|likely|most likely|possibly|perhaps|maybe|presumably|(?:i|we) (?:think|believe|guess|assume"
    r"|suspect)|around|about"
    r"|seems to be|seems|must be|my (?:best )?guess|the answer is|later)\b"
)
_CONTRAST = re.compile(r"(?:^|[,;.] ?)(?:but|however|though|although|nevertheless|still),? ([^;.]+)")
_BUT_NOT = re.compile(
    r",? but not (?:of |about )?(?:its|his|her|their|the|who|what|when|where|which|why|how)\b[^;.]*[.!]?$"
)
_FIGURE_AFTER = re.compile(r"; (?!(?:it|they|the) (?:does|do|did))[^;]*\b(?:is|was|are|were)\b")
_CONCEDES = re.compile(r"(?:although|though|while|whereas|even though|despite|if|when|unless|until|because)\b")
_CLOSING = re.compile(r"(?:^|, (?:so|therefore|thus|hence) )(?:i|we) (?:cannot|can't) answer(?: (?:this|the|that)\b)?")
_SMALL_WORDS = frozenset(
    re.findall(r"\w+", "a an and as at but by for from in is it no not of on or so the to up with")
)
_LABEL_WORDS = frozenset(
    re.findall(
        r"\w+",
        "not enough info information insufficient evidence data cannot be determine determined answer answered unable "
        "to unknown mentioned specified stated provided given found unanswerable applicable relevant context",
    )
)

_CANNOT = r"(?:无法|無法|不能|难以|無從|无从|未能|没法|没办法)"
_KNOW = (
    r"(?:回答|作答|解答|答复|确定|確定|得知|获知|判断|判斷|知道|知晓|找到"
    r"|提供|给出|得出|推断|推知|确认|查到|了解|断定|看出|答)"
)
_NONE = r"(?:没有|沒有|没|未|并未|均未|都未|不|缺乏|缺少|无|無|暂无)"
_STATE = r"(?:提及|提到|说明|說明|提供|给出|涉及|包含|记载|显示|指出|交代|描述|介绍|回答|包括|列出|规定|说|讲|写)"
_MATERIAL = r"(?:资料|資料|证据|信息|上下文|文中|文章|段落|材料|文档|原文|内容|文本|数据|给出的|提供的|文献|标准)"
_CANNOT_KNOW = rf"{_CANNOT}(?:从.{{0,15}}|根据.{{0,15}}|直接|准确|明确|确切|据此|由此|给您|为您)?{_KNOW}(?!的[^答信结])"
_CHINESE = tuple(
    re.compile(pattern)
    for pattern in (
        # One way only through the words before it: the nearest end of one, so that no other split of them is tried.
        rf"(?:(?!{_CANNOT_KNOW})(?>因此|所以|故|我们|我|目前|暂时|尚|也|还|仍|并|答案|.{{0,8}}?问题))*+{_CANNOT_KNOW}",
        r"(?:我|我们)?(?:也|并|还|真的)?(?:不知道|不清楚|不太清楚|不确定|不太确定|不晓得)(?:答案|这|该|此|具体|是否|$)",
        rf".{{0,12}}{_MATERIAL}.{{0,10}}?{_NONE}(?:有)?(?:明确|具体|直接|任何|相关|关于.{{0,15}})?(?:{_STATE}|足够|相关|答案|信息|内容)",
        r"(?:我|我们|目前|.{0,8}中)?(?:没有|沒有|缺乏|缺少)足够的?(?:信息|资料|证据|数据|内容)",
        r"(?:这|这个|这个问题|此事)我?(?:也)?(?:不知道|不清楚)$",
        rf"(?:我|我们|目前|暂时|暂)?{_NONE}(?:有)?(?:找到|足够的?|相关的?|任何|充分的?|有关的?|具体的?)+(?:信息|资料|证据|数据|答案|内容|记载)$",
        r"(?:没有答案|无答案|(?:我|我们)?找不到(?:相关|答案|有关).*|(?:我|我们)?没有找到.*|未找到.*|查不到.*)$",
        rf"(?:.{{0,6}}{_MATERIAL})?(?:信息|证据|资料|材料|数据)(?:不足|不够|有限|缺失).*",
        r"(?:(?:答案|具体.{1,8}|.{1,8}(?:时间|日期|年份|地点|人数|原因|作者|姓名))(?:是|仍|尚|目前)*)?(?:未知|不详|不明|不得而知)的?$",
        r".{0,12}(?:并未|没有|未|没)(?:明确|具体)?(?:提及|提到|说明|给出|提供|记载)[^的]{0,15}$",
    )
)
_CHINESE_BEFORE = re.compile(
    r"(?:由于|因为|鉴于).*|(?:根据|基于|从|按照|依据)[^无無不没未]*$|(?:非常|很|十分)?(?:抱歉|对不起|對不起|遗憾|不好意思)$|很遗憾|(?:请|建议|如果).*|因此$|所以$"
)
_CHINESE_SOURCE = re.compile(r"^(?:根据|基于|从|按照|依据)[^无無不没未]{1,20}(?=[无無不没未])")
_CHINESE_STILL = re.compile(r"但是?|不过|然而|可能|大概|也许|或许|应该|推测|估计|答案是|是.*[0-9]")
_CHINESE_CONCESSION = re.compile(r"(?:虽然|尽管|虽)")


def is_refusal(answer: str) -> bool:
    """Return True for an empty answer, and for one, in English or Chinese, that says it is unknown.

    >>> is_refusal("The passages do not mention his birthplace."), is_refusal("Unknown Pleasures")
    (True, False)
    """
    text = answer[:_LONGEST].replace("’", "'").strip(_AROUND_AN_ANSWER)
    if not text:
        return True
    if _HAN.search(text):
        return _refuses_in_chinese(text)
    folded = text.casefold()
    if label := _LABEL.match(folded):
        text, folded = text[label.end() :].strip(_AROUND_AN_ANSWER), folded[label.end() :].strip(_AROUND_AN_ANSWER)
    if _is_title(text):
        return set(re.findall(r"\w+", folded)) <= _LABEL_WORDS and folded not in ("no answer", "not enough")
    return _refuses_in_english([part for part in _SENTENCE_END.split(folded) if part.strip(_AROUND_AN_ANSWER)])


def _refuses_in_english(sentences: Sequence[str]) -> bool:
    for place, sentence in enumerate(sentences):
        core = _main_clause(sentence)
        found = None if _CONCEDES.match(core) else _refusing(core)
        if found is not None and not core.endswith("?"):
            rest = [f"…{core[found.end() :]}", *map(_main_clause, sentences[place + 1 :])]
            return not any(map(_answers_still, rest))
        described = _SAYS_NOTHING.match(core) is not None
        if described and (turn := _CONTRAST.search(core)) and _refusing(turn[1]):
            return True
        if described and _BUT_NOT.search(core):
            return True
        if described and (end := re.search(r", so (.*)", core)) and _refusing(end[1]):
            return True
        if core and not described:
            return len(sentences) > 1 and _CLOSING.search(_main_clause(sentences[-1])) is not None
    return False


def _refusing(clause: str) -> re.Match[str] | None:
    return next((match for pattern in _ENGLISH if (match := pattern.match(clause))), None)


def _main_clause(sentence: str) -> str:
    """Remove "unfortunately,", "based on the evidence," and other openings of a refusal."""
    sentence = sentence.strip(_AROUND_AN_ANSWER)
    while found := _BEFORE.match(sentence):
        sentence = sentence[found.end() :].lstrip()
    return sentence


def _answers_still(clause: str) -> bool:
    if _STILL.search(clause) or _FIGURE_AFTER.search(clause):
        return True
    turns = [turn[1] for turn in _CONTRAST.finditer(clause)]
    return any(not _SAYS_NOTHING.match(turn) and not _refusing(turn) for turn in turns)


def _is_title(text: str) -> bool:
    """Return whether words are capitalised as no sentence is: "I Don't Know", but not "NOT ENOUGH INFO"."""
    words = re.findall(r"[^\W\d_][\w']*", re.sub(r"\([^()]*+\)$", "", text))
    if len(words) < 2 or text.isupper() or text[-1] in ".;" or len(words) > 20:
        return False
    later = [word for word in words[1:] if word.casefold() not in _SMALL_WORDS]
    return bool(later) and all(word[0].isupper() for word in later)


def _refuses_in_chinese(text: str) -> bool:
    if text.startswith("《") or _CHINESE_CONCESSION.match(text):
        return False
    clauses = [clause.strip(_AROUND_AN_ANSWER) for clause in _CHINESE_CLAUSE_END.split(text)]
    clauses = [_CHINESE_SOURCE.sub("", clause) for clause in clauses]
    main = [clause for clause in clauses if clause and not _CHINESE_BEFORE.match(clause)]
    if not main or not any(pattern.match(main[0]) for pattern in _CHINESE):
        return False
    return not any(_CHINESE_STILL.search(clause) for clause in main[1:])

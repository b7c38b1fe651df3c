"""Markdown keeps its source but for what no reader sees, and is called as its grammar says."""

from __future__ import annotations

import pytest

from judgetree.modules.index.file_parsers import LoadLimits, parse_file
from judgetree.modules.index.parsers.parsed import ParsedFile


def parsed(source: str) -> ParsedFile:
    return parse_file(".md", source.encode(), LoadLimits())


BOMB = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
LONG = "A long text without an end. " * 1_000
TITLES: dict[str, tuple[str, str]] = {
    "a heading": ("# Pumps", "Pumps"),
    "a deeper heading": ("words\n\n### Pumps and `valves` ###\n", "Pumps and valves"),
    "a setext heading": ("words\n\nPumps and\n*valves*\n======\n", "Pumps and valves"),
    "a setext heading of the second level": ("Pumps\n---\n", "Pumps"),
    "a number sign in a fence": ("```sh\n# comment\n```\n~~~\n# comment\n~~~\n# Pumps", "Pumps"),
    "a number sign in indented code": ("words\n\n    # code\n\n# Pumps", "Pumps"),
    "a number sign in a fence that never ends": ("```\n# comment\n", ""),
    "a number sign in a comment": ("<!--\n# comment\n-->\n\n# Pumps", "Pumps"),
    "a tag": ("#tag\n\n#\n\n# Pumps", "Pumps"),
    "seven signs": ("####### no\n\n# Pumps", "Pumps"),
    "an escaped sign": ("\\# no\n\n# Pumps \\# 1", "Pumps # 1"),
    "a ruler": ("words\n\n---\n\n* * *\n", ""),
    "a table": ("| a | b |\n|---|---|\n| # c | d |\n\n# Pumps", "Pumps"),
    "a heading in a quotation or a list": ("> # quoted\n\n- # listed\n\n# Pumps", "Pumps"),
    "a heading with links and a picture": (
        '# [Pumps](a.md "x") ![logo](b.png) <b>and</b> **valves**',
        "Pumps logo and valves",
    ),
    "a heading with references": ("# Caf&eacute; &amp; snake\\_case", "Café & snake_case"),
    "a heading in HTML": (
        '<h1 align="center">\n  <img src="x"> Pumps &amp; <b>valves</b>\n</h1>\n\n## Later',
        "Pumps & valves",
    ),
    "a heading of Windows": ("words\r\n\r\n# Pumps\r\n", "Pumps"),
    "a heading without its blank": ("\ufeff#\tPumps", "Pumps"),
    "a heading behind a long text": (f"{LONG}\n\n" * 3 + "# Pumps\n", "Pumps"),
    "a setext heading behind a long text": (
        f"{LONG[:16_370]}\n\nPumps and valves of\nthe second kind\n===\n",
        "Pumps and valves of the second kind",
    ),
    "front matter": ("---\ntitle: Pumps\n---\n# Heading", "Pumps"),
    "front matter in quotes": ('---\nlayout: x\nTitle: "Pumps: a *guide*"\ntags: [a, b]\n...\n', "Pumps: a *guide*"),
    "front matter with a number": ("---\ntitle: 2024\n---\nwords", "2024"),
    "front matter over lines": ("---\ntitle: >\n  Pumps\n  and valves\n---\nwords", "Pumps and valves"),
    "front matter with no title": ("---\nlayout: x\n# comment\n---\n# Pumps", "Pumps"),
    "front matter with an empty title": ("---\ntitle:\n---\n# Pumps", "Pumps"),
    "front matter with a list as title": ("---\ntitle: [a]\n---\n# Pumps", "Pumps"),
    "broken front matter": ("---\ntitle: a: b: [\n---\n# Pumps", "Pumps"),
    "front matter with code": ("---\ntitle: !!python/object/apply:os.system [ls]\n---\n# Pumps", "Pumps"),
    "front matter that is deep": ("---\ntitle: " + "[" * 9_000 + "\n---\n# Pumps", "Pumps"),
    "front matter of aliases": (f"---\na0: &a0 [x]\n{BOMB}title: T\n---\n", "T"),
    "long front matter": ("---\na: " + "b" * 40_000 + "\ntitle: T\n---\n# Pumps", "Pumps"),
    "two rulers": ("---\n\n# Pumps\n\n---\n", "Pumps"),
    "front matter that never ends": ("---\ntitle: T\n\n# Pumps", "Pumps"),
    "TOML": ("+++\n# comment\ntitle = 'Pumps'\n+++\nwords", "Pumps"),
    "broken TOML": ("+++\nwords\n\n# Pumps\n+++\nwords", "Pumps"),
}


@pytest.mark.parametrize("what", TITLES)
def test_a_document_is_called_as_its_grammar_says(what: str) -> None:
    source, title = TITLES[what]
    ((_, metadata),) = parsed(source).texts
    assert metadata == {"title": title}


SEEN: dict[str, tuple[str, str, int]] = {
    "a comment": ("One <!-- unseen --> two.\n\n<!-- unseen\n\nunseen -->\n\nThree.", "One  two.\n\n\n\nThree.", 2),
    "comments in one block": ("<!-- a --> b <!-- c -->\n", " b \n", 2),
    "a comment over lines of a quotation": ("> One <!-- unseen\n> unseen --> two", "> One  two", 1),
    "a comment in a list": ("- One\n  <!-- unseen -->\n- Two &amp; three", "- One\n  \n- Two & three", 1),
    "a comment in code": (
        "`<!-- seen -->`\n\n```\n<!-- seen -->\n```",
        "`<!-- seen -->`\n\n```\n<!-- seen -->\n```",
        0,
    ),
    "a comment without an end": ("One\n\n<!-- two\n\nthree", "One\n\n<!-- two\n\nthree", 0),
    "references": ("Caf&eacute; &amp; 5&nbsp;kg, &#x3B1;, so&shy;ft", "Café & 5\u00a0kg, α, soft", 0),
    "references in code": ("`&amp;` and &amp;\n\n    &amp;", "`&amp;` and &\n\n    &amp;", 0),
    "what is no reference": ("AT&T; &nothing; &;", "AT&T; &nothing; &;", 0),
    "references in HTML": ("<div>\nCaf&eacute; <!-- &amp; -->&lt;\n</div>", "<div>\nCafé <\n</div>", 1),
    "references in a table": (
        "| a&amp;b | `&amp;` | c&amp;d |\n|---|---|---|\n| &lt; | e\\_f | g |",
        "| a&b | `&amp;` | c&d |\n|---|---|---|\n| < | e_f | g |",
        0,
    ),
    "escapes in words": ("snake\\_case, don\\'t, \\# no, 1\\. a \\* b", "snake_case, don't, \\# no, 1\\. a \\* b", 0),
    "formulas": (
        "$$\\begin{a} x\\_1 \\\\ \\{y\\} & z*a*b \\end{a}$$",
        "$$\\begin{a} x_1 \\\\ \\{y\\} & z*a*b \\end{a}$$",
        0,
    ),
    "references behind front matter": ("---\ntitle: a &amp; b\n---\na &amp; b", "---\ntitle: a &amp; b\n---\na & b", 0),
    "references in a heading": ("# a &amp; b\n\nc &amp; d\n===", "# a & b\n\nc & d\n===", 0),
    "references beside a link": (
        "[a](b?c&amp;d) e &amp; <http://f?g&amp;h> &amp; i",
        "[a](b?c&amp;d) e & <http://f?g&amp;h> & i",
        0,
    ),
    "links, notes and markup": (
        "[a](b) ![c](d) [e][f] x[^1] **g**\n\n[f]: h\n[^1]: note",
        "[a](b) ![c](d) [e][f] x[^1] **g**\n\n[f]: h\n[^1]: note",
        0,
    ),
}


@pytest.mark.parametrize("what", SEEN)
def test_the_source_is_kept_but_for_what_no_reader_sees(what: str) -> None:
    source, text, comments = SEEN[what]
    found = parsed(source)
    assert [each for each, _ in found.texts] == [text]
    assert found.left_out == ({"comment": comments} if comments else {})

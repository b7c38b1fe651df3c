"""Tables and sections say the same in Markdown, HTML and LaTeX."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from judgetree.evaluation.tables.html import section_html, table_html
from judgetree.evaluation.tables.latex import latex_table
from judgetree.evaluation.tables.markdown import sections_markdown, table_markdown
from judgetree.evaluation.tables.table import Cell, Section, Table, estimate_cell

MEAN = estimate_cell(0.913, 0.88, 0.941, lambda share: f"{100 * share:.1f}", note="n 64", marks="*", is_bold=True)
TABLE = Table.of(("system", "EM"), [["a|b\n<i>c</i>", MEAN], ["d_e", Cell(text="3", href='#a=1&b="2"')]], name="t")


def test_a_mean_has_its_interval_and_its_marks_as_each_format_can() -> None:
    assert table_markdown(TABLE).splitlines()[2:] == [
        r"| a\|b <i>c</i> | 91.3 (88.0 to 94.1; n 64) |",
        "| d_e | 3 |",
    ]
    page = table_html(TABLE)
    assert "<td>a|b\n&lt;i&gt;c&lt;/i&gt;</td><td><strong>91.3</strong><small>88.0 to 94.1; n 64</small></td>" in page
    assert '<td><a href="#a=1&amp;b=&quot;2&quot;">3</a></td>' in page
    latex = latex_table(TABLE)
    assert (
        r"a\textbar{}b \textless{}i\textgreater{}c\textless{}/i\textgreater{} & 91.3\textsuperscript{{*}} \\" in latex
    )
    assert r" & {\scriptsize {[}88.0, 94.1{]}, n 64} \\" in latex


def test_a_bound_that_is_missing_leaves_the_mean_alone() -> None:
    assert str(estimate_cell(1.0, float("nan"), 2.0, "{:.0f}".format)) == "1"
    assert str(estimate_cell(1.0, None, None, "{:.0f}".format, note="n 3")) == "1 (n 3)"


@given(st.lists(st.lists(st.text(max_size=12), min_size=2, max_size=2), min_size=1, max_size=4))
def test_every_format_has_as_many_cells_as_the_table_whatever_their_text(rows: list[list[str]]) -> None:
    table = Table.of(("a", "b"), rows)
    parsed = MarkdownIt("commonmark").enable("table").parse(table_markdown(table))
    assert sum(token.type == "td_open" for token in parsed) == 2 * len(rows)
    cells = _Cells()
    cells.feed(table_html(table))
    assert len(cells.texts) == 2 * len(rows)
    lines = [line for line in latex_table(table).splitlines() if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in lines] == [1] * (1 + len(rows))


def test_the_first_section_names_the_document_and_folded_ones_are_folded_on_pages() -> None:
    sections = [Section(title="run", blocks=(TABLE, "One.")), Section(title="More", blocks=("Two.",), is_folded=True)]
    text = sections_markdown(sections)
    assert text.startswith("# run\n\n| system | EM |")
    assert text.endswith("\n\nOne.\n\n## More\n\nTwo.")
    assert section_html(sections[1]) == '<details class="extra"><summary>More</summary><p>Two.</p>\n</details>'


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "td":
            self.texts.append("")

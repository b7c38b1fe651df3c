"""Word files written by hand: a planted sentence in every place of the format that a reader sees, or does not see."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
SPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    f'xmlns:r="{_OFFICE}/relationships" xmlns:m="{_OFFICE}/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:adec="http://schemas.microsoft.com/office/drawing/2017/decorative"'
)
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _types(parts: Iterable[str]) -> str:
    kinds = {"document": "document.main", **{name: name.rstrip("0123456789") for name in parts}}
    inner = "".join(
        f'<Override PartName="/word/{name}.xml" '
        f'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}+xml"/>'
        for name, kind in kinds.items()
    )
    usual = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return f'<Types xmlns="{_PACKAGE}/content-types">{usual}{inner}</Types>'


def relations(*kinds_and_targets: tuple[str, str, str]) -> str:
    """Relations of a part: id, kind and target each."""
    inner = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/relationships/{kind}" Target="{target}"'
        + (' TargetMode="External"/>' if kind == "hyperlink" else "/>")
        for name, kind, target in kinds_and_targets
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def word_file(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """A Word file with a body; each other part, such as "footnotes", stands by its kind, or kind and number."""
    parts = parts or {}
    listed = [(f"r{name}", name.rstrip("0123456789"), f"{name}.xml") for name in parts]
    content = {
        "[Content_Types].xml": _types(parts),
        "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": relations(("r9", "hyperlink", "https://unseen.example"), *listed),
        "word/document.xml": f"<w:document {SPACES}><w:body>{body}</w:body></w:document>",
        **{f"word/{name}.xml": text.replace(">", f" {SPACES}>", 1) for name, text in parts.items()},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in content.items():
            file.writestr(name, text)
    return packed.getvalue()


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(inner: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner if inner.startswith('<') else run(inner)}</w:p>"


def cell(inner: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner if inner.startswith('<') else p(inner)}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def table(*rows: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid/>{''.join(rows)}</w:tbl>"


def sdt(inner: str) -> str:
    return f'<w:sdt><w:sdtPr><w:alias w:val="unseen name"/></w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>'


def raised(text: str, how: str = "superscript") -> str:
    return run(text, f'<w:vertAlign w:val="{how}"/>')


def char(kind: str, inner: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>'


def instruction(text: str) -> str:
    return f'<w:r><w:instrText xml:space="preserve"> {text} </w:instrText></w:r>'


def shape(text: str) -> str:
    box = f"<w:txbxContent>{p(text)}</w:txbxContent>"
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><wp:docPr id="1" name="Box 1"/>'
        f"<a:graphic><a:graphicData><wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp></a:graphicData></a:graphic>"
        "</wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>"
        f"{box}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


def drawn(graphic: str, *, described: str = "", inner: str = "") -> str:
    return (
        f'<w:r><w:drawing><wp:inline><wp:docPr id="2" name="Thing 2" descr="{described}">{inner}</wp:docPr>'
        f"<a:graphic><a:graphicData>{graphic}</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )


def math(inner: str) -> str:
    return f"<m:oMath>{inner}</m:oMath>"


def mr(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


H_RESTART, H_CONTINUED = '<w:hMerge w:val="restart"/>', '<w:hMerge w:val="continue"/>'
DELETED_END = '<w:rPr><w:del w:id="1"/></w:rPr>'
DECORATIVE = '<a:extLst><a:ext><adec:decorative val="1"/></a:ext></a:extLst>'
_LEVELS = "".join(
    f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{style}"/><w:lvlText w:val="{text}"/></w:lvl>'
    for at, (style, text) in enumerate([("decimal", "%1"), ("decimal", "%1.%2"), ("lowerLetter", "(%3)")])
)
_NUMBERING = (
    f'<w:numbering><w:abstractNum w:abstractNumId="7">{_LEVELS}</w:abstractNum>'
    '<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="upperRoman"/>'
    '<w:lvlText w:val="Part %1:"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="9"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="\uf0b7"/></w:lvl>'
    '</w:abstractNum><w:abstractNum w:abstractNumId="10"><w:lvl w:ilvl="0"><w:start w:val="1"/>'
    '<w:numFmt w:val="hebrew1"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/>'
    '</w:lvlOverride></w:num><w:num w:numId="3"><w:abstractNumId w:val="8"/></w:num>'
    '<w:num w:numId="4"><w:abstractNumId w:val="9"/></w:num><w:num w:numId="5"><w:abstractNumId w:val="10"/></w:num>'
    "</w:numbering>"
)
_STYLES = (
    '<w:styles><w:style w:type="paragraph" w:styleId="u1"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
    '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="u2"><w:name w:val="Ueberschrift"/><w:basedOn w:val="u1"/>'
    '<w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:type="character" w:styleId="secret"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="power"><w:name w:val="Power"/><w:basedOn w:val="up"/></w:style>'
    '<w:style w:type="character" w:styleId="up"><w:name w:val="Up"/><w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
    "</w:style></w:styles>"
)


def listed(level: int, list_id: int = 1) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'


def _notes(kind: str, *texts: str) -> str:
    inner = "".join(
        f'<w:{kind} w:id="{at}">{p(f"<w:r><w:{kind}Ref/></w:r>" + run(f" {text}"))}</w:{kind}>'
        for at, text in enumerate(texts, start=2)
    )
    return f"<w:{kind}s>{inner}</w:{kind}s>"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Word file, the sentences that a reader sees in it, and what is left out of it."""

    body: str
    seen: tuple[str, ...]
    """Each stands in the text as it is, once."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> bytes:
        return word_file(self.body, self.parts)


UNSEEN = "unseen"
"""Stands in every sentence that no reader sees."""

CASES: dict[str, Case] = {
    "content controls": Case(
        body=sdt(p("Block control."))
        + p(run("An ") + sdt(run("inline control")) + run(" in a line."))
        + table(sdt(row(cell("Row control"), sdt(cell("Cell control")))))
        + sdt(table(row(cell("Table control"))))
        + sdt(sdt(p("Control in a control."))),
        seen=(
            "Block control.",
            "An inline control in a line.",
            "Row control | Cell control",
            "Table control",
            "Control in a control.",
        ),
    ),
    "tracked changes": Case(
        body=p(
            run("The pump has ")
            + f'<w:ins w:id="1">{run("five")}<w:del w:id="9"><w:r><w:delText>unseen</w:delText></w:r></w:del></w:ins>'
            + '<w:del w:id="2"><w:r><w:delText>unseen four</w:delText></w:r></w:del>'
            + run(" valves.")
        )
        + p(f'<w:moveFrom w:id="3">{run("unseen place")}</w:moveFrom>')
        + p(f'<w:moveTo w:id="4">{run("Moved sentence.")}</w:moveTo>')
        + p(run("Joined ") + "", DELETED_END)
        + p("paragraphs.")
        + p('<w:del w:id="5"><w:r><w:delText>unseen</w:delText></w:r></w:del>', DELETED_END)
        + table(
            row(cell("Kept row")),
            row(cell("unseen row"), properties='<w:del w:id="6"/>'),
            row(cell("Kept cell"), cell("unseen cell", '<w:cellDel w:id="7"/>'), properties='<w:ins w:id="8"/>'),
        )
        + p("<w:r><w:rPr><w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange></w:rPr><w:t>Shown again.</w:t></w:r>"),
        seen=(
            "The pump has five valves.",
            "Moved sentence.",
            "Joined paragraphs.",
            "Kept row\nKept cell",
            "Shown again.",
        ),
        left_out={"tracked deletion": 5},
    ),
    "nested tables": Case(
        body=table(
            row(cell(table(row(cell("inner one"), cell("inner two"))) + p("under it")), cell("outer")),
            row(cell("wide", '<w:gridSpan w:val="2"/>')),
            row(cell("indented"), properties='<w:gridBefore w:val="1"/>'),
            row(cell("tall", '<w:vMerge w:val="restart"/>'), cell("first")),
            row(cell("<w:p/>", "<w:vMerge/>"), cell("second")),
        ),
        seen=(
            "inner one | inner two\nunder it\nouter",
            "\nwide | wide\n | indented\n",
            "tall | first",
            "tall | second",
        ),
    ),
    "cells over several columns": Case(
        body=table(
            row(cell("merged", H_RESTART), cell("<w:p/>", H_CONTINUED), cell("next")),
            row(cell("again", H_RESTART), cell("<w:p/>", "<w:hMerge/>"), cell("last")),
            row(cell("one"), cell("two"), cell("three")),
        )
        + p("Between.")
        + table(
            row(cell("very wide", '<w:gridSpan w:val="63"/>')),
            row(cell("four"), cell("five")),
            row(cell("six", '<w:gridSpan w:val="2"/>'), cell("seven")),
        )
        + p("Between the others.")
        + table(row(cell("eight"), cell(p("first line") + p("second line")), cell("nine"))),
        seen=(
            "merged | merged | next\nagain | again | last\none | two | three",
            "very wide | very wide | very wide\nfour | five\nsix | six | seven",
            "eight | first line second line | nine",
        ),
    ),
    "a table as the end of a cell": Case(
        body=table(
            row(cell("ten"), cell("eleven")),
            row(cell("twelve"), cell(p("thirteen") + table(row(cell("fourteen"), cell("fifteen"))) + "<w:p/>")),
        ),
        seen=("ten | eleven\ntwelve\nthirteen\nfourteen | fifteen",),
    ),
    "headers, footers and sections": Case(
        body=p("First section.", '<w:sectPr><w:headerReference w:type="default" r:id="rheader1"/></w:sectPr>')
        + p("Second section.")
        + '<w:sectPr><w:headerReference w:type="default" r:id="rheader2"/>'
        '<w:headerReference w:type="first" r:id="rheader3"/><w:footerReference r:id="rfooter1"/>'
        '<w:headerReference w:type="even" r:id="rheader4"/><w:headerReference w:type="default" r:id="rheader9"/>'
        "<w:titlePg/></w:sectPr>",
        parts={
            "header1": f"<w:hdr>{p('Head of one.')}</w:hdr>",
            "header2": f"<w:hdr>{p('Head of two.')}</w:hdr>",
            "header3": f"<w:hdr>{p('Head of the first page.')}</w:hdr>",
            "header4": f"<w:hdr>{p('unseen: pages are alike')}</w:hdr>",
            "footer1": f"<w:ftr>{p('Foot of two.')}</w:ftr>",
        },
        seen=(
            "Head of one.\n\nFirst section.\n\nHead of two.",
            "Head of the first page.\n\nSecond section.\n\nFoot of two.",
        ),
    ),
    "notes": Case(
        body=p(
            run("It had 10")
            + '<w:r><w:footnoteReference w:id="2"/></w:r>'
            + run(" members in 1999")
            + '<w:r><w:endnoteReference w:id="2"/></w:r>'
            + run("and more")
            + '<w:r><w:footnoteReference w:id="3" w:customMarkFollows="1"/><w:t>*</w:t></w:r>'
        )
        + table(row(cell(run("").join(["<w:p>", '<w:r><w:footnoteReference w:id="4"/></w:r></w:p>']))))
        + p("After."),
        parts={
            "footnotes": _notes("footnote", "Note of the foot.", "Note of a star.", "Note of a table."),
            "endnotes": _notes("endnote", "Note of the end.", "unseen, nothing refers to it"),
        },
        seen=(
            "It had 10 [1] members in 1999 [i]and more*\n\n[1] Note of the foot.\n\n[i] Note of the end.",
            "Note of a star.",
            "[3] Note of a table.\n\nAfter.",
        ),
    ),
    "text boxes": Case(
        body=p(run("Beside ") + shape("Box of a shape.") + run("it."))
        + p(
            "<w:r><w:pict><v:shape><v:textbox><w:txbxContent>"
            + p("Box of the old kind.")
            + "</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
        )
        + p('<w:r><w:pict><v:shape><v:textpath string="Draft of May"/></v:shape></w:pict></w:r>')
        + table(row(cell(p(run("Cell") + shape("Box in a cell."))))),
        seen=(
            "Beside it.\n\nBox of a shape.",
            "Box of the old kind.",
            "Draft of May",
            "Cell\nBox in a cell.",
        ),
    ),
    "fields": Case(
        body=p(run("Page ") + char("begin") + instruction("unseen PAGE") + char("separate") + run("7") + char("end"))
        + p(
            char("begin")
            + instruction("IF ")
            + char("begin")
            + instruction("unseen")
            + char("separate")
            + run("unseen")
            + char("end")
            + char("separate")
            + run("Nested result.")
            + char("end")
        )
        + p('<w:fldSimple w:instr="unseen AUTHOR">' + run("Ada wrote it.") + "</w:fldSimple>")
        + p('<w:hyperlink r:id="r9">' + run("Linked words.") + "</w:hyperlink>")
        + p(char("begin") + instruction("MACROBUTTON NoMacro Click this place") + char("end"))
        + p(
            char(
                "begin",
                '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="unseen"/>'
                '<w:listEntry w:val="Chosen entry"/></w:ddList></w:ffData>',
            )
            + instruction("FORMDROPDOWN")
            + char("end")
        )
        + p(char("begin") + instruction(r"EQ \f(1,2)") + char("end") + char("end"))
        + p(run("Contents ") + char("begin") + instruction("TOC unseen") + char("separate"))
        + p("Chapter one\t3")
        + p(run("Chapter two") + char("end")),
        seen=(
            "Page 7",
            "Nested result.",
            "Ada wrote it.",
            "Linked words.",
            "Click this place",
            "Chosen entry",
            "Chapter one\t3\n\nChapter two",
        ),
        left_out={"equation": 1},
    ),
    "characters": Case(
        body=p("<w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t><w:cr/><w:t>four</w:t></w:r>")
        + p("<w:r><w:t>hyphen</w:t><w:softHyphen/><w:t>ated so\u00adft</w:t></w:r>")
        + p("<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>known</w:t></w:r>")
        + p('<w:r><w:sym w:font="Symbol" w:char="F061"/><w:t> or </w:t><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>')
        + p(run("\uf062 beta", '<w:rFonts w:ascii="Symbol"/>'))
        + p('<w:r><w:sym w:font="Webdings" w:char="F061"/></w:r>')
        + p(run("5", "<w:strike/>") + run("0", "<w:b/><w:dstrike/>") + run(" 40 EUR", '<w:strike w:val="0"/>'))
        + p("<w:r><w:t>new\npage</w:t><w:br w:type='page'/><w:t>over</w:t></w:r>")
        + p(run("O"), '<w:framePr w:dropCap="drop"/>')
        + p("nce upon a time")
        + p(
            "<w:r><w:ruby><w:rubyPr/><w:rt>"
            + run("kan")
            + "</w:rt><w:rubyBase>"
            + run("漢")
            + "</w:rubyBase></w:ruby></w:r>"
        ),
        seen=(
            "one\ttwo\nthree\nfour",
            "hyphenated soft",
            "well-known",
            "α or ✓",
            "β beta",
            "~~50~~ 40 EUR",
            "new page\nover",
            "Once upon a time",
            "漢(kan)",
        ),
        left_out={"symbol": 1},
    ),
    "raised and lowered": Case(
        body=p(run("About 10") + raised("6") + run(" cells and 10") + raised("-") + raised("3") + run(" mol"))
        + p(run("H") + raised("2", "subscript") + run("O and x") + raised("n+1") + run(", the 4") + raised("th"))
        + p(run("x") + raised("2") + run("3 and Foo") + raised("®"))
        + p(run("2") + '<w:r><w:rPr><w:rStyle w:val="power"/></w:rPr><w:t>8</w:t></w:r>')
        + p(run("5") + run("7", '<w:position w:val="8"/>'))
        + p(run("In 2019") + raised("1,2") + run("they")),
        parts={"styles": _STYLES},
        seen=(
            "About 10^6 cells and 10^-3 mol",
            "H_2O and x^(n+1), the 4th",
            "x^(2)3 and Foo®",
            "2^8",
            "5^7",
            "In 2019^1,2they",
        ),
    ),
    "smart tags and custom XML": Case(
        body='<w:customXml w:element="unseen"><w:customXmlPr/>'
        + p('<w:smartTag w:element="unseen">' + run("Tagged words") + "</w:smartTag>" + run(" here."))
        + "</w:customXml>"
        + table(
            '<w:customXml w:element="a">'
            + row('<w:customXml w:element="b">' + cell("Custom cell") + "</w:customXml>")
            + "</w:customXml>"
        )
        + p('<w:bdo w:val="rtl">' + run("Turned words.") + "</w:bdo>" + "<w:dir>" + run("Directed.") + "</w:dir>")
        + p(
            '<w:futureWrapper xmlns:w="urn:future">'
            + run("Unknown")
            .replace("w:", "z:")
            .replace("<z:r>", '<z:r xmlns:z="http://schemas.openxmlformats.org/wordprocessingml/2006/main">', 1)
            + "</w:futureWrapper>"
        ),
        seen=("Tagged words here.", "Custom cell", "Turned words.Directed.", "Unknown"),
    ),
    "equations": Case(
        body=p(
            run("So ")
            + math(
                "<m:f><m:num>"
                + mr("a+b")
                + "</m:num><m:den>"
                + mr("2")
                + "</m:den></m:f>"
                + mr("=")
                + "<m:sSup><m:e>"
                + mr("10")
                + "</m:e><m:sup>"
                + mr("6")
                + "</m:sup></m:sSup>"
            )
        )
        + p(
            "<m:oMathPara>"
            + math(
                '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>'
                + mr("i=1")
                + "</m:sub><m:sup>"
                + mr("n")
                + "</m:sup><m:e><m:sSub><m:e>"
                + mr("x")
                + "</m:e><m:sub>"
                + mr("i")
                + "</m:sub></m:sSub></m:e></m:nary>"
                + mr("≤")
                + "<m:rad><m:deg/><m:e>"
                + mr("y")
                + "</m:e></m:rad>"
                + "<m:d><m:e><m:f><m:fPr><m:type m:val='noBar'/></m:fPr><m:num>"
                + mr("n")
                + "</m:num><m:den>"
                + mr("k")
                + "</m:den></m:f></m:e></m:d>"
                + "<m:future><m:e>"
                + mr("+z")
                + "</m:e></m:future>"
            )
            + "</m:oMathPara>"
        )
        + p(run("Add 3") + math(f"<m:f><m:num>{mr('1')}</m:num><m:den>{mr('2')}</m:den></m:f>{mr('x')}") + run("."))
        + p(math(f"<m:f><m:num>{mr('a')}</m:num><m:den>{mr('2c')}</m:den></m:f>")),
        seen=("So (a+b)/2=10^6", "Add 3 1/2 x.", "a/(2c)", "∑_(i=1)^n x_i≤√(y)(n; k)+z"),
    ),
    "pictures and other objects": Case(
        body=p(drawn("<pic:pic/>"))
        + p(drawn("<pic:pic/>", described="A pump with a red lever"))
        + p(drawn("<pic:pic/>", inner=DECORATIVE))
        + p(drawn("<c:chart/>", described="Sales by year"))
        + p(drawn("<dgm:relIds/>"))
        + p('<w:r><w:object><v:shape><v:imagedata/></v:shape><o:OLEObject ProgID="Equation.DSMT4"/></w:object></w:r>')
        + p('<w:r><w:object><v:shape><v:imagedata/></v:shape><o:OLEObject ProgID="Excel.Sheet.12"/></w:object></w:r>')
        + p('<w:r><w:pict><v:shape alt="An old drawing"><v:imagedata/></v:shape></w:pict></w:r>')
        + '<w:altChunk r:id="r8"/>'
        + p("End."),
        seen=("[A pump with a red lever]", "[Sales by year]", "[An old drawing]", "End."),
        left_out={
            "undescribed picture": 1,
            "chart": 1,
            "diagram": 1,
            "equation": 1,
            "embedded object": 1,
            "embedded document": 1,
        },
    ),
    "comments and hidden text": Case(
        body=p(
            run("Seen.")
            + '<w:commentRangeStart w:id="0"/>'
            + run(" unseen", "<w:vanish/>")
            + run(" unseen", "<w:vanish/><w:b/>")
            + run(" Shown.", '<w:vanish w:val="0"/>')
            + '<w:r><w:rPr><w:rStyle w:val="secret"/></w:rPr><w:t>unseen</w:t></w:r>'
            + '<w:r><w:commentReference w:id="0"/></w:r>'
        )
        + table(row(cell("unseen"), properties="<w:hidden/>"), row(cell("A row."))),
        parts={
            "comments": f'<w:comments><w:comment w:id="0">{p("unseen")}</w:comment><w:comment w:id="1"/></w:comments>',
            "styles": _STYLES,
        },
        seen=("Seen. Shown.", "A row."),
        left_out={"comment": 2, "hidden passage": 3},
    ),
    "numbers of lists": Case(
        body=p("Scope", '<w:pStyle w:val="u1"/>')
        + p("Pumps", '<w:pStyle w:val="u2"/>')
        + p("small ones", listed(2))
        + p("large ones", listed(2))
        + p("Valves", '<w:pStyle w:val="u2"/>')
        + p("gate valves", listed(2))
        + p("Terms", '<w:pStyle w:val="u1"/>')
        + p("Seals", '<w:pStyle w:val="u2"/>')
        + p("again", listed(0, 2))
        + p("Roman", listed(0, 3))
        + p("round", listed(0, 4))
        + p("alef", listed(0, 5))
        + p("free", listed(0, 0))
        + p("lost", listed(0, 99)),
        parts={"numbering": _NUMBERING, "styles": _STYLES},
        seen=(
            "1 Scope\n\n1.1 Pumps\n\n(a) small ones\n\n(b) large ones\n\n1.2 Valves\n\n(a) gate valves\n\n2 Terms",
            "2.1 Seals\n\n1 again\n\nPart III: Roman\n\nround\n\nalef\n\nfree\n\nlost",
        ),
        left_out={"list number": 1},
    ),
}
"""By what the file shows."""

"""HTML files with a sentence in every place that a reader sees, and what must come of each."""

from __future__ import annotations

_STYLES = "<style>.away{display:none} #gone { visibility: hidden } @media print { .shown { display: none } }</style>"

_LINE, _ROOT = "<i class=frac-line></i>", "<i class=hide-tail><svg></svg></i>"


def _katex(name: str, *rows: tuple[float, str]) -> str:
    """Return a box of a class, of rows so far from its top."""
    written = (f"<i style='top:{top}em;'><i class=pstrut style='height:3em;'></i>{text}</i>" for top, text in rows)
    return (
        f"<span class='{name}'><i class=vlist-t><i class=vlist-r><i class=vlist>{''.join(written)}</i></i></i></span>"
    )


SEEN: dict[str, tuple[str, list[str]]] = {
    "power": ("It bears 10<sup>6</sup> Pa at 10<sup>-3</sup> m.", ["It bears 10^6 Pa at 10^-3 m."]),
    "lowered": ("H<sub>2</sub>O and x<sub>i + 1</sub>", ["H_2O and x_(i + 1)"]),
    "ordinal": ("the 5<sup>th</sup> of May", ["the 5th of May"]),
    "script by style": ("10<span style='vertical-align: super'>6</span>", ["10^6"]),
    "scripts by the classes of a sheet": (
        "<style><!-- .c3{font-size:9pt;vertical-align : super} span.low, #low {vertical-align:sub} --></style>"
        "<p>10<span class='c1 c3'>6</span> Pa, H<span class=low>2</span>O, x<i id=low>1</i>, 10<b class=low>6</b>",
        ["10^6 Pa, H_2O, x_1, 106"],
    ),
    "scripts by a length": (
        "10<span style='vertical-align:30%'>6</span>, 10<span style='vertical-align: 4px'>7</span>, "
        "10<span style='position:relative;top:-4.0pt;mso-text-raise:4.0pt'>8</span>, "
        "10<span style='position:relative; bottom:.5em'>9</span>, H<span style='vertical-align:-.3em'>2</span>O, "
        "$5<span style='vertical-align:top;font-size:60%'>99</span>, 4<span style='vertical-align:1px'>5</span>",
        ["10^6, 10^7, 10^8, 10^9, H_2O, $5^99, 45"],
    ),
    "scripts by other names": (
        "10<span style='font-variant-position:super'>6</span> "
        "<svg><text>10<tspan baseline-shift=super>7</tspan></text></svg>",
        ["10^6 10^7"],
    ),
    "scripts of several lines": (
        "<p>Sum <sup>a<br>b</sup> is 10<sup>6</sup> Hz, X<sub><i>a<p>b</p></i></sub> H<sub>2</sub>O</p>",
        ["is 10^6 Hz", "H_2O"],
    ),
    "fractions as Wikipedia writes them": (
        "<style>.tion{display:inline-block;vertical-align:-.5em}.num,.den{display:block}</style><p><span class=tion>"
        "<span class=num>3</span><span>/</span><span class=den>4</span></span> of 10<sup>6</sup> J",
        ["of 10^6 J"],
    ),
    "parts that a style sets apart": (
        "<style>.g{display:grid} .c{display:table-cell}</style><div style='display:flex'><span>Total 10</span>"
        "<span>6 pieces</span></div><div class=g><b>10</b><b>7</b></div><p><span class=c>10</span>"
        "<span class=c>8</span><p><b style='display:inline-block;width:80px'>10</b><b>9</b>"
        "<p style='display:inline-flex'>10<i>5</i><p style='display:flex'>10<sup>4</sup>",
        ["Total 10 6 pieces", "10 7", "10 8", "10 9", "10 5", "10^4"],
    ),
    "texts of a drawing": (
        "<svg><text><tspan x=10>Flow 10</tspan><tspan x=10 dy=1.2em>6 bar</tspan></text>"
        "<text>10<tspan dy=-6 font-size=9>7</tspan><tspan dy=6> Pa</tspan></text>"
        "<text>H<tspan dy=3 style='font-size:70%'>2</tspan><tspan dy=-3>O</tspan></text></svg>",
        ["Flow 10 6 bar", "10^7 Pa", "H_2O"],
    ),
    "spaces of formulas": (
        "<math><mn>3</mn><mspace width=1em /><mn>4</mn></math>, <math><mtext>of 10 </mtext><mn>6</mn></math>, "
        "<math><mtext>if </mtext><mi>x</mi></math>, "
        "<math><mi>a</mi><mspace width=0em /><mi>b</mi></math>",
        ["3 4, of 10 6, if x, ab"],
    ),
    "formulas that are no fraction": (
        "<math><mo>(</mo><mfrac linethickness=0><mn>10</mn><mn>6</mn></mfrac><mo>)</mo></math> "
        "<math><mi>x</mi><mphantom><mn>9</mn></mphantom><mo>=</mo><mn>2</mn></math>",
        ["(10; 6) x=2"],
    ),
    "numbers of lists by style": (
        "<style>.r{list-style-type:upper-roman}</style><ol style='list-style-type:lower-alpha'><li>one<li>two</ol>"
        "<ol class=r><li>three</ol><ol style='list-style: lower-roman inside'><li>four</ol>",
        ["a. one", "b. two", "I. three", "i. four"],
    ),
    "shadow roots": ("<div><template shadowrootmode=open><p>In the shadow.</template></div>", ["In the shadow."]),
    "formulas of KaTeX without MathML": (
        "<span class=katex><span class=katex-html aria-hidden=true><span class=mord>10<span class=msupsub><span "
        "class=vlist-t><span class=vlist-r><span class=vlist style='height:.8em'><span style='top:-3.06em'><span "
        "class=mord>6</span></span></span></span></span></span></span></span></span>",
        ["10^6"],
    ),
    "boxes of KaTeX without MathML": (
        f"<p>3{_katex('mfrac', (-3.4, '1'), (-3.23, _LINE), (-2.6, '2'))} m, "
        f"{_katex('mfrac', (-2.6, '6'), (-3.23, _LINE), (-3.7, '<b>a</b><b>+</b><b>b</b>'))}, "
        f"({_katex('mfrac', (-3.7, '10'), (-2.3, '6'))}), {_katex('mord sqrt', (-3, '10'), (-2.9, _ROOT))}, "
        f"{_katex('op-limits', (-1.9, 'i'), (-3, '∑'), (-4.3, '10'))} 6, "
        f"<i class=mtable>{_katex('col-align-c', (-3.6, '1'), (-2.4, '3'))}"
        f"{_katex('col-align-c', (-3.6, '2'), (-2.4, '4'))}</i>, <i class=mfrac>7</i>",
        ["3 1/2 m, (a+b)/6, (10; 6), √(10), ∑_i^10 6, 1, 2; 3, 4, 7"],
    ),
    "parts with room around them": (
        "<style>.b{padding:2px 10px}</style><p>Total 10<b class=b>6</b> of 10<i style='margin-left:1em'>7</i>, "
        "1<i style='margin-left:.25em'>234</i>, 10<i style='vertical-align:super;margin:0 1em'>8</i>",
        ["Total 10 6 of 10 7 , 1234, 10^8"],
    ),
    "cells whose parts a style sets apart": (
        "<table><tr><td>KV<td style='display:flex'><b>10</b><b>6</b></table><ul><li style='display:grid'><i>10</i>"
        "<i>7</i></ul>",
        ["KV | 10 6 10 7"],
    ),
    "blocks that a style raises": ("<p style='vertical-align:super'>one</p><p>two", ["one two"]),
    "footnote marks": (
        "Built in 1984<sup><a href='#n2'>2</a></sup>, mended in 1990<sup>[3]</sup>, 12"
        "<a role='doc-noteref' href='#n'>4</a>"
        " in 1999<sup>5</sup>.",
        ["Built in 1984 [2], mended in 1990 [3], 12 [4] in 1999^5."],
    ),
    "footnote marks by style": (
        "<style>.c3 {vertical-align:super}</style>Built in 1984<span class=c3><a href='#n2'>2</a></span>, mended in "
        "1990<a class=sdendnoteanc href='#n3'>i</a><p><a class=sdendnotesym href='#a3'>i</a>By hand in "
        "2001<span class=Endnote_20_anchor><a href='#f'>4</a></span>.",
        ["Built in 1984 [2], mended in 1990 [i] [i]By hand in 2001 [4]."],
    ),
    "fractions": (
        "3<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> m, 4<sup>1</sup>/<sub>8</sub> m, "
        "<math><mfrac><mi>a</mi><mn>2</mn></mfrac><mi>x</mi></math>",
        ["3 1/2 m, 4 1/8 m, a/2 x"],
    ),
    "scripts in scripts": ("10<sup>6<sup>2</sup></sup> and x<sub>n<sub>i</sub></sub>", ["10^(6^2) and x_n_i"]),
    "scripts before their base": (
        "<math><mmultiscripts><mi>C</mi><mi>n</mi><none/><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts></math>, "
        "<math><msup><mi>x</mi><mn>2</mn></msup><mroot><mi>y</mi><mn>3</mn></mroot></math>",
        ["^14_6C_n, x^2 ^3√(y)"],
    ),
    "matrix": (
        "<math><mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>"
        "<mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable><mo>)</mo></math>",
        ["(1, 2; 3, 4)"],
    ),
    "formula behind its picture": (
        "<p><span style='display: none'><math><msup><mi>x</mi><mn>2</mn></msup></math></span>"
        "<img src=f.svg aria-hidden=true alt='x^{2}'> is squared.",
        ["x^2 is squared."],
    ),
    "words that are not spoken": (
        "<p>It costs <span aria-hidden=true>40 EUR</span>, <b aria-hidden='true'>12</b> pieces."
        "<p aria-hidden=true>Open until five.</p><table><tr><td>KV-7<td aria-hidden=true>16 bar</table>",
        ["It costs 40 EUR, 12 pieces. Open until five. KV-7 | 16 bar"],
    ),
    "formula by KaTeX": (
        "<p>So <span class=katex><span class=katex-mathml><math><msup><mi>x</mi><mn>2</mn></msup></math></span>"
        "<span class=katex-html aria-hidden=true><span>x<span>2</span></span></span></span> is.",
        ["So x^2 is."],
    ),
    "boxes": ("<input type=checkbox checked>oak <input type=radio>ash", ["☒ oak ☐ ash"]),
    "choice": ("<select><optgroup label='Wood'><option>oak<option label='ash'>x</optgroup></select>", ["Wood oak ash"]),
    "details": ("<details><summary>More of it</summary>The heron waits.</details>", ["More of it The heron waits."]),
    "terms": ("<dl><dt>heron<dd>a grey bird<dt>reed<dd>a tall grass</dl>", ["heron a grey bird reed a tall grass"]),
    "caption": (
        "<figure><img src=a alt='A heron in reeds'><figcaption>Figure 1: at dawn</figcaption></figure>",
        ["A heron in reeds Figure 1: at dawn"],
    ),
    "table": (
        "<table><caption>Valves</caption><tr><th rowspan=2>Type<th colspan=2>Pressure in bar<tr><th>least<th>most"
        "<tr><td rowspan=2>KV-7<td>3<td>16<tr><td>4<td>25<tr><td>KV-8<td><td>40</table>",
        ["Valves Type | Pressure in bar | Pressure in bar Type | least | most KV-7 | 3 | 16 KV-7 | 4 | 25 KV-8 | | 40"],
    ),
    "table with its foot and its head at other places": (
        "<table><tfoot><tr><td rowspan=9>Sum<td>28</tfoot><tbody><tr><td>KV-7<td>3<tr><td>KV-8<td>25</tbody>"
        "<thead><tr><th>Type<th>bar</thead></table>",
        ["Type | bar KV-7 | 3 KV-8 | 25 Sum | 28"],
    ),
    "table with ends of its parts left out": (
        "<table><thead><tr><th>Type<th>bar<tfoot><tr><td>Sum<td>28<tbody><tr><td>KV-7<td>3<tr><td>KV-8<td>25</table>",
        ["Type | bar KV-7 | 3 KV-8 | 25 Sum | 28"],
    ),
    "cell over more columns than the table has": (
        "x<table><tr><th colspan=9999>Valves<tr><td>KV-7<td>3<tr><td colspan=9>all are new</table>y",
        ["x Valves | Valves KV-7 | 3 all are new | all are new y"],
    ),
    "columns that no cell begins in": (
        "<table><tr><td colspan=2>KV-7<td colspan=3>3<tr><td colspan=2>KV-8<td colspan=3>25</table>",
        ["KV-7 | 3 KV-8 | 25"],
    ),
    "cells that reach down, of two columns": (
        "<table><tr><td>a<td rowspan=2 colspan=2>b<td>c<tr><td>d<td>e<tr><td>f<td>g<td>h<td>i</table>",
        ["a | b | b | c d | b | b | e f | g | h | i"],
    ),
    "table with ends and blocks in cells": (
        "<table><thead><tr><th>Type</th><th>Remark</th></tr></thead><tbody><tr><td><p>KV-7</p></td>"
        "<td>leaks<br>a little</td></tr></tbody></table>",
        ["Type | Remark KV-7 | leaks a little"],
    ),
    "table in a table": (
        "<table><tr><td>outer<td><table><tr><td>KV-7<td>16 bar<tr><td>KV-8<td>25 bar</table><td>end</table>",
        ["outer KV-7 | 16 bar KV-8 | 25 bar end"],
    ),
    "words are neither glued nor split": (
        "<p>One <b>b</b>old<i>er</i> w&shy;ord<wbr>s.</p>Next<div>block</div>text<br>line&nbsp;end <ul><li>a<li>b</ul>",
        ["One bolder words. Next block text line end a b"],
    ),
    "kept spaces": ("<pre>if x:\n    y = 1</pre><p>The <code>a  b</code></p>", ["if x: y = 1 The a b"]),
    "reading of characters": (
        "<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</rt></ruby>駅",
        ["東京(とうきょう)駅"],
    ),
    "quotation": ("She said <q>no</q>.", ["She said “no”."]),
    "struck out": ("<del>50</del> <ins>40</ins> EUR, <s>9</s> 8", ["~~50~~ 40 EUR, ~~9~~ 8"]),
    "struck out by style": (
        "<style>.c5{text-decoration:line-through}</style><span class=c5>50</span>60, "
        "<span style='text-decoration-line: line-through'>7</span>8, <p class=c5>gone</p>",
        ["~~50~~60, ~~7~~8, ~~gone~~"],
    ),
    "struck out with blocks in it": (
        "<style>.x{text-decoration:line-through}</style><table><tr class=x><td>Tea<td>5</tr><tr>"
        "<td class=x>Milk<td>6</tr></table><ul><li class=x>one</li><li>two</li></ul><del><p>three</p><p>four</p></del>"
        "<div class=x><p>five</p></div>",
        ["~~Tea~~ | ~~5~~", "~~Milk~~ | 6", "~~one~~", "two", "~~three~~", "~~four~~", "~~five~~"],
    ),
    "struck out without an end tag": (
        "<style>.x{text-decoration:line-through}</style><p class=x>one<p>two<ul><li class=x>three<li>four</ul>",
        ["~~one~~ two ~~three~~ four"],
    ),
    "scripts above each other": (
        "x<span style='display:inline-block;vertical-align:-0.4em;font-size:80%'>2<br>i</span>, "
        "<span style='vertical-align:-0.4em'>14<br/>6</span>C, 2\u2062x",
        ["x^2_i, ^14_6C, 2x"],
    ),
    "struck out twice": ("<s><del>50</del></s>60<s></s>70", ["~~50~~6070"]),
    "fields": (
        "<form><label>Name <input value='Ada'></label><input type=hidden value=no><textarea>Two\nlines</textarea>"
        "<input type=submit value=Send><button>Stop</button><input placeholder='Your town'></form>",
        ["Name Ada Two lines Send Stop Your town"],
    ),
    "labels of tabs": (
        "<input type=radio id=a><input type=radio id=b><label for=a>Linux</label><label for=b>Windows</label>",
        ["Linux Windows"],
    ),
    "drawing with text": (
        "<svg><title>tip</title><defs><text>no</text></defs>"
        "<text x=1>Axis of <tspan>time</tspan></text><text>0</text></svg>",
        ["Axis of time 0"],
    ),
    "formula": (
        "<math><mi>E</mi> <mo>=</mo> <mi>m</mi> <msup><mi>c</mi> <mn>2</mn></msup> <mo>+</mo>"
        "<msub><mi>x</mi><mi>i</mi></msub>"
        "<mo>+</mo><mfrac><mn>1</mn><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow></mfrac>"
        "<annotation encoding='application/x-tex'>E=</annotation></math>",
        ["E=mc^2+x_i+1/(a+b)"],
    ),
    "page in a page": ("<iframe srcdoc='&lt;p&gt;An inner &lt;b&gt;page&lt;/b&gt;'></iframe>", ["An inner page"]),
    "entities": ("caf&eacute; &#8364; &lt;b&gt; &amp;amp;", ["café € <b> &amp;"]),
    "numbers of a list": (
        "<ol start=3><li>three<li value=7>seven<ol type=a><li>first</ol><li>eight</ol><ol reversed><li>two<li>one</ol>",
        ["3. three 7. seven a. first 8. eight 2. two 1. one"],
    ),
    "markup with errors": (
        "<p>One <b>two <i>three</b> four</i><td>five<div>six</p>seven",
        ["One two three four five six seven"],
    ),
    "blocks by style": ("<span style='display:block'>one</span><span style='display: block'>two</span>", ["one two"]),
    "rules that do not choose it": (
        "<style>.a{display:none}.b{display:block} .c.d{display:none} p.e{display:none}</style>"
        "<p class='a b'>one<p class=c>two<div class=e>three</div>",
        ["one two three"],
    ),
    "a style for print": (f"{_STYLES}<p class=shown>on the screen</p>", ["on the screen"]),
    "words that sound like hiding": (
        "<style>.a{-webkit-backface-visibility:hidden;backface-visibility:hidden} .b:after{content:'display:none'} "
        ".c{content:'/*';color:red} /* .d{display:none} */</style>"
        "<p class=a>one</p><p class=b>two</p><p class=c>three</p><p class=d>four</p>",
        ["one two three four"],
    ),
    "hidden by one rule, shown by a stronger one": (
        "<style>.a,#q{display:none} .a.on{display:block} p.b{display:none} p.b{display:block}"
        "#c{display:block} .d{display:none!important} #d,.d{display:block!important}"
        "@layer low{#e{display:none}} .e{display:block}</style><div class='a on'>one</div>"
        "<p class=a style='display:block'>two</p><p class=b>three</p><p class=a id=c>four</p>"
        "<p class=d id=d>five</p><p class=e id=e>six</p><div hidden class=e>seven</div><i hidden class=e>eight</i>",
        ["one two three four five six seven eight"],
    ),
    "shown by rules that may not hold": (
        "<style>.a{display:none} @media (min-width:600px){.a.w{display:block}} "
        "@supports (display:grid){p.a{display:grid}}"
        ".b{display:none} .b:nth-child(9){display:block} .c{display:none; &.on{display:block}}</style>"
        "<i class='a w'>one</i><p class=a>two</p><p class=b>three</p><p class='c on'>four</p>",
        ["one two three four"],
    ),
    "hidden on other media": (
        "<style media=print>.a{display:none}</style>"
        "<style>@media print{.a{display:none}} @media speech{.a{display:none}}</style><p class=a>one</p>",
        ["one"],
    ),
    "panels that scripts open": (
        "<style>.tabs .panel{display:none} .tabs .panel.on{display:block}</style>"
        "<div class=tabs><p class='panel on'>one</p><p class=panel>two</p></div>",
        ["one two"],
    ),
    "visible in what is not": (
        "<style>.h{visibility:hidden}</style><div class=h>XX <b style='visibility:visible'>one <i class=h>XX "
        "<u style='visibility:visible'>two</u></i></b> XX</div><p>three",
        ["one two three"],
    ),
    "a sheet with errors": (
        "<style>.x{color:red}} .a{display:none} .b, ::: {display:none} @font-face{src:url(a;b)} .c{display:none</style>"
        "<p class=a>one<p class=b>two<p class=c>XX<p>three",
        ["one two three"],
    ),
    "nothing struck out": (
        "<style>.x{text-decoration:line-through} .x.y{text-decoration:underline} .z{text-decoration:line-through}"
        ".z{text-decoration:none} .w{text-decoration:none!important} #w{text-decoration:line-through}</style>"
        "<style media=print>p{text-decoration:line-through}</style>"
        "<p class='x y'>one<p class=z>two<p class=x style='text-decoration:none'>three<p id=w class=w>four"
        "<p><s style='text-decoration:none'>five</s> <strike style='text-decoration-line:none'>six</strike>",
        ["one two three four five six"],
    ),
    "struck out by what stands around": (
        "<style>.todo.done .text{text-decoration:line-through} .a>b{text-decoration:line-through}"
        ".a+p{text-decoration:line-through} body .c~i{text-decoration:line-through}</style>"
        "<ul><li class='todo done'><span class=text>one</span><li class=todo><span class=text>two</span></ul>"
        "<div class=a><b>three</b> <u><b>four</b></u></div><p>five</p><p class=c>six</p><i>seven</i>",
        ["~~one~~ two ~~three~~ four ~~five~~ six ~~seven~~"],
    ),
    "struck out by other selectors": (
        "<style>em,.t.done,tr.x td,[data-x=y],a[href^='http:'],p:not(.k){text-decoration:red line-through}</style>"
        "<div><em>one</em> two <span class='done t'>three</span> <i data-x=y>four</i> <a href='http://q'>five</a> "
        "<a href=q>six</a></div><table><tr class=x><td>seven<td>eight</table><p>nine<p class=k>ten",
        ["~~one~~ two ~~three~~ ~~four~~ ~~five~~ six ~~seven~~ | ~~eight~~ ~~nine~~ ten"],
    ),
    "struck out elements of all kinds": (
        "<label style='text-decoration:line-through'>one</label><q style='text-decoration:line-through'>two</q> "
        "<button style='text-decoration:line-through'>three</button>"
        "<pre style='text-decoration:line-through'>four</pre>"
        "x<sup style='text-decoration:line-through'>5</sup>, y<sub style='text-decoration:line-through'>6</sub>, "
        "z<span style='vertical-align:super;text-decoration:line-through'>7</span>",
        ["~~one~~ “~~two~~” ~~three~~ ~~four~~ x^(~~5~~), y_(~~6~~), z^(~~7~~)"],
    ),
    "struck out rows without end tags": (
        "<table><tr style='text-decoration:line-through'><td>1<td>old valve<tr><td>2<td>new valve</table>",
        ["~~1~~ | ~~old valve~~ 2 | new valve"],
    ),
    "hidden elements without end tags": (
        "<table><tr hidden><td>XX<tr><td>one</table><ul><li hidden>XX<li>two</ul><p hidden>XX<p>three"
        "<p hidden>XX<div>four</div><dl><dt hidden>XX<dd>five</dl><select><option hidden>XX<option>six</select>"
        "<ruby>seven<rp>(<rt>eight<rp>)</ruby>",
        ["one two three four five six seven(eight)"],
    ),
    "struck out over the ends of elements": (
        "<p><s>one<p>two</s> three<ul><li><s>four<li>five</s> six</ul><p><del>seven<p>eight</del> nine",
        ["~~one~~ ~~two~~ three ~~four~~ ~~five~~ six ~~seven~~ eight nine"],
    ),
    "end tags of nothing": ("<ul><li>one<ol><li>two</td></tr></ol>three</li></li><li>four</ul>", ["1. two three four"]),
    "scripts above each other in blocks": (
        "<style>.su{display:inline-block;font-size:80%;line-height:1;vertical-align:-0.35em}"
        ".su>span{display:block;text-align:left}</style>SO<span class=su><span>2−</span><span>4</span></span> is",
        ["SO^(2−)_4 is"],
    ),
    "blocks by the sheet": ("<style>p b{display:block}</style><p><b>one</b><b>two</b></p>", ["one two"]),
    "frames with styles of their own": (
        "<style>.a{display:none}</style><iframe srcdoc='<style>.b{display:none}</style><p class=a>one<p class=b>XX'>"
        "</iframe><p class=b>two<p class=a>XX",
        ["one two"],
    ),
    "a head without its end": ("<html><head><title>t</title><body><p>in the body", ["in the body"]),
    "XHTML": (
        "<?xml version='1.0' encoding='utf-8'?><html xmlns='http://www.w3.org/1999/xhtml'><body><p>a<br/>b</p></body></html>",
        ["a b"],
    ),
}
"""Pages by what is tried, each with texts that must be in it; line ends count as spaces."""

UNSEEN: dict[str, str] = {
    "attribute": "<p hidden>XX</p>",
    "style": "<p style='color:red; DISPLAY : none !important'>XX</p>",
    "style of invisible text": "<p style='visibility:hidden'>XX</p>",
    "class": f"{_STYLES}<p class='big away'>XX</p>",
    "id": f"{_STYLES}<p id=gone>XX</p>",
    "class on screens": "<style media='screen, print'>@media screen{.away{display:none}}</style><p class=away>XX</p>",
    "class of an element": "<style>p.away{display:none}</style><p class=away>XX</p>",
    "class with an escaped name": "<style>.md\\:away{display:none}</style><p class=md:away>XX</p>",
    "class by the last of its rules": "<style>.a{display:block}.a{display:none}</style><p class=a>XX</p>",
    "class that is shown while a pointer is over it": (
        "<style>.a{display:none}.b:hover .a{display:block}</style><div class=b><p class=a>XX</p></div>"
    ),
    "class in a sheet behind it": "<p class=a>XX</p><style>.a{display:none}</style>",
    "visible in what is not displayed": (
        "<div style='display:none'><p style='visibility:visible;display:block'>XX</p></div>"
    ),
    "sign of a font": "<i class=material-icons aria-hidden=true>XX</i>",
    "signs": "<b title=XX aria-hidden=true>»</b>",
    "menu that scripts open": "<nav aria-hidden=true><a>XX</a></nav>",
    "window that scripts open": "<div class='modal fade' aria-hidden=true>XX</div>",
    "panel that scripts open": "<div role=tabpanel aria-hidden=true>XX</div>",
    "template": "<template><p>XX</p></template>",
    "noscript": "<noscript>XX</noscript>",
    "script": "<script>XX</script>",
    "style sheet": "<style>XX</style>",
    "comment": "<!-- XX -->",
    "closed dialog": "<dialog>XX</dialog>",
    "suggestions": "<datalist><option>XX</datalist>",
    "hidden field": "<input type=hidden value=XX>",
    "password": "<input type=password value=XX>",
    "fallback of a video": "<video>XX</video>",
    "source of a formula": "<math><mi>x</mi><annotation>XX</annotation></math>",
    "symbol of a drawing": "<svg><symbol><text>XX</text></symbol></svg>",
}
"""Pages by what is tried, in which "XX" is what no reader sees."""

LEFT_OUT: dict[str, tuple[str, dict[str, int]]] = {
    "pictures": (
        "Words.<img src=a.png><img src=b.png alt=''><img src=c.png alt='c'><img src=d.png width=1 height=1>",
        {"undescribed picture": 1},
    ),
    "players": (
        "Words.<video src=a></video><audio src=b></audio><canvas></canvas>",
        {"video": 1, "audio recording": 1, "canvas": 1},
    ),
    "formulas that are drawn letter by letter": (
        "Words.<mjx-container><mjx-math><mjx-c class=mjx-c31></mjx-c></mjx-math></mjx-container>"
        "<mjx-container><svg><path d='M0 0'/></svg></mjx-container>"
        "<mjx-container><svg aria-hidden=true><path d='M0 0'/></svg><mjx-assistive-mml><math><mn>2</mn></math>"
        "</mjx-assistive-mml></mjx-container>",
        {"formula": 2},
    ),
    "pages of others": ("Words.<iframe src='https://example.org'></iframe>", {"embedded page": 1}),
    "what scripts may show": (
        "Words.<nav aria-hidden=true>Home</nav><div aria-hidden=true><p>One</div><i aria-hidden=true>»</i>",
        {"possibly hidden passage": 2},
    ),
    "nothing": ("Words.", {}),
}
"""Pages by what is tried, each with what is told as left out."""

ENCODED: dict[str, bytes] = {
    "declared": "<meta charset=iso-8859-1>“Grüße” für 5 €".encode("cp1252"),
    "by http-equiv": "<meta http-equiv=Content-Type content='text/html; charset=windows-1252'>“Grüße” für 5 €".encode(
        "cp1252"
    ),
    "by a mark": "\ufeff“Grüße” für 5 €".encode("utf-16-le"),
    "by nothing": "“Grüße” für 5 €".encode(),
    "by nothing, on Windows": "“Grüße” für 5 €".encode("cp1252"),
    "wrongly declared, with a mark": b"\xef\xbb\xbf<meta charset=iso-8859-1>" + "“Grüße” für 5 €".encode(),
}
"""Pages that say “Grüße” für 5 €, by how they tell their encoding."""

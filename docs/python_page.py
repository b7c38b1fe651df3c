"""The body of ``reference/python.md``: signatures and docstrings of the public names, read from the source.

Nothing is imported, so that the page is the same whichever Python and extras are installed, and defaults stand as they
are written.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from textwrap import dedent

REPO = Path(__file__).parents[1]
LONGEST_LINE = 100
CONTRACTS = (
    "judgetree.graphs.rag.graph.GraphOptions",
    "judgetree.graphs.conversation.turn.result.TurnResult",
    "judgetree.graphs.conversation.turn.events.SessionEvent",
    "judgetree.graphs.conversation.turn.events.TreeEvent",
    "judgetree.graphs.conversation.turn.events.ThinkingEvent",
    "judgetree.graphs.conversation.turn.events.ContentEvent",
    "judgetree.graphs.conversation.turn.events.SourceEvent",
    "judgetree.graphs.conversation.turn.events.ErrorEvent",
    "judgetree.graphs.conversation.turn.events.DoneEvent",
    "judgetree.graphs.conversation.tree.ConversationTree",
    "judgetree.graphs.tree.nodes.QueryNode",
    "judgetree.graphs.tree.nodes.ChunkNode",
    "judgetree.modules.calls.usage.UsageTotals",
    "judgetree.modules.extraction.plan.ExtractionPlan",
    "judgetree.modules.extraction.extraction.ExtractionReport",
    "judgetree.modules.structure.triples.Triple",
    "judgetree.modules.structure.neighbourhood.Neighbourhood",
    "judgetree.modules.structure.neighbourhood.GraphNode",
    "judgetree.modules.structure.neighbourhood.GraphEdge",
    "judgetree.evaluation.labels.store.FoundPassage",
    "judgetree.evaluation.labels.store.Label",
    "judgetree.evaluation.datasets.questions.CorpusDocument",
    "judgetree.evaluation.datasets.questions.DialogueTurn",
)
"""Types that no package exports, and that parts of one's own or results consist of."""
LEADS = {
    "Contracts and results": "What a model, retriever or reranker of your own has to provide, and what calls give "
    "back. Import each from the module that it names.",
    "Errors": "Every error that judgetree raises on purpose is a `JudgetreeError`. The command line prints a "
    "`UserError` without a traceback.",
}
FIELDS_ELSEWHERE = {"Experiment": "keys.md", "Limits": "keys.md", "RagConfig": "keys.md", "Settings": "settings.md"}
"""Classes whose fields a table has."""
NAMES_ELSEWHERE = {"PROMPTS": "prompts.md", "POLICIES": "keys.md"}
"""Mappings whose names another page has."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SHOWN_DECORATORS = {"classmethod", "staticmethod", "contextmanager", "asynccontextmanager"}
_SECTION = re.compile(r"(Args|Returns|Yields|Raises|Invoking raises):")


# --- the source ---


@dataclass(frozen=True)
class Module:
    """A module's source; ``name`` is dotted."""

    name: str

    @cached_property
    def path(self) -> Path:
        """Its file; the stub of a package that exports lazily."""
        if self.name in ("judgetree", "judgetree.testing"):
            return REPO / "src/judgetree" / ("__init__.pyi" if self.name == "judgetree" else "testing.py")
        first, *rest = self.name.split(".")[1:]
        place = REPO.joinpath("eval" if first == "evaluation" else first, *rest)
        files = (place.with_suffix(".py"), place / "__init__.pyi", place / "__init__.py")
        return next(file for file in files if file.exists())

    @cached_property
    def text(self) -> str:
        """What the file holds."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> dict[str, str]:
        """Dotted homes of the names that are imported from judgetree's own modules."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                parts = self.name.split(".")
                package = parts if self.path.stem == "__init__" else parts[:-1]
                home = [
                    *package[: len(package) - node.level + 1],
                    *((node.module or "").split(".") if node.module else []),
                ]
                found |= {alias.asname or alias.name: ".".join(home) for alias in node.names}
        return found

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.text.encode().splitlines()

    def source(self, node: ast.expr) -> str:
        """The text of an expression as it is written, on one line."""
        # ast.get_source_segment splits the whole file at each call.
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b" ".join(lines).decode().split())


@cache
def module(name: str) -> Module:
    """The module of a dotted name, parsed once."""
    return Module(name)


@dataclass(frozen=True)
class Entry:
    """A name and where it is defined; ``node`` is the whole tree for a module, and ``doc`` stands below a value."""

    name: str
    home: Module
    node: ast.AST
    doc: str = ""


def find(home: str, name: str) -> Entry:
    """Find the definition of ``name`` in the module ``home``, or where that imports it from."""
    for entry in _entries(module(home), module(home).tree.body):
        if entry.name == name:
            return entry
    if name in module(home).imports:
        return find(module(home).imports[name], name)
    inner = module(f"{home}.{name}")
    return Entry(name, inner, inner.tree, ast.get_docstring(inner.tree) or "")


def _entries(home: Module, body: Sequence[ast.stmt]) -> Iterator[Entry]:
    """What a module or class defines; a text below a value is its docstring."""
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | _Function):
            yield Entry(node.name, home, node, ast.get_docstring(node) or "")
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            name = getattr(target, "id", "") or getattr(target, "attr", "")
            if name:
                yield Entry(name, home, node, _text_of(after))


def _is_attribute(node: ast.AST) -> bool:
    target = (
        node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
    )
    return isinstance(target, ast.Attribute)


def _text_of(node: ast.stmt) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return inspect.cleandoc(node.value.value) if is_text else ""  # type: ignore[attr-defined]


def _decorators(entry: Entry) -> list[str]:
    decorators = getattr(entry.node, "decorator_list", [])
    return [entry.home.source(each).removeprefix("contextlib.") for each in decorators]


def _twin_of(entry: Entry) -> str:
    """The verb whose async twin a value is; ``""`` for any other value."""
    value = getattr(entry.node, "value", None)
    is_twin = isinstance(value, ast.Call) and entry.home.source(value.func) == "async_twin"
    return entry.home.source(value.args[0]) if is_twin else ""  # type: ignore[union-attr]


# --- docstrings ---


def _span(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


class Docstrings:
    """Writes docstrings as Markdown, with links to the classes that have an entry."""

    def __init__(self, names: Sequence[str]) -> None:
        counted = Counter(name.lower() for name in names)
        self._alone = {name for name in names if counted[name.lower()] == 1}

    def markdown(self, doc: str, *, own_name: str) -> str:
        """Paragraphs, code, and sections such as ``Args:`` as lists."""
        parts: list[str] = []
        for block in _blocks(doc):
            first = block[0]
            if _SECTION.fullmatch(first):
                parts.append(f"**{first[:-1]}**\n\n{self._section(block, own_name)}")
            elif first.startswith((">>>", "    ")):
                parts.append(_example(dedent("\n".join(block))))
            elif first.startswith("- "):
                parts.append("\n".join(f"- {self.line(item, own_name)}" for item in _items(block, "- ")))
            elif text := " ".join(block).removesuffix("::").strip():
                parts.append(self.line(text, own_name))
        return "\n\n".join(parts)

    def line(self, text: str, own_name: str) -> str:
        """Text outside of code blocks, on one line."""
        pieces = re.split(r"``(.+?)``", " ".join(text.split()))
        plain = (re.sub(r"([*\\])", r"\\\1", piece).replace("<", "&lt;") for piece in pieces[::2])
        code = (self.code(piece, own_name) for piece in pieces[1::2])
        return "".join(one + other for one, other in zip(plain, [*code, ""], strict=True))

    def code(self, text: str, own_name: str) -> str:
        """A code span; a link if it is a class of the page, other than its own (``ask`` may be any method)."""
        return self.link(text) if text[:1].isupper() and text != own_name else _span(text)

    def link(self, name: str) -> str:
        """A code span that leads to the heading of that name, if there is just one."""
        return f"[{_span(name)}](#{name.lower()})" if name in self._alone else _span(name)

    def _section(self, block: list[str], own_name: str) -> str:
        title, lines = block[0][:-1], [line[4:] for line in block[1:] if line]
        if title in ("Returns", "Yields"):
            return self.line(" ".join(lines), own_name)
        items = (item.partition(": ") for item in _items(lines, ""))
        return "\n".join(f"- {self.code(name, own_name)}: {self.line(text, own_name)}" for name, _, text in items)


def _blocks(doc: str) -> Iterator[list[str]]:
    """Parts of a docstring: a paragraph, a list, code, or a section with all that is indented below it."""
    blocks: list[list[str]] = []
    for paragraph in filter(None, doc.split("\n\n")):
        lines = paragraph.strip("\n").splitlines()
        above = blocks[-1][0] if blocks else ""
        if lines[0].startswith(" ") and (above.startswith(" ") or _SECTION.fullmatch(above)):
            blocks[-1] += ["", *lines]
        else:
            blocks.append(lines)
    return iter(blocks)


def _items(lines: Sequence[str], mark: str) -> Iterator[str]:
    """Items of a list, whose further lines are indented."""
    item = ""
    for line in lines:
        if line.startswith(" ") or not line.startswith(mark):
            item += f" {line.strip()}"
        else:
            if item:
                yield item
            item = line.removeprefix(mark)
    if item:
        yield item


# --- entries ---


def _parameters(entry: Entry, *, is_method: bool) -> list[str]:
    """The parameters of a function as they are written, without ``self``."""
    node, source = entry.node, entry.home.source
    assert isinstance(node, _Function)
    arguments = node.args

    def shown(argument: ast.arg, default: ast.expr | None, stars: str = "") -> str:
        annotation = f": {source(argument.annotation)}" if argument.annotation else ""
        between = " = " if annotation else "="
        return f"{stars}{argument.arg}{annotation}{between + source(default) if default else ''}"

    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults]
    parts = [shown(*pair) for pair in zip(places, defaults, strict=True)]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        parts.append(shown(arguments.vararg, None, "*"))
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [shown(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        parts.append(shown(arguments.kwarg, None, "**"))
    parts = parts[1:] if is_method and "staticmethod" not in _decorators(entry) else parts
    return parts[1:] if parts[:1] == ["/"] else parts


def _example(text: str) -> str:
    try:
        ast.parse("" if text.startswith(">>>") else text)
    except SyntaxError:  # a drawing
        return f"```text\n{text}\n```"
    return _fenced(text)


def _fenced(*lines: str) -> str:
    return "\n".join(("```python", *lines, "```"))


def _call(start: str, parameters: Sequence[str], end: str) -> str:
    line = f"{start}({', '.join(parameters)}){end}"
    if len(line) <= LONGEST_LINE:
        return line
    return "\n".join([f"{start}(", *(f"    {each}," for each in parameters), f"){end}"])


def _signature(entry: Entry, *, is_method: bool) -> str:
    node = entry.node
    assert isinstance(node, _Function)
    decorators = _decorators(entry)
    returned = entry.home.source(node.returns) if node.returns else ""
    is_async = isinstance(node, ast.AsyncFunctionDef) and "blocking" not in decorators
    if "blocking" in decorators:
        returned = re.sub(r"^AsyncIterator\b", "Iterator", returned)
    start = f"{'async ' if is_async else ''}def {entry.name}"
    call = _call(start, _parameters(entry, is_method=is_method), f" -> {returned}" if returned else "")
    return _fenced(*(f"@{name}" for name in decorators if name in _SHOWN_DECORATORS), call)


def _value(entry: Entry) -> str:
    """A field or constant: name, type and value."""
    node, source = entry.node, entry.home.source
    annotation = getattr(node, "annotation", None)
    if isinstance(annotation, ast.Subscript) and source(annotation.value) == "Annotated":
        annotation = annotation.slice.elts[0]  # type: ignore[attr-defined]
    value = None if _is_attribute(node) else getattr(node, "value", None)
    of_type = f": {source(annotation)}" if annotation else ""
    return f"{entry.name}{of_type}{f' = {source(value)}' if value else ''}"


class _Class:
    """A class with the members of those bases that have no entry of their own."""

    def __init__(self, entry: Entry, names: Sequence[str]) -> None:
        assert isinstance(entry.node, ast.ClassDef)
        self.entry, self.node = entry, entry.node
        self.decorators = _decorators(entry)
        self.bases = [entry.home.source(base) for base in self.node.bases]
        self.members = {each.name: each for each in _entries(entry.home, self.node.body)}
        if init := self.members.get("__init__"):
            attributes = _entries(entry.home, init.node.body)  # type: ignore[attr-defined]
            self.members |= {each.name: each for each in attributes if each.doc and _is_attribute(each.node)}
        self.has_fields = any(each.startswith("dataclass") for each in self.decorators) or "TypedDict" in self.bases
        for base in self.bases:
            if base not in names and (base in entry.home.imports or _is_here(entry.home, base)):
                inner = _Class(find(entry.home.name, base), names)
                self.members = {**inner.members, **self.members}
                self.has_fields = self.has_fields or inner.has_fields

    def signature(self) -> str:
        """The class as it is called, or as it is declared."""
        shown = [f"@{each}" for each in self.decorators if each.startswith("dataclass")]
        init = self.members.get("__init__")
        is_declared = init is None or "Protocol" in self.bases or bool(shown)
        bases = f"({', '.join(self.bases)})" if self.bases and is_declared else ""
        start = f"class {self.entry.name}{bases}"
        return _fenced(
            *shown, start if is_declared or init is None else _call(start, _parameters(init, is_method=True), "")
        )

    def public(self) -> Iterator[Entry]:
        """Documented members, and all fields of a dataclass."""
        for each in self.members.values():
            is_field = self.has_fields and isinstance(each.node, ast.AnnAssign)
            if not each.name.startswith("_") and (each.doc or is_field or _twin_of(each)):
                yield each


def _is_here(home: Module, name: str) -> bool:
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in home.tree.body)


class Page:
    """The entries of the page, which refer to each other."""

    def __init__(self) -> None:
        exported = {name: sorted(module(name).imports) for name in ("judgetree", "judgetree.evaluation")}
        testing = ast.literal_eval(_value_of("judgetree.testing", "__all__"))
        errors = "judgetree.modules.errors"
        known = {name for names in exported.values() for name in names}
        self.sections: dict[str, list[tuple[str, str]]] = {
            **{home: [(home, name) for name in names] for home, names in exported.items()},
            "judgetree.testing": [("judgetree.testing", name) for name in testing],
            "Contracts and results": [tuple(path.rsplit(".", 1)) for path in CONTRACTS],  # type: ignore[misc]
            "Errors": [
                (errors, node.name)
                for node in module(errors).tree.body
                if isinstance(node, ast.ClassDef) and node.name not in known and not node.name.startswith("_")
            ],
        }
        self.names = [name for entries in self.sections.values() for _, name in entries]
        self._docs = Docstrings(self.names)

    def markdown(self) -> str:
        """All sections, each with its names first."""
        parts = []
        for title, entries in self.sections.items():
            listed = " · ".join(self._docs.link(name) for _, name in entries)
            parts += [f"## {title}", self._lead(title), listed]
            parts += [self.entry(find(*each), has_home=title == "Contracts and results") for each in entries]
        return "\n\n".join(parts) + "\n"

    def _lead(self, title: str) -> str:
        """What stands below the title: of a package its docstring."""
        if title in LEADS:
            return LEADS[title]
        path = module(title).path.with_suffix(".py")
        return self._docs.markdown(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "", own_name="")

    def entry(self, entry: Entry, *, has_home: bool) -> str:
        """Heading, signature and docstring of one name, with its members."""
        parts = [f"### {entry.name}"]
        if has_home:
            parts.append(f"In `{entry.home.name}`.")
        if isinstance(entry.node, ast.ClassDef):
            parts += self._class(_Class(entry, self.names))
        elif isinstance(entry.node, _Function):
            parts += [_signature(entry, is_method=False), self._doc(entry)]
        elif isinstance(entry.node, ast.Module):
            parts += [f"The module `{entry.home.name}`.", self._doc(entry)]
            members = [each for each in _entries(entry.home, entry.node.body) if each.doc and each.name[0] != "_"]
            parts += self._members(entry.name, members, is_method=False)
        elif verb := _twin_of(entry):
            parts.append(f"Async twin of {self._docs.link(verb)}.")
        else:
            parts += self._constant(entry)
        return "\n\n".join(filter(None, parts))

    def _constant(self, entry: Entry) -> Iterator[str]:
        value = getattr(entry.node, "value", None)
        annotation = entry.home.source(entry.node.annotation) if isinstance(entry.node, ast.AnnAssign) else ""
        yield _fenced(f"{entry.name}: {annotation}" if annotation else _value(entry))
        yield self._doc(entry)
        if entry.name in NAMES_ELSEWHERE:
            yield f"[The names]({NAMES_ELSEWHERE[entry.name]})."
        elif isinstance(value, ast.Dict):
            keys = [str(key.value) if isinstance(key, ast.Constant) else _named(entry.home, key) for key in value.keys]
            yield f"Names: {', '.join(f'`{key}`' for key in keys)}."

    def _class(self, shown: _Class) -> Iterator[str]:
        entry = shown.entry
        yield shown.signature()
        yield self._doc(entry)
        if init := shown.members.get("__init__"):
            yield self._docs.markdown(init.doc, own_name=entry.name)
        members = list(shown.public())
        if entry.name in FIELDS_ELSEWHERE:
            yield f"[Its fields]({FIELDS_ELSEWHERE[entry.name]})."
            members = [each for each in members if not isinstance(each.node, ast.AnnAssign)]
        yield from self._members(entry.name, members, is_method=True)

    def _members(self, owner: str, members: Sequence[Entry], *, is_method: bool) -> Iterator[str]:
        """Fields and properties as a list, then each method below a heading of its own."""
        twins = {_twin_of(each): each.name for each in members if _twin_of(each)}
        values = [each for each in members if not _is_method(each) and not _twin_of(each)]
        yield "\n".join(self._field(each, owner) for each in values)
        for each in filter(_is_method, members):
            yield f"#### {owner}.{each.name}"
            yield _signature(each, is_method=is_method)
            yield self._doc(each, owner=owner)
            if each.name in twins:
                yield f"Async twin: `{twins[each.name]}`."

    def _field(self, entry: Entry, owner: str) -> str:
        if isinstance(entry.node, _Function):
            returned = entry.home.source(entry.node.returns) if entry.node.returns else ""
            shown = f"{entry.name}: {returned}" if returned else entry.name
        else:
            shown = _value(entry)
        if isinstance(entry.node, ast.ClassDef):
            shown = f"class {entry.name}"
        doc = self._doc(entry, owner=owner).replace("\n", "\n  ").replace("\n  \n", "\n\n")
        return f"- `{shown}`{f': {doc}' if doc else ''}"

    def _doc(self, entry: Entry, *, owner: str = "") -> str:
        return self._docs.markdown(entry.doc, own_name=owner or entry.name)


def _is_method(entry: Entry) -> bool:
    return isinstance(entry.node, _Function) and not {"property", "cached_property"} & set(_decorators(entry))


def _named(home: Module, key: ast.expr | None) -> str:
    """The text of a constant that a key of a mapping names."""
    entry = find(home.name, home.source(key)) if key else None
    return str(ast.literal_eval(entry.node.value)) if entry else ""  # type: ignore[attr-defined]


def _value_of(home: str, name: str) -> ast.expr:
    value: ast.expr = find(home, name).node.value  # type: ignore[attr-defined]
    return value


def python_names() -> str:
    """All public names as Markdown."""
    return Page().markdown()

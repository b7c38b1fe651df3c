"""Parts of one's own by import path, plug-in and object; what their names and sources say."""

import linecache
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from judgetree.modules import parts
from judgetree.modules.errors import SettingsError
from judgetree.modules.parts import check_name, find_part, fingerprint_of, instantiate, part_of, register_object
from tests.plug_ins import install_plug_in


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module in the working directory; the import system forgets it afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "own_parts", raising=False)
    file = tmp_path / "own_parts.py"
    file.write_text("class Mine:\n    def __init__(self, llm=None):\n        self.llm = llm\n\nmine = Mine(3)\n")
    return file


def test_a_part_is_imported_from_the_working_directory(module: Path) -> None:
    part = find_part("judge", "own_parts:Mine")
    assert (part.name, len(part.source), part.is_built_in) == ("own_parts:Mine", 12, False)
    assert instantiate(part, llm=7, settings="not taken").llm == 7  # type: ignore[attr-defined]
    assert instantiate(find_part("judge", "own_parts:mine"), llm=7).llm == 3  # type: ignore[attr-defined]
    del sys.modules["own_parts"]
    module.write_text(module.read_text() + "# another version\n")
    assert find_part("judge", "own_parts:Mine").source != part.source


def test_an_object_is_found_by_its_name_in_this_process_only(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        def fingerprint(self) -> dict[str, str]:
            return {"kind": "a"}

    given = Named()
    name = register_object(given)
    assert find_part("judge", name).value is part_of("judge", given).value is given
    assert register_object(Named()) == name, "equal fingerprints are one part"
    monkeypatch.setattr(parts, "_GIVEN", {})
    with pytest.raises(SettingsError, match="was given as an object"):
        find_part("judge", name)


def test_what_is_made_with_other_values_has_another_name() -> None:
    class Pieces(BaseModel):
        k: int = 3
        kwargs: dict[str, object] = {}

        def build(self) -> None: ...

    def builder(k: int) -> Callable[[], int]:
        return lambda: k

    given = [Pieces(k=1), Pieces(k=5), Pieces(kwargs={"k": 1}), Pieces(k=1).build, Pieces(k=5).build]
    given += [partial(Pieces, k=1), partial(Pieces, k=5), builder(1), builder(5)]
    names = [register_object(each) for each in given]
    assert len(set(names)) == len(names)
    assert [find_part("retriever", name).value for name in names] == given
    assert part_of("retriever", given[5]).source == part_of("retriever", Pieces).source
    again = [register_object(each) for each in (Pieces(k=5), partial(Pieces, k=5), builder(5))]
    assert again == [names[1], names[6], names[8]]


def test_plain_objects_have_the_digest_of_their_attributes_but_of_no_lists() -> None:
    class Plain:
        def __init__(self, model: str) -> None:
            self.model = model
            self.seen: list[str] = []

    one, other = Plain("a"), Plain("b")
    name = register_object(one)
    assert register_object(other) != name
    one.seen.append("a call")
    assert register_object(one) == name
    assert find_part("llm", name).value is one


def choose(llm: object = None, **options: object) -> object:
    return options


@dataclass
class Options:
    stop: frozenset[str]


class Printed:
    def __init__(self, value: object) -> None:
        self.value = value

    def fingerprint(self) -> dict[str, object]:
        return {"value": self.value}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a"}, {"b"}),
        (Path("a"), Path("b")),
        (date(2026, 1, 1), date(2026, 1, 2)),
        (b"a", b"b"),
        (Options(frozenset("a")), Options(frozenset("b"))),
        (np.arange(2000), np.where(np.arange(2000) == 1000, 0, np.arange(2000))),
        (Printed(1), Printed(2)),
        (partial(choose, k=1), partial(choose, k=2)),
        ({1: {"a"}, "b": 2}, {1: {"c"}, "b": 2}),
    ],
)
def test_values_of_any_kind_tell_parts_apart(one: object, other: object) -> None:
    class Pieces(BaseModel):
        value: Any = None

    def closure(value: object) -> object:
        def build() -> object:
            return value

        return build

    def with_default(value: object) -> object:
        return lambda value=value: value

    def bound(value: object) -> object:
        return partial(choose, value=value)

    for make in (bound, closure, with_default, lambda value: Pieces(value=value), Printed):
        assert register_object(make(one)) != register_object(make(other))


def test_lambdas_of_one_line_are_told_apart() -> None:
    more, less, each, none = [lambda x: x > 0, lambda x: x < 0, lambda x: all(y > 0 for y in x), lambda x: all(not y for y in x)]  # fmt: skip  # noqa: E501
    assert len({register_object(one) for one in (more, less, each, none)}) == 4


def test_lambdas_of_one_file_are_told_apart() -> None:
    assert len({register_object(each) for each in (lambda: 1, lambda: 2, lambda: [choose])}) == 3


NAMES = """
from functools import partial
from judgetree.modules.parts import fingerprint_of, part_of, register_object

class Mine:
    def __init__(self, stop):
        self.stop = stop

    def fingerprint(self):
        return {"stop": self.stop, "self": [object()]}

mine = Mine(frozenset("abcdefgh"))
print(register_object(mine), register_object(partial(Mine, {"x", "y", "z"}, object())))
print(register_object(lambda: mine))
print(fingerprint_of(part_of("judge", Mine), mine)["own.stop"])
"""


def test_names_and_fingerprints_are_equal_in_every_process() -> None:
    def names(seed: int) -> str:
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        return subprocess.run(
            [sys.executable, "-c", NAMES], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert names(1) == names(2)


def test_an_object_that_answers_to_every_name_is_a_part() -> None:
    class Anything:
        def __getattr__(self, name: str) -> object:
            return lambda *arguments: {}

    assert register_object(Anything()) == register_object(Anything())


def test_a_file_that_changed_after_its_import_is_refused(module: Path) -> None:
    find_part("judge", "own_parts:Mine")
    module.write_text(module.read_text() + "# another version\n")
    with pytest.raises(SettingsError, match=r"own_parts.py has changed since Mine was imported.*Start Python anew"):
        find_part("judge", "own_parts:Mine")


def test_a_class_of_a_notebook_cell_has_a_source() -> None:
    def source_of(code: str) -> str:
        linecache.cache["cell"] = (len(code), None, code.splitlines(keepends=True), "cell")
        namespace: dict[str, object] = {"__name__": "a_notebook"}
        exec(compile(code, "cell", "exec"), namespace)
        return part_of("judge", namespace["Mine"]).source

    one = source_of("class Mine:\n    def judge(self):\n        return 1\n")
    assert len(one) == 12
    assert source_of("class Mine:\n    def judge(self):\n        return 2\n") != one


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_such_module:Mine", "cannot be imported: No module named"),
        ("own_parts:Yours", "has no attribute 'Yours'"),
        ("own_parts:", "cannot be imported"),
        (":Mine", "cannot be imported"),
        ("broken:Mine", "failed: ZeroDivisionError: division by zero"),
        ("script:Mine", "failed: SystemExit: 0"),
        ("panic:Mine", "failed: BaseException: index out of bounds"),
    ],
)
def test_what_cannot_be_imported_is_named(module: Path, name: str, problem: str) -> None:
    module.with_name("broken.py").write_text("1 / 0\n")
    module.with_name("script.py").write_text("raise SystemExit(0)\n")
    module.with_name("panic.py").write_text("raise BaseException('index out of bounds')\n")
    with pytest.raises(SettingsError, match=problem):
        find_part("judge", name)


def test_what_needs_more_than_is_offered_says_so(module: Path) -> None:
    module.write_text("def make(corpus):\n    return corpus\n\ndef take(**anything):\n    return anything\n")
    with pytest.raises(SettingsError, match=r"missing 1 required .*'corpus'. It may take index, topk, by these names"):
        instantiate(find_part("retriever", "own_parts:make"), index=1, topk=2)
    assert instantiate(find_part("retriever", "own_parts:take"), index=1, topk=2) == {"index": 1, "topk": 2}


def test_a_plug_in_is_found_by_its_name(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"Unknown judge 'mine'. Allowed: auto; or the import path"):
        check_name("judge", "mine", ("auto",))
    install_plug_in(monkeypatch, module.parent, group="judgetree.judges", name="mine", value="own_parts:Mine")
    assert find_part("judge", "mine").value.__name__ == "Mine"  # type: ignore[attr-defined]
    check_name("judge", "mine", ("auto",))
    with pytest.raises(SettingsError, match=r"Unknown judge 'your'. Allowed: auto, mine; or the import path"):
        check_name("judge", "your", ("auto",))
    with pytest.raises(SettingsError, match="Unknown system 'mine'"):
        check_name("system", "mine", ("judge",))


def test_a_part_whose_making_or_fingerprint_fails_is_named(module: Path) -> None:
    def fail() -> None:
        raise RuntimeError("half-way")

    class Odd:
        def fingerprint(self) -> object:
            return None

    with pytest.raises(SettingsError, match=r"fail' cannot be made: RuntimeError: half-way"):
        instantiate(part_of("judge", fail))
    part = part_of("judge", Odd)
    with pytest.raises(SettingsError, match=r"fingerprint of .*Odd' is None. Give texts by name"):
        fingerprint_of(part, Odd())  # type: ignore[arg-type]

    class Broken:
        def fingerprint(self) -> dict[str, str]:
            raise LookupError("no version")

    with pytest.raises(SettingsError, match=r"fingerprint of .*Broken' failed: LookupError: no version"):
        part_of("judge", Broken())
    with pytest.raises(SettingsError, match=r"fingerprint of .*Broken' failed: LookupError: no version"):
        fingerprint_of(part_of("judge", Broken), Broken())

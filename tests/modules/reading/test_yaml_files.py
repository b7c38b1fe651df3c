"""YAML files of users: whatever stands in them, they are read or refused by name, and soon."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.runs.experiment import experiment_keys
from judgetree.modules.errors import SettingsError
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.reading.yaml_files import read_yaml

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("day: !!timestamp 2020-13-45", "month must be in 1..12"),
        (f"number: {'9' * 5000}", "4300"),
        ("number: !!int 0b_", "invalid literal"),
        ("yes: !!bool maybe", "maybe"),
        ("topk: 3\njudge: auto\ntopk: 10", "'topk' stands twice"),
        ("topk: 3\nllm: local:", "line 2, column 11: mapping values .* in quotes, such as 'local:'"),
        (BOMB, "more than 1,000,000 values"),
        ("deep: " + "[" * 3000, "nested too deep"),
        ("!!python/object/apply:os.getcwd []", "python/object"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, content: str, said: str) -> None:
    (file := tmp_path / "own.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=f"The experiment .*own.yaml cannot be read: (?s:.*){said}"):
        experiment_keys(file)
    with pytest.raises(SettingsError, match=r"The prompts in .*own\.yaml cannot be read"):
        load_prompts(file)


def test_aliases_and_merged_keys_are_read(tmp_path: Path) -> None:
    (file := tmp_path / "own.yaml").write_text(
        "outer:\n  base: &base {<<: &first {k: 1, m: 2}, k: 3}\nother: {<<: *base, k: 4}\nown: &own [*own]\n",
        encoding="utf-8",
    )
    content = read_yaml(file, what="file")
    assert isinstance(content, dict)
    assert (content["outer"]["base"], content["other"]) == ({"k": 3, "m": 2}, {"k": 4, "m": 2})

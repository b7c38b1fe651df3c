from pathlib import Path

import pytest

from judgetree.evaluation.datasets.registry import DATASETS, load_dataset
from judgetree.modules.errors import LoadingError, SettingsError
from tests.eval.dataset_files import hotpot_row, write_lines, write_list


@pytest.fixture(scope="module")
def hotpot(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = (hotpot_row(number, [(f"Mill {number}", ["Text."])], [(f"Mill {number}", 0)]) for number in range(5))
    return f"hotpotqa:{write_list(tmp_path_factory.mktemp('registry'), *rows)}"


def test_a_spec_names_format_and_path(hotpot: str) -> None:
    dataset = load_dataset(hotpot)
    assert dataset.name == "hotpotqa"
    assert len(dataset.questions) == len(dataset.documents) == 5


def test_ids_are_chosen_in_file_order_before_the_limit(hotpot: str) -> None:
    chosen = load_dataset(hotpot, ids={"q3", "q1", "q4"}, limit=2)
    assert ([question.id for question in chosen.questions], len(chosen.documents)) == (["q1", "q3"], 5)


@pytest.mark.parametrize("spec", ["hotpotqa", "hotpotqa:", "hotpot:x.json", "x.json", ""])
def test_a_spec_that_is_none_says_what_is_allowed(spec: str) -> None:
    with pytest.raises(
        SettingsError, match="Allowed names: questions, hotpotqa, 2wiki, musique, beir, flashrag, standards"
    ):
        load_dataset(spec)


def test_a_split_fits_only_sets_that_have_some(hotpot: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="split='dev' is not allowed"):
        load_dataset(hotpot, split="dev")
    with pytest.raises(LoadingError, match="no split 'dev'"):
        load_dataset(f"beir:{tmp_path}", split="dev")


@pytest.mark.parametrize("name", DATASETS)
def test_every_format_refuses_a_path_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(LoadingError):
        load_dataset(f"{name}:{tmp_path / 'none'}")


@pytest.mark.parametrize("name", ["hotpotqa", "2wiki", "musique", "flashrag", "canard", "cast", "mtrag"])
def test_every_format_refuses_rows_of_another(name: str, tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="Is the format right"):
        load_dataset(f"{name}:{write_lines(tmp_path, {'text': 'x'})}")


def test_the_home_folder_may_be_written_short(hotpot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_list(tmp_path, hotpot_row(1))
    assert len(load_dataset("hotpotqa:~/rows.json").questions) == 1


@pytest.mark.parametrize("name", DATASETS)
def test_every_format_tells_where_it_is_had_and_its_licence(name: str) -> None:
    assert DATASETS[name].licence
    assert DATASETS[name].homepage

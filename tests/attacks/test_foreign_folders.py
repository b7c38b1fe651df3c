"""A folder is not trusted because it is current: what others put there neither runs nor gets a key."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.addresses import Address
from judgetree.modules.errors import SettingsError
from judgetree.modules.parts import find_part, plug_ins
from judgetree.modules.settings import HOME_NAME, Settings, find_home, load_settings
from judgetree.modules.trust.naming import INERT, names_something
from judgetree.modules.trust.owners import SAFE_FOLDERS
from tests.app.conftest import Cli, cli, command, scripted, surroundings
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.plug_ins import install_plug_in

__all__ = ["cli", "scripted", "surroundings"]

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another user"
)
EVE = 4242
"""Id of a user that the system does not know."""
MODULE = "import pathlib\npathlib.Path('owned').touch()\ndef make():\n    return None\n"


@pytest.fixture(autouse=True)
def own_consents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No consent from outside, no folder that is named safe."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(SAFE_FOLDERS, raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path / "config"


def write_env(text: str) -> Path:
    file = Path(".env").absolute()
    file.write_text(text, encoding="utf-8")
    return file


def of_eve(path: Path) -> Path:
    os.chown(path, EVE, EVE, follow_symlinks=False)
    return path


def anybodys(path: Path) -> Path:
    path.chmod(0o777 if path.is_dir() else 0o666)
    return path


def linked_by_eve(path: Path) -> Path:
    """A link of Eve's to a file of this user's."""
    target = path.rename(path.with_name(f"{path.name}.target"))
    path.symlink_to(target)
    return of_eve(path)


def linked_to_eves(path: Path) -> Path:
    """A link of this user's to a file of Eve's."""
    target = of_eve(path.rename(path.with_name(f"{path.name}.target")))
    path.symlink_to(target)
    return path


def in_eves_folder(path: Path) -> Path:
    of_eve(path.parent)
    return path


def in_anybodys_folder(path: Path) -> Path:
    anybodys(path.parent)
    return path


FOREIGN = [
    pytest.param(anybodys, id="writable by all"),
    pytest.param(in_anybodys_folder, id="in a folder that is"),
    *(
        pytest.param(make, id=make.__name__, marks=as_root)
        for make in (of_eve, linked_by_eve, linked_to_eves, in_eves_folder)
    ),
]
Make = Callable[[Path], Path]


# --- whose it is ---


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_foreign_env_file_is_refused_by_name(foreign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    file = foreign(write_env("JUDGETREE_RETRIES=7\n"))
    with pytest.raises(SettingsError) as caught:
        load_settings()
    for part in (str(file), SAFE_FOLDERS, f"judgetree trust {file.parent}"):
        assert part in str(caught.value)
    assert "uid 4242" in str(caught.value) or "anybody may write to" in str(caught.value)
    monkeypatch.setenv("JUDGETREE_RETRIES", "2")
    assert load_settings().retries == 2, "nothing of the file is needed"
    monkeypatch.delenv("JUDGETREE_RETRIES")
    monkeypatch.setenv(SAFE_FOLDERS, f"/nowhere{os.pathsep}{file.parent}")
    assert load_settings().retries == 7
    monkeypatch.setenv(SAFE_FOLDERS, "*")
    assert load_settings().retries == 7


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_foreign_env_file_without_settings_stops_no_one(foreign: Make) -> None:
    foreign(write_env("OPENAI_API_KEY=x\nOTHER=1\n"))
    assert load_settings().retries == 3


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(anybodys, id="writable by all"),
        *(pytest.param(make, id=make.__name__, marks=as_root) for make in (of_eve, linked_by_eve, linked_to_eves)),
    ],
)
def test_a_foreign_home_is_refused_by_name(foreign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGETREE_HOME")
    home, below = Path(HOME_NAME).absolute(), Path("below/deep").absolute()
    home.mkdir()
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert find_home() == home
    foreign(home)
    with pytest.raises(SettingsError, match=f"{home} is not used: .*JUDGETREE_HOME={home}"):
        load_settings()
    monkeypatch.setenv("JUDGETREE_HOME", str(home))
    assert load_settings().home == home
    monkeypatch.delenv("JUDGETREE_HOME")
    (below / HOME_NAME).mkdir()
    assert load_settings().home == below / HOME_NAME, "the nearest one counts"


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("depth", [0, 1])
def test_a_foreign_module_of_the_current_folder_does_not_run(
    foreign: Make, depth: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    name = f"of_eve_{abs(hash(request.node.name))}"
    file = Path(f"{name}.py" if depth == 0 else f"{name}/inner.py").absolute()
    file.parent.mkdir(exist_ok=True)
    file.write_text(MODULE)
    foreign(file)
    for path in (sys.path, ["", *sys.path]):  # as the command line, and as a notebook or python -m
        monkeypatch.setattr(sys, "path", list(path))
        with pytest.raises(SettingsError, match=SAFE_FOLDERS):
            find_part("judge", f"{name}{'.inner' * depth}:make")
    assert not Path("owned").exists()
    monkeypatch.setenv(SAFE_FOLDERS, str(Path.cwd()))
    find_part("judge", f"{name}{'.inner' * depth}:make")
    assert Path("owned").exists()


def test_no_module_is_looked_for_in_a_sticky_folder_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    Path.cwd().chmod(0o1777)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    Path("in_tmp.py").write_text(MODULE)
    with pytest.raises(SettingsError, match="is not searched, since anybody may write to"):
        find_part("judge", "in_tmp:make")
    write_env("JUDGETREE_RETRIES=7\n")
    assert load_settings().retries == 7, "no other user can replace a file there"


def test_a_plug_in_beside_replaces_none_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, folder in enumerate([tmp_path / "beside", tmp_path / "installed"]):
        folder.mkdir()
        install_plug_in(monkeypatch, folder, group="judgetree.judges", name="mine", value=f"number_{number}:make")
        (folder / "some_plug_ins-1.0.dist-info").rename(folder / f"pack_{number}-1.0.dist-info")
        (folder / f"pack_{number}-1.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: pack-{number}\nVersion: 1.0\n"
        )
    assert plug_ins("judge")["mine"].value == "number_1:make", "the first place of sys.path counts"


IN_FOLDERS_OF_OTHERS = """
import os, sys
from judgetree import load_settings
from judgetree.modules.errors import SettingsError

os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
for name in ("roots", "eves", "adas"):
    os.chdir(os.path.join(sys.argv[2], name))
    try:
        print(load_settings().retries)
    except SettingsError as error:
        print("refused" if "belongs to" in str(error) else error)
"""


@as_root
@pytest.mark.parametrize(("uid", "said"), [(0, ["7", "refused", "refused"]), (EVE, ["7", "7", "refused"])])
def test_the_rule_is_that_of_the_user_who_runs(uid: int, said: list[str]) -> None:
    """A real process of another user: root's files are used, its own are, a third one's are not."""
    with tempfile.TemporaryDirectory() as common:  # other users cannot enter the folders of pytest
        Path(common).chmod(0o755)
        for name, owner in (("roots", 0), ("eves", EVE), ("adas", 4343)):
            file = Path(common, name, ".env")
            file.parent.mkdir(mode=0o755)
            file.write_text("JUDGETREE_RETRIES=7\n")
            for place in (file, file.parent):
                os.chown(place, owner, owner)
        code = [sys.executable, "-c", IN_FOLDERS_OF_OTHERS, str(uid), common]
        told = subprocess.run(code, capture_output=True, text=True, check=True)
    assert told.stdout.split() == said


@as_root
def test_root_behind_sudo_is_the_user_who_called_it(monkeypatch: pytest.MonkeyPatch) -> None:
    of_eve(write_env("JUDGETREE_RETRIES=7\n"))
    monkeypatch.setenv("SUDO_UID", str(EVE))
    assert load_settings().retries == 7


# --- consent ---

HOSTILE = {
    "code": "JUDGETREE_LLM=mod:make",
    "exported code": "export JUDGETREE_JUDGE_LLM='mod:make'",
    "name in lower case": "judgetree_llm=mod:make",
    "code beside a known name": "JUDGETREE_LLM=openai:gpt-4o\njudgetree_llm=mod:make",
    "code that is spelled by a variable": "X=mod:make\nJUDGETREE_LLM=${X}",
    "model file": "JUDGETREE_LLM=local:/tmp/evil.gguf",
    "completing model": "JUDGETREE_CONDENSE_LLM=completion:http://evil/v1#m",
    "address": "JUDGETREE_LLM=http://evil/v1#m",
    "address of a known model": "JUDGETREE_LLM_BASE_URL=https://evil/v1",
    "address of embeddings": "JUDGETREE_EMBEDDINGS=http://evil/v1#m",
    "database": "JUDGETREE_CHECKPOINTS=postgresql://evil/trees",
    "vectors": "JUDGETREE_MILVUS_URI=http://evil:19530",
    "web search": "JUDGETREE_SEARXNG_URL=http://evil",
    "log that is appended to": "JUDGETREE_QA_LOG=~/.bashrc",
    "home with a planted cache": "JUDGETREE_HOME=planted",
    "prompts": "JUDGETREE_PROMPTS=/etc/passwd",
    "name of another's endpoint": 'JUDGETREE_ENDPOINT_NAMES={"evil:80/v1": "lab"}',
}
HARMLESS = (
    "JUDGETREE_LLM_API_KEY=sk-mine\nJUDGETREE_TEMPERATURE=0.5\nJUDGETREE_LLM=openai:gpt-4o-mini\n"
    "JUDGETREE_JUDGE_LLM=dashscope:qwen-plus\nJUDGETREE_CONDENSE_LLM=local:\nJUDGETREE_EMBEDDINGS=local:use\n"
    "JUDGETREE_THINKING=off\nJUDGETREE_RECORD=none\nJUDGETREE_JUDGE_ALONE_THRESHOLD=0.4\nOPENAI_BASE_URL=http://evil\n"
)


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_what_an_env_file_names_waits_for_consent(line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("JUDGETREE_")]:
        monkeypatch.delenv(name)
    Path("mod.py").write_text(MODULE)
    file = write_env(f"# of the project\nJUDGETREE_RETRIES=7\n\n{line}\n")
    variable = line.splitlines()[-1].removeprefix("export ").partition("=")[0].upper()
    number = 3 + len(line.splitlines())
    done = cli("threads").refused(f"{variable} (line {number})", str(file), f"judgetree trust {file.parent}")
    assert not Path("owned").exists()
    assert len(done.err.splitlines()) == 1
    cli("trust").ok()
    assert load_settings().retries == 7
    file.write_text(f"{file.read_text()}# changed\n")
    with pytest.raises(SettingsError, match="judgetree trust"):
        load_settings()


def test_a_newcomer_needs_no_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    write_env(HARMLESS)
    settings = load_settings()
    assert (settings.llm, settings.temperature, settings.record) == ("openai:gpt-4o-mini", 0.5, "none")
    assert "OPENAI_BASE_URL" not in os.environ


def test_what_the_environment_or_an_argument_sets_needs_no_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    write_env("JUDGETREE_LLM=mod:make\nJUDGETREE_SEARXNG_URL=http://evil\nJUDGETREE_RETRIES=7\n")
    monkeypatch.setenv("JUDGETREE_LLM", "openai:mine")
    with pytest.raises(SettingsError, match=r": JUDGETREE_SEARXNG_URL \(line 2\)\."):
        load_settings()
    assert load_settings(searxng_url="").retries == 7
    with pytest.raises(SettingsError, match="JUDGETREE_SEARXNG_URL"):
        Settings()
    monkeypatch.setenv(SAFE_FOLDERS, str(Path.cwd().parent))
    assert load_settings().searxng_url == "http://evil"


def test_safe_folders_are_named_in_the_environment_alone(caplog: pytest.LogCaptureFixture) -> None:
    write_env(f"{SAFE_FOLDERS}=*\nJUDGETREE_LLM=mod:make\n")
    with pytest.raises(SettingsError, match="JUDGETREE_LLM"):
        load_settings()


def test_consents_are_listed_and_taken_back(
    cli: Cli, own_consents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGETREE_HOME")
    cli("trust").refused("There is no .env, and no .judgetree of yours")
    write_env("JUDGETREE_SEARXNG_URL=http://ada:lovelace@127.0.0.1:9\n")
    here, other = Path.cwd(), tmp_path / "other"
    other.mkdir()
    (other / ".env").write_text("JUDGETREE_RETRIES=1\n")
    told = cli("trust").ok()
    assert "JUDGETREE_SEARXNG_URL=http://***@127.0.0.1:9" in told.err
    cli("trust", str(other)).ok()
    listed = [each["path"] for each in json.loads(cli("trust", "--list", "--json").out)]
    assert listed == sorted([str(here / ".env"), str(other / ".env")])
    records = list(own_consents.rglob("*.json"))
    assert [oct(each.stat().st_mode & 0o777) for each in (*records, records[0].parent)] == ["0o600", "0o600", "0o700"]
    cli("trust", "--revoke").ok()
    cli("trust", "--revoke").refused("is not trusted")
    cli("threads").refused("JUDGETREE_SEARXNG_URL")


PLANTED = """
import pathlib

from judgetree import build_naive_rag

pathlib.Path("owned").touch()
make = build_naive_rag
"""
QUESTION = "Which oil does KS-1 need?"


@pytest.mark.parametrize("came_along", [True, False])
def test_a_home_that_came_with_a_folder_names_no_code_of_it(
    came_along: bool, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloned folder may hold a .judgetree whose saved threads name the system that is imported to read them."""
    monkeypatch.delenv("JUDGETREE_HOME")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    Path("planted.py").write_text(PLANTED)
    found = TableRetriever({QUESTION: [chunk("a", "KS-1 needs Vellin.")]})
    context = RagContext(reader=FakeLLM(lambda _: "Vellin"), retriever=found)
    with RagSession(system="planted:make", context=context) as session:
        session.ask(QUESTION, thread_id="t")
    if came_along:
        shutil.copytree(Path.cwd(), tmp_path / "clone")
        monkeypatch.chdir(tmp_path / "clone")
    Path("owned").unlink()
    monkeypatch.delitem(sys.modules, "planted")
    if came_along:
        for words in (("tree", "t"), ("ask", "--resume", "--thread-id", "t"), ("fork", "t"), ("explain", "t")):
            cli(*words).refused("'planted:make'", f"judgetree trust {Path.cwd()}")
        assert not Path("owned").exists()
        cli("trust").ok()
    assert "Vellin" in cli("tree", "t").ok().out


def test_a_home_that_came_with_a_folder_sends_no_key_to_its_address(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Milvus Lite embeds the texts of a collection at the address in its schema, with OPENAI_API_KEY."""
    monkeypatch.delenv("JUDGETREE_HOME")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    Path("planted").mkdir()
    Path(HOME_NAME).symlink_to("planted")
    schema = Path(HOME_NAME, "milvus.db", "collections", "planted__1", "schema.json")
    schema.parent.mkdir(parents=True)
    function = {"function_type": 2, "name": "f", "params": {"provider": "openai", "base_url": "http://evil/v1"}}
    schema.write_text(json.dumps({"collection_name": "planted", "functions": [function]}))
    cli("ask", QUESTION, "-c", "planted").refused("'http://evil/v1'", f"judgetree trust {Path.cwd()}")
    schema.unlink()
    os.mkfifo(schema)
    cli("ask", QUESTION, "-c", "planted").refused("schema.json is no file", f"judgetree trust {Path.cwd()}")


@as_root
def test_a_consent_that_another_user_wrote_is_none(cli: Cli, own_consents: Path) -> None:
    write_env("JUDGETREE_SEARXNG_URL=http://evil\n")
    cli("trust").ok()
    assert load_settings().searxng_url
    for record in own_consents.rglob("*.json"):
        of_eve(record)
    with pytest.raises(SettingsError, match="judgetree trust"):
        load_settings()


@as_root
def test_consent_to_its_content_makes_a_foreign_env_file_usable(cli: Cli) -> None:
    file = of_eve(write_env("JUDGETREE_SEARXNG_URL=http://wanted\n"))
    cli("trust").ok()
    assert load_settings(llm="").searxng_url == "http://wanted"
    file.write_text("JUDGETREE_SEARXNG_URL=http://evil\n")
    with pytest.raises(SettingsError, match="uid 4242"):
        load_settings(llm="")


def test_every_setting_that_is_a_text_needs_consent_or_is_marked() -> None:
    """A setting that is added to the class is on the safe side; to be harmless it must be marked, and stand here."""
    texts = {name for name, field in Settings.model_fields.items() if field.annotation in (str, Address, Path)}
    marked = {name for name, field in Settings.model_fields.items() if INERT in field.metadata}
    assert marked == {"conversation_collection"}
    named = {name for name, field in Settings.model_fields.items() if names_something(field)}
    assert named == (texts - marked) | {"prompts", "endpoint_names"}


@pytest.mark.slow
def test_no_package_loads_the_env_file_into_the_environment(tmp_path: Path) -> None:
    """pymilvus does, of the nearest folder above, as if the user had set each variable."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".env").write_text("OPENAI_BASE_URL=http://evil\nHTTPS_PROXY=http://evil\nJUDGETREE_LLM=mod:make\n")
    code = (
        "import os, sys\nimport judgetree\njudgetree.RagSession, judgetree.load_settings\n"
        "import pymilvus, judgetree.modules.retriever.search, judgetree.modules.index.connection\n"
        "print(sorted(set(os.environ) & {'OPENAI_BASE_URL', 'HTTPS_PROXY', 'JUDGETREE_LLM', 'PYTHON_DOTENV_DISABLED'}))"
    )
    clean = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    told = subprocess.run(  # without a file for __main__, as in a notebook
        [sys.executable, "-c", code], cwd=folder, env=clean, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_command_in_a_cloned_folder_sends_no_key_anywhere(cli: Cli, scripted: object) -> None:
    write_env("JUDGETREE_LLM_BASE_URL=http://127.0.0.1:9/v1\n")
    ended = subprocess.run(
        command("doctor", "--json"),
        env={**os.environ, "OPENAI_API_KEY": "sk-real", "JUDGETREE_LLM": "openai:gpt-4o"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "JUDGETREE_LLM_BASE_URL (line 1)" in ended.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs")
def test_a_fifo_in_place_of_the_settings_file_is_named_without_waiting() -> None:
    os.mkfifo(".env")
    with pytest.raises(SettingsError, match="no regular file"):
        load_settings()

"""The files for people who come: what they name exists, what has a schema keeps it, versions and addresses agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import judgetree
from tests.app.conftest import every_command

REPO = Path(__file__).parents[1]
PAGES = {name: (REPO / name).read_text("utf-8") for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")}
FORMS = sorted((REPO / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
CONFIG = REPO / ".github" / "ISSUE_TEMPLATE" / "config.yml"
SCHEMAS = {
    "citation-file-format": [REPO / "CITATION.cff"],
    "github-issue-config": [CONFIG],
    "github-issue-forms": [form for form in FORMS if form != CONFIG],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_keeps_its_schema(schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *map(str, SCHEMAS[schema])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_citation_has_the_version_and_the_placeholder_of_the_package() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((REPO / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == project["version"] == judgetree.__version__
    assert citation["license"] == project["license"]
    home = project["urls"]["Homepage"]
    others = [*project["urls"].values(), yaml.safe_load(CONFIG.read_text("utf-8"))["contact_links"][0]["url"]]
    assert citation["repository-code"] == home
    assert all(url.startswith(home) for url in others)


@pytest.mark.parametrize("page", PAGES)
def test_files_commands_and_targets_that_a_page_names_exist(page: str) -> None:
    text = PAGES[page]
    files = re.findall(r"`([\w.-]+/[\w./-]*)`", text)
    assert [file for file in files if not (REPO / file).exists()] == []
    makefile = (REPO / "Makefile").read_text("utf-8")
    targets = re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    commands = re.findall(r"(?:`|^)judgetree ([a-z]+)", text, re.MULTILINE)
    assert set(commands) <= set(every_command())

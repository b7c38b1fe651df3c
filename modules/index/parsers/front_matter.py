"""Front matter: the YAML or TOML before the text of a Markdown file."""

from __future__ import annotations

import re

_ENDS = {"---": re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE), "+++": re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE)}
_MOST_READ = 32_768


def split_front_matter(text: str) -> tuple[str, str]:
    """Return the front matter with its marks, and the title in it; "" for none of them.

    A text between two rulers that is no mapping is part of the document. Longer front matter than 32,768 characters
    gives no title. Aliases are not followed, so that no small file becomes a large one.

    >>> split_front_matter("---\\ntitle: Pumps\\n---\\n# One")
    ('---\\ntitle: Pumps\\n---', 'Pumps')
    """
    mark, _, rest = text.partition("\n")
    ending = _ENDS.get(mark.rstrip(" \t"))
    found = ending.search(text, len(mark) + 1) if ending and rest else None
    if found is None:
        return "", ""
    content = text[len(mark) + 1 : found.start()]
    if len(content) > _MOST_READ:
        return text[: found.end()], ""
    title = _title_in_toml(content) if mark.startswith("+") else _title_in_yaml(content)
    return ("", "") if title is None else (text[: found.end()], " ".join(title.split()))


def _title_in_yaml(content: str) -> str | None:
    """Return the title; "" for none, None for what is no mapping."""
    import yaml  # noqa: PLC0415 - keeps the package's import fast

    try:
        node = yaml.compose(content, yaml.SafeLoader)
    except RecursionError:
        return ""
    except yaml.YAMLError:
        return None if ":" not in content else ""
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value.lower() == "title" and isinstance(value, yaml.ScalarNode):
            return "" if value.tag == "tag:yaml.org,2002:null" else str(value.value)
    return ""


def _title_in_toml(content: str) -> str | None:
    import tomllib  # noqa: PLC0415 - keeps the package's import fast

    try:
        title = tomllib.loads(content).get("title", "")
    except (ValueError, RecursionError):
        return None
    return title if isinstance(title, str) else ""

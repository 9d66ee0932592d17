"""Features stand behind their seam: nothing outside a feature's folder imports it, or is named after it."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

import pytest

from tests.support.imports import PACKAGE, imports_of, package_sources, parsed

WORDS: Final = {
    "traps": r"(?<![a-z])traps?(?![a-z])",
    "mirrors": r"(?<![a-z])mirrors?(?![a-z])",
    "copies": r"(?<![a-z])(near_cop|exact_cop|content_seen|sketch)",
    "revisits": r"[Rr]evisit|(?<![a-z])[Vv]isit(s|ed)?(?![a-z])",
    "totals": r"(?<![a-z])totals(?!_of)|bytes_account|pack_fetched",
    "votes": r"(?<![a-z])(votes?|ballots?|opic)(?![a-z])|VOTE|Vote|Ballot",
    "tallies": r"(?<![a-z])tall(y|ies)(?![a-z])",
    "whole_hosts": r"[Ww]hole_?[Hh]ost",
    "requisites": r"[Rr]equisite",
    "site_priorities": r"[Ss]ite_?[Pp]riorit",
    "rendering": r"[Rr]ender(s|ed|er|ers|ing)(?![a-z])",
}
"""What names a feature in code, by its folder."""

EXCEPTIONS: Final[dict[str, dict[str, str]]] = {
    "traps": {"scheduler/queues/prioritizers.py": "`FoundUrls.are_traps`, which prioritizers of users ask"},
    "mirrors": {},
    "copies": {
        "content/": "the algorithms: pure, of bytes and tables, and measured by themselves",
        "scheduler/handout/observers.py": "the key of a page's content, which several features read",
    },
    "revisits": {
        "revisiting/": "the rules: pure, of times and rates, and measured by themselves",
        "middlewares/revisits.py": "the path by which projects know the middlewares and their error",
        "spiders/recrawl.py": "a spider for it, whose arguments are its settings",
        "scheduler/queues/prioritizers.py": "`FoundUrls.visits`, which prioritizers of users ask",
    },
    "totals": {"views/watching.py": "counts of the whole crawl, whose growth is shown"},
    "votes": {},
    "whole_hosts": {},
    "requisites": {},
    "site_priorities": {},
    "rendering": {},
    "tallies": {"redisdb/": "keys and scripts of a crawl are one list, and their contracts are checked together"},
}
"""Where a feature is named outside of its folder, and why; at most four places each."""

ELSEWHERE: Final = "features/"
"""The simulated web has traps and copies of its own: it is what crawls are held to."""


@cache
def names_in(source: str) -> set[str]:
    """The names that a module defines, uses or passes, and those of its imports; no text."""
    names = set(imports_of(source))
    for node in ast.walk(parsed(source)):
        names |= {str(getattr(node, part)) for part in ("id", "attr", "arg", "name") if hasattr(node, part)}
    return names


def scripts() -> dict[str, str]:
    """The Lua scripts without their comments, by path."""
    found = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.lua")}
    return {path: re.sub(r"--.*", "", text) for path, text in found.items()}


def naming(word: re.Pattern[str]) -> set[str]:
    """The modules and scripts outside of the folders that a word occurs in."""
    sources = {path: text for path, text in package_sources().items() if not path.startswith(ELSEWHERE)}
    found = {path for path, text in sources.items() if any(map(word.search, names_in(text) | {path}))}
    return found | {path for path, text in scripts().items() if word.search(text)}


@pytest.mark.parametrize("feature", WORDS)
def test_nothing_outside_names_a_feature(feature: str) -> None:
    """No module, field, argument or script, with few exceptions that have their reasons."""
    found, allowed = naming(re.compile(WORDS[feature])), EXCEPTIONS[feature]
    assert sorted(path for path in found if not path.startswith(tuple(allowed))) == []
    assert all(any(path.startswith(place) for path in found) for place in allowed), "an exception is needed"
    assert len(allowed) <= 4


def test_features_are_imported_by_their_parts_only() -> None:
    """Outside of the folders nothing imports a feature, and none of them imports another."""
    for path, text in package_sources().items():
        own = path.split("/")[1] if path.startswith("features/") else ""
        others = {name for name in imports_of(text) if name.startswith("bigcrawl.features.")}
        assert {name.split(".")[2] for name in others} <= {own}, path

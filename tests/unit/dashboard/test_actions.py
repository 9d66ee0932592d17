"""What of `scrapy frontier` may be asked over HTTP, and what not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.commands.running import parse_action
from bigcrawl.dashboard.actions import CHANGES, LOOKS, WORDS_MAX, ActionCall, change_of, read_action_of
from bigcrawl.exceptions import BigcrawlError, ConfigError
from tests.support.running.tables import each


def changed(name: str, words: list[Any] | None = None, **options: Any) -> ActionCall:
    return change_of(name, json.dumps({"words": words or [], "options": options}).encode())


def test_what_can_be_asked_exists_with_its_options() -> None:
    """Each option is one of the action's own parser."""
    for name, look in LOOKS.items():
        if look.read is None:
            assert name in ACTIONS
    for name, options in CHANGES.items():
        of = ACTIONS[name]
        words = ["x"] * of.least
        for option in options:
            values = [f"--{option}"] if option == "unset" else [f"--{option}=1"]
            assert getattr(parse_action(name, [*values, *words]), option.replace("-", "_"))


def test_no_question_has_words_that_change_something() -> None:
    """The words of `speed` and `blacklist` do."""
    asked = {name for name, look in LOOKS.items() if look.words_max}
    assert asked == {"hosts", "host", "pld", "explain", "budget", "delay"}


def test_a_query_is_words_and_options() -> None:
    assert read_action_of("host", {"word": ["a.example"]}) == ActionCall("host", ("a.example",))
    assert read_action_of("blacklist", {}) == ActionCall("blacklist", ("list",))
    assert read_action_of("hosts", {"state": ["busy"], "limit": ["5"]}).options == (("limit", "5"), ("state", "busy"))


def test_a_body_is_words_and_options() -> None:
    assert changed("budget", ["a.example"], urls=5, unset=False) == ActionCall(
        "budget", ("a.example",), (("urls", "5"),)
    )
    assert changed("speed", unset=True).options == (("unset", None),)
    assert change_of("pause", b"") == ActionCall("pause")


@each(
    "name, query",
    [
        ("status", {"x": ["1"]}),
        ("explain", {"find_page": [""], "word": ["http://a.example/"]}),
        ("explain", {"find-page": [""], "word": ["http://a.example/"]}),
        ("hosts", {"limit": ["101"]}),
        ("hosts", {"limit": ["-1"]}),
        ("hosts", {"first": ["9999"]}),
        ("hosts", {"sort": ["waiting"]}),
        ("hosts", {"word": ["*.example"]}),
        *((name, {"word": ["0/s"]}) for name, look in LOOKS.items() if not look.words_max),
        ("host", {"word": ["a.example", "b.example"]}),
        ("host", {"word": ["--all"]}),
        ("host", {"word": [""]}),
        ("host", {"word": ["a\nb"]}),
        ("host", {"word": ["a" * 5000]}),
    ],
)
def test_what_costs_much_or_is_no_word_is_refused(name: str, query: dict[str, list[str]]) -> None:
    with pytest.raises(ConfigError):
        read_action_of(name, query)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("pause", b"{"),
        ("pause", b"[" * 60_000),
        ("pause", b"[]"),
        ("pause", b'{"word": []}'),
        ("pause", b'{"words": "a"}'),
        ("pause", b'{"words": [1]}'),
        ("pause", b'{"options": []}'),
        ("budget", b'{"words": ["a.example"], "options": {"urls": null}}'),
        ("budget", b'{"words": ["a.example"], "options": {"urls": [1]}}'),
        ("budget", b'{"words": ["a.example"], "options": {"s": "BIGCRAWL_STATE_DIR=/"}}'),
        ("awaken", b'{"words": ["--all"]}'),
        ("pause", json.dumps({"words": ["a"] * (WORDS_MAX + 1)}).encode()),
    ],
)
def test_a_wrong_body_is_refused(name: str, body: bytes) -> None:
    with pytest.raises(ConfigError):
        change_of(name, body)


def test_what_reads_or_ends_much_cannot_be_asked() -> None:
    """Files of the server, deletion, the end of nodes, walks over all pages: those are for a terminal."""
    assert not (LOOKS.keys() | CHANGES.keys()) & {"add", "import", "export", "delete", "drain", "verify", "dead"}


def test_wrong_words_are_a_line_of_the_actions_parser() -> None:
    with pytest.raises(BigcrawlError, match="invalid choice"):
        parse_action("hosts", ["--state=tired"])
    with pytest.raises(BigcrawlError, match="wants HOST"):
        parse_action("host", [])

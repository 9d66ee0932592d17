"""The actions of `scrapy frontier` that the dashboard runs, with the permitted options.

To add one, add a row. Actions that read the server's files, wait for long or walk through all hosts must not be added.
"""

from __future__ import annotations

import bisect
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.scheduler.crawl.history import TIME_S
from bigcrawl.views.activity.events import events_of
from bigcrawl.views.activity.jobs import crawls_of, read_jobs
from bigcrawl.views.activity.recent import recent_of
from bigcrawl.views.history import history_of
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.status import status_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl


LISTED_MAX: Final = 100  # hosts, or PLDs per reason, in one answer
FIRST_MAX: Final = 1_000
WORDS_MAX: Final = 100
WORD_CHARS_MAX: Final = 4_096
_PATTERN: Final = "*?["

Act = Callable[["Config", str, "list[str]"], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ReadAction:
    """A read-only action.

    Attributes:
        words, fixed: the fixed words, which come first, and fixed options without a value.
        words_max: how many further words are permitted; 0 if words would change something.
        reads_files: whether the action may wait for the state directory's disk, or for another server.
        read, ask: functions that replace the action; `ask` takes the crawl.
    """

    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    words_max: int = 0
    kept_s: float = 2.0
    reads_files: bool = False
    read: Callable[[Config, Mapping[str, str]], dict[str, Any]] | None = None
    ask: Callable[[OpenedCrawl], Awaitable[dict[str, Any]]] | None = None


def read_history_since(config: Config, options: Mapping[str, str]) -> dict[str, Any]:
    text = options.get("since", "0")
    try:
        since_s = float(text)
    except ValueError:
        raise ConfigError(f"since is {text[:40]!r}; must be Unix seconds") from None
    columns = in_crawl(config, history_of)
    first = bisect.bisect_right([time_s or 0.0 for time_s in columns[TIME_S]], since_s)
    return {name: values[first:] for name, values in columns.items()}


def read_disks(config: Config, _options: Mapping[str, str]) -> dict[str, Any]:
    """Return size and free space, in bytes, of the disks of the state directory and the WARC files, if they answer."""
    places = {"state": config.crawl.state_dir, "warc": config.crawl.warc_dir}
    found = {}
    for name, path in places.items():
        if path is not None:
            with suppress(OSError):
                used = shutil.disk_usage(path)
                found[name] = {"size": used.total, "free": used.free}
    return {"disks": found}


LOOKS: Final[dict[str, ReadAction]] = {
    "status": ReadAction(kept_s=1.0, ask=status_of),
    "nodes": ReadAction(),
    "crawls": ReadAction(kept_s=5.0, ask=crawls_of),
    "jobs": ReadAction(kept_s=5.0, reads_files=True, read=lambda config, _: read_jobs(config)),
    "events": ReadAction(kept_s=2.0, ask=events_of),
    "recent": ReadAction(kept_s=1.0, ask=recent_of),
    "history": ReadAction(("since",), kept_s=5.0, read=read_history_since),
    "disks": ReadAction(kept_s=10.0, reads_files=True, read=read_disks),
    "hosts": ReadAction(("state", "limit", "first"), words_max=1, kept_s=5.0),
    "errors": ReadAction(("reason", "pld", "limit"), kept_s=5.0),
    "host": ReadAction(words_max=1),
    "plds": ReadAction(("sort", "limit"), fixed=("here",), kept_s=10.0, reads_files=True),
    "pld": ReadAction(words_max=1, reads_files=True),
    "explain": ReadAction(words_max=1, reads_files=True),
    "budget": ReadAction(words_max=1, reads_files=True),
    "delay": ReadAction(words_max=1),
    "speed": ReadAction(),
    "estimate": ReadAction(kept_s=5.0),
    "blacklist": ReadAction(words=("list",)),
}
CHANGES: Final[dict[str, tuple[str, ...]]] = {
    "pause": (),
    "resume": (),
    "speed": ("unset",),
    "blacklist": (),
    "budget": ("urls", "pages", "bytes", "depth", "unset"),
    "delay": ("delay", "pld-delay", "unset"),
    "awaken": (),
}


class ActionCall(NamedTuple):
    """A checked call of an action; an option without a value maps to None."""

    name: str
    words: tuple[str, ...] = ()
    options: tuple[tuple[str, str | None], ...] = ()


def read_action_of(name: str, query: Mapping[str, Sequence[str]]) -> ActionCall:
    """Return the call for a query string: `word` is the action's argument, the others are options.

    Raises ConfigError for unknown options, too many words, and values out of bounds.
    """
    look = LOOKS[name]
    words = tuple(query.get("word", ()))
    options = {option: values[-1] for option, values in query.items() if option != "word"}
    _check_arguments(name, words, options, look.options)
    if len(words) > look.words_max:
        raise ConfigError(
            f"{name} takes at most {look.words_max} words in a GET; send a change by POST, with the token"
        )
    for option, most in (("limit", LISTED_MAX), ("first", FIRST_MAX)):
        if option in options and not (options[option].isdecimal() and int(options[option]) <= most):
            raise ConfigError(f"{option} is {options[option][:20]!r}; must be a number from 0 to {most}")
    if name == "hosts" and any(sign in word for word in words for sign in _PATTERN):
        raise ConfigError("a pattern would read all hosts; give a host or a PLD, or use `scrapy frontier hosts`")
    return ActionCall(name, look.words + words, tuple(sorted({**options, **dict.fromkeys(look.fixed)}.items())))


def change_of(name: str, body: bytes) -> ActionCall:
    try:
        told = read_json(body or b"{}")
    except ValueError:
        raise ConfigError(
            'the body is not JSON; it must be like {"words": ["example.com"], "options": {"urls": 5}}'
        ) from None
    if not isinstance(told, dict) or not told.keys() <= {"words", "options"}:
        raise ConfigError("the body must be an object with `words`, `options` or nothing")
    words, options = told.get("words", []), told.get("options", {})
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError("`words` must be a list of strings")
    values = (bool, int, float, str)
    if not isinstance(options, dict) or not all(isinstance(value, values) for value in options.values()):
        raise ConfigError("`options` must be an object of numbers, strings and true")
    _check_arguments(name, words, options, CHANGES[name])
    given = [(option, value) for option, value in sorted(options.items()) if value is not False]
    return ActionCall(
        name, tuple(words), tuple((option, None if value is True else str(value)) for option, value in given)
    )


def run_action(config: Config, call: ActionCall, act: Act) -> dict[str, Any]:
    look = LOOKS.get(call.name)
    if look is not None and look.ask is not None:
        return in_crawl(config, look.ask)
    if look is not None and look.read is not None:
        return look.read(config, {option: value or "" for option, value in call.options})
    options = [f"--{option}" if value is None else f"--{option}={value}" for option, value in call.options]
    return act(config, call.name, [*options, *call.words])


def _check_arguments(name: str, words: Sequence[str], options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    if unknown := sorted(options.keys() - set(allowed)):
        known = ", ".join(allowed) or "none"
        raise ConfigError(f"{name} has no option {unknown[0][:40]!r} here; it has: {known}")
    if len(words) > WORDS_MAX or any(len(word) > WORD_CHARS_MAX for word in words):
        raise ConfigError(f"at most {WORDS_MAX} words of {WORD_CHARS_MAX:,} characters may be given")
    if any(word.startswith("-") or not word.strip() or not word.isprintable() for word in words):
        raise ConfigError("a word is empty, begins with - or has a control character; give a name or a URL")

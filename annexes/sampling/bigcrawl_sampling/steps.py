"""A step of a random walk, and its JSON line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.url.canonical import canonicalize
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

LINE_CHARS_MAX: Final = 1 << 20
KEY_MAX: Final = (1 << 64) - 1
_REMEDY: Final = "give a file that the spider sample wrote by -o"


class WalkStep(NamedTuple):
    """One fetch of a walk. Keys stand for canonical URLs."""

    walk: int
    step: int
    """The number of the step, 0 for the seed."""
    asked: int
    """Key of the chosen URL."""
    found: int
    """Key of the URL that answered, after redirects."""
    is_page: bool
    """Whether the chosen URL itself answered 200."""
    links: tuple[int, ...] = ()
    """Keys of the possible next URLs."""
    url: str = ""

    @classmethod
    def from_urls(cls, walk: int, step: int, asked: str, found: str, links: Sequence[str], *, answers: bool) -> Self:
        url = canonicalize(asked)
        asked_key, found_key, *keys = map(int, PUBLIC_KEYS.of_urls([url, canonicalize(found), *links]))
        return cls(walk, step, asked_key, found_key, answers and asked_key == found_key, tuple(keys), url)


def read_steps(lines: Iterable[str], name: str) -> list[WalkStep]:
    """Return each step once: if it was repeated after a crash, its first fetch."""
    found: dict[tuple[int, int], WalkStep] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            step = _step_of(line, f"line {number} of {name}")
            found.setdefault((step.walk, step.step), step)
    return list(found.values())


def _step_of(line: str, where: str) -> WalkStep:
    try:
        fields: dict[str, Any] = read_json(line if len(line) <= LINE_CHARS_MAX else "{}")
        walk, number, asked, found = (fields[name] for name in ("walk", "step", "asked", "found"))
        step = WalkStep(walk, number, asked, found, bool(fields["is_page"]), tuple(fields["links"]), str(fields["url"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{where} is not a step of a walk ({error}): {_REMEDY}") from None
    if any(type(key) is not int or not 0 <= key <= KEY_MAX for key in (walk, number, asked, found, *step.links)):
        raise ConfigError(f"{where} has a value that is not a number: {_REMEDY}")
    return step

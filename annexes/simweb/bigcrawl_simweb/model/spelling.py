"""The many spellings of one URL, which the WHATWG URL parser must all read as the canonical URL."""

from __future__ import annotations

from typing import Final, NamedTuple

from bigcrawl_simweb.basics.power_law import mix_bits

_FRAGMENT_SHARE: Final = 0.15
_BLANKS_SHARE: Final = 0.04
_RAW_LETTER_SHARE: Final = 0.5
_TABLE_BITS: Final = 12
_MASK: Final = (1 << _TABLE_BITS) - 1
_UNIT: Final = 2**64

_PATH, _RELATIVE, _CLIMBING, _DOTTED, _ABSOLUTE, _SHOUTED, _SCHEMELESS, _HEXADECIMAL = range(8)
_NEAR_WEIGHTS: Final = (30, 40, 5, 5, 12, 3, 4, 1)
_FAR_WEIGHTS: Final = (0, 0, 0, 0, 70, 15, 10, 5)


class SpellingStyle(NamedTuple):
    form: int
    raw_letters: bool
    lead: str
    tail: str


class Base:
    """The base URL of a page: authority (host and port) and canonical path with query."""

    __slots__ = ("authority", "climb", "directory", "first", "path")

    def __init__(self, authority: str, path: str) -> None:
        self.authority = authority
        self.path = path
        self.directory = path[: path.partition("?")[0].rindex("/") + 1]
        self.climb = "../" * (self.directory.count("/") - 1)
        self.first = self.directory[: self.directory.find("/", 1) + 1]


def relative_path(base: str, target: str) -> str:
    base_directories = base.partition("?")[0].split("/")[1:-1]
    path, mark, query = target.partition("?")
    *directories, name = path.split("/")[1:]
    shared = 0
    for left, right in zip(base_directories, directories, strict=False):
        if left != right:
            break
        shared += 1
    climb = "../" * (len(base_directories) - shared)
    return (climb + "/".join([*directories[shared:], name]) or "./") + mark + query


def spell_link(draw: int, authority: str, path: str, base: Base) -> str:
    """Return one spelling of a link, not escaped for HTML, chosen by the 12 random bits of `draw`."""
    table = _NEAR if authority == base.authority else _FAR
    form, raw_letters, lead, tail = table[draw & _MASK]
    if form == _RELATIVE:
        # Usually the two share no directory, so the remaining reference is not empty either.
        first = base.first
        href = _relative_spelling(base, path) if not first or path.startswith(first) else base.climb + path[1:]
    elif form == _PATH:
        href = path
    elif form == _ABSOLUTE:
        href = f"http://{authority}{path}"
    else:
        href = _rare_spelling(form, authority, path, base)
    if raw_letters and "%" in href:
        href = href.replace("%C3%A9", "é")
    return f"{lead}{href}{tail}" if tail else href


def _relative_spelling(base: Base, path: str) -> str:
    if base.first:
        return relative_path(base.path, path)
    # At the root there is nothing to climb, and the rest must not be empty or begin with a query.
    return path[1:] if path[1:2] not in ("", "?", ";") else "./" + path[1:]


def _rare_spelling(form: int, authority: str, path: str, base: Base) -> str:
    if form == _CLIMBING:
        # Climbs more levels than there are directories: the root is its own parent.
        return "../" * (base.path.count("/") + 1) + path[1:]
    if form == _DOTTED:
        return f"/old/./pages/%2e%2E/..{path}"
    if form == _SCHEMELESS:
        return f"//{authority}{path}"
    if form == _HEXADECIMAL and authority[0] == "1":
        # An address has no letters for upper case, but its numbers have other forms.
        return f"http://0X7F{authority.removeprefix('127')}{path}"
    return f"HTTP://{authority.upper()}{path}"


def _style_table(weights: tuple[int, ...]) -> tuple[SpellingStyle, ...]:
    forms = [form for form, weight in enumerate(weights) for _ in range(weight)]
    return tuple(
        _random_style(forms[place * len(forms) >> _TABLE_BITS], mix_bits(place)) for place in range(1 << _TABLE_BITS)
    )


def _random_style(form: int, draw: int) -> SpellingStyle:
    tail = f"#part-{draw % 9}" if mix_bits(draw) < _FRAGMENT_SHARE * _UNIT else ""
    raw_letters = mix_bits(draw + 1) < _RAW_LETTER_SHARE * _UNIT
    if mix_bits(draw + 2) < _BLANKS_SHARE * _UNIT:
        return SpellingStyle(form, raw_letters, " ", tail + "\n")
    return SpellingStyle(form, raw_letters, "", tail)


_NEAR: Final = _style_table(_NEAR_WEIGHTS)
_FAR: Final = _style_table(_FAR_WEIGHTS)

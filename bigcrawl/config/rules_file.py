"""Reads the file of BIGCRAWL_RULES: a line for each site, with all that is set by hand for it.

    example.com            priority=50 budget=500 delay=2.5
    example.com/archive/   depth=3 revisit=604800   # a directory of that host
    *                      kinds=text/html,text/plain eliminate="under construction"

Each value goes to the table of the setting that it belongs to, as if it were written there; what is written there
itself goes before the file. What names and values may be is checked where these tables are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.text_files.reading import BLANKS, lines, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LINES_MAX: Final = 10_000
BYTES_MAX: Final = 4 << 20

BUDGETS: Final = "BIGCRAWL_BUDGET_RULES"
DELAYS: Final = "BIGCRAWL_DELAY_RULES"
PAGES: Final = "BIGCRAWL_PAGE_RULES"
_TABLE_OF: Final = {"delay": DELAYS, "pld_delay": DELAYS, "kinds": PAGES, "charsets": PAGES, "eliminate": PAGES}
_WORD = re.compile(r"(\w+)=(.*)", re.DOTALL)
_find_words = re.compile(r'(?:[^\s"]|"[^"]*")+').findall


class RulesLine(NamedTuple):
    """A line of the file: its site's name, and its values by setting."""

    number: int
    name: str
    tables: Mapping[str, Mapping[str, object]]


def read_rules(path: str) -> tuple[RulesLine, ...]:
    """Return the lines of the file, which is read again only if it has changed.

    Raises:
        ConfigError: it cannot be read, is too large, has a line that is no rule, or has a name twice.
    """
    try:
        stat = Path(path).stat()
        if stat.st_size > BYTES_MAX:
            raise ConfigError(
                f"BIGCRAWL_RULES is {path!r}, a file of {stat.st_size:,} bytes; at most {BYTES_MAX:,} are allowed"
            )
        return _read(path, (stat.st_mtime_ns, stat.st_size))
    except (OSError, ValueError) as error:
        raise ConfigError(f"BIGCRAWL_RULES is {path!r}, a file that cannot be read: {error}") from None


@lru_cache(4)
def _read(path: str, _version: tuple[int, int]) -> tuple[RulesLine, ...]:
    rows = tuple(_parse_rows(path, read_text(Path(path))))
    if len(rows) > LINES_MAX:
        raise ConfigError(f"{path} has {len(rows):,} rules; at most {LINES_MAX:,} are allowed")
    seen: dict[str, int] = {}
    for row in rows:
        if (first := seen.setdefault(row.name, row.number)) != row.number:
            raise ConfigError(f"{path}, line {row.number}: {row.name!r} has a rule in line {first} already; join them")
    return rows


def _parse_rows(path: str, text: str) -> Iterator[RulesLine]:
    for number, line in enumerate(lines(text), 1):
        written = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip(BLANKS)
        if not written:
            continue
        where = f"{path}, line {number}"
        try:
            name, *words = _split_words(written)
        except ValueError as error:
            raise ConfigError(f"{where} cannot be read: {error}") from None
        tables: dict[str, dict[str, object]] = {}
        for word in words:
            found = _WORD.fullmatch(word)
            if found is None:
                raise ConfigError(f"{where} has {word!r}; a line must be a name, followed by words such as budget=500")
            limit, value = found.groups()
            table = tables.setdefault(_TABLE_OF.get(limit, BUDGETS), {})
            if limit in table:
                raise ConfigError(f"{where} has {limit} twice")
            table[limit] = value if _TABLE_OF.get(limit) == PAGES else _parse_number(value)
        if not tables:
            raise ConfigError(f"{where} sets nothing for {name!r}; words such as budget=500 must follow the name")
        yield RulesLine(number, name, tables)


def _split_words(written: str) -> list[str]:
    if written.count('"') % 2:
        raise ValueError("a quotation mark is not closed")
    return [word.replace('"', "") for word in _find_words(written)]


def _parse_number(value: str) -> object:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def with_rules(path: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the file's rules added to their tables."""
    tables: dict[str, dict[str, dict[str, object]]] = {name: {} for name in (BUDGETS, DELAYS, PAGES)}
    for row in read_rules(path):
        for table, limits in row.tables.items():
            tables[table][row.name] = dict(limits)
    for table, rules in tables.items():
        own = given[table] or {}
        if rules:
            given[table] = rules | {name: {**rules.get(name, {}), **limits} for name, limits in own.items()}
    return given

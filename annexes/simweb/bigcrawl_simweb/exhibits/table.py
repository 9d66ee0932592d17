"""The table of exhibits, with the paths of exhibits and their proofs.

Every host has every eighth row, so eight hosts have all. A crawler proves its right reaction to /fair/<slug>-<n>.html
by requesting /proof/<slug>-<n>.html, or /proof/<word>.<slug>-<n>.html, to which no other link leads.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bigcrawl_simweb.basics import resources
from bigcrawl_simweb.basics.resources import Kind, Resource
from bigcrawl_simweb.exhibits import answers as exhibits_answers
from bigcrawl_simweb.exhibits import bodies as exhibits_bodies
from bigcrawl_simweb.exhibits import charsets as exhibits_charsets
from bigcrawl_simweb.exhibits import directives as exhibits_directives
from bigcrawl_simweb.exhibits import markup as exhibits_markup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl_simweb.basics.features import Feature
    from bigcrawl_simweb.exhibits.exhibit import Exhibit

EXHIBITS: Final[tuple[Exhibit, ...]] = (
    *exhibits_answers.STATUSES,
    *exhibits_answers.REDIRECTS,
    *exhibits_bodies.BODIES,
    *exhibits_bodies.BROKEN,
    *exhibits_markup.MARKUP,
    *exhibits_charsets.CHARSETS,
    *exhibits_directives.DIRECTIVES,
)
# A number is n * ROWS_MAX + row.
ROWS_MAX: Final = 256
_STRIDE: Final = 8
_ROWS: Final = {exhibit.slug: row for row, exhibit in enumerate(EXHIBITS)}
_PATH: Final = re.compile(r"/(fair|proof)/(?:[^/]*\.)?([a-z0-9-]+)-([0-9]{1,6})\.html\Z")


def row_of(resource: Resource) -> Exhibit:
    return EXHIBITS[resource.number % ROWS_MAX]


def path_of(kind: Kind, number: int) -> str:
    return PATHS[kind](number)


def _fair_path(number: int) -> str:
    return f"/fair/{EXHIBITS[number % ROWS_MAX].slug}-{number // ROWS_MAX}.html"


def _proof_path(number: int) -> str:
    exhibit = EXHIBITS[number % ROWS_MAX]
    word = f"{quote(exhibit.word)}." if exhibit.word else ""
    return f"/proof/{word}{exhibit.slug}-{number // ROWS_MAX}.html"


PATHS: Final[Mapping[Kind, Callable[[int], str]]] = {
    **resources.PATHS,
    Kind.EXHIBIT: _fair_path,
    Kind.PROOF: _proof_path,
}


def resource_with_path(target: str, host: int, features: frozenset[Feature]) -> tuple[Kind, int] | None:
    """Return the kind and number of the host's exhibit or proof with exactly this path, or None."""
    match = _PATH.match(target)
    row = _ROWS.get(match[2]) if match else None
    if match is None or row is None:
        return None
    exhibit, number = EXHIBITS[row], int(match[3])
    resource = Resource(host, Kind.EXHIBIT if match[1] == "fair" else Kind.PROOF, number * ROWS_MAX + row)
    if exhibit.feature not in features or not _has_row(host, row) or path_of(resource.kind, resource.number) != target:
        return None
    if resource.kind is Kind.EXHIBIT:
        return (resource.kind, resource.number) if number < exhibit.chain else None
    last = Resource(host, Kind.EXHIBIT, (exhibit.chain - 1) * ROWS_MAX + row)
    return (resource.kind, resource.number) if proof_of(last) == resource else None


def proof_of(exhibit: Resource) -> Resource | None:
    """Return what an exhibit (an unusual answer) leads to: the next one of its chain, its proof page, or None."""
    row = row_of(exhibit)
    if not row.leads:
        return None
    number = exhibit.number // ROWS_MAX + 1
    if number < row.chain:
        return Resource(exhibit.host, Kind.EXHIBIT, exhibit.number + ROWS_MAX)
    return Resource(exhibit.host, Kind.PROOF, exhibit.number)


def exhibits_of(host: int, features: frozenset[Feature]) -> list[Resource]:
    """Return the host's exhibits, only the first of each chain."""
    return [Resource(host, Kind.EXHIBIT, row) for row in _rows_of_hosts(host % _STRIDE, features)]


def _has_row(host: int, row: int) -> bool:
    return row % _STRIDE == host % _STRIDE


@lru_cache(64)
def _rows_of_hosts(remainder: int, features: frozenset[Feature]) -> tuple[int, ...]:
    rows = range(remainder, len(EXHIBITS), _STRIDE)
    return tuple(row for row in rows if EXHIBITS[row].feature in features)

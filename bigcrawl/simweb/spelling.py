"""The many ways in which pages write one URL.

Whatever is written here, the WHATWG URL parser must read it as the canonical URL of the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from random import Random

_FRAGMENT_SHARE: Final = 0.15
_BLANKS_SHARE: Final = 0.04
_RAW_LETTER_SHARE: Final = 0.5

_NEAR_FORMS: Final = (
    "path",
    "relative",
    "climbing",
    "dotted",
    "absolute",
    "shouted",
    "schemeless",
    "hexadecimal",
)
_NEAR_WEIGHTS: Final = (30, 40, 5, 5, 12, 3, 4, 1)
_FAR_FORMS: Final = _NEAR_FORMS[4:]
_FAR_WEIGHTS: Final = (70, 15, 10, 5)


class Place(NamedTuple):
    """An absolute URL in parts: address, port, and canonical path with query."""

    address: str
    port: int
    path: str


def relative_path(base: str, target: str) -> str:
    """The shortest relative reference that leads from one path to another of the same host."""
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


def spell(rng: Random, target: Place, base: Place) -> str:
    """Write a link to `target` for a page whose base URL is `base`; not escaped for HTML."""
    if (target.address, target.port) == (base.address, base.port):
        form = rng.choices(_NEAR_FORMS, _NEAR_WEIGHTS)[0]
    else:
        form = rng.choices(_FAR_FORMS, _FAR_WEIGHTS)[0]
    href = _written(form, target, base)
    if rng.random() < _RAW_LETTER_SHARE:
        href = href.replace("%C3%A9", "é")
    if rng.random() < _FRAGMENT_SHARE:
        href += f"#part-{rng.randrange(9)}"
    if rng.random() < _BLANKS_SHARE:
        href = f" {href}\n"
    return href


def _written(form: str, target: Place, base: Place) -> str:
    address, port, path = target
    match form:
        case "path":
            return path
        case "relative":
            return relative_path(base.path, path)
        case "climbing":
            # More steps up than there are directories: the root is its own parent.
            return "../" * (base.path.count("/") + 1) + path[1:]
        case "dotted":
            return f"/old/./pages/%2e%2E/..{path}"
        case "shouted":
            return f"HTTP://{address}:{port}{path}"
        case "schemeless":
            return f"//{address}:{port}{path}"
        case "hexadecimal":
            # An address has no letters to shout; its numbers have other forms instead.
            return f"http://0X7F{address.removeprefix('127')}:{port}{path}"
        case _:
            return f"http://{address}:{port}{path}"

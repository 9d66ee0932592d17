"""Reads the tags of a page: its references, its base, and its directives to robots."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ContractError
from bigcrawl.links.directives import NOFOLLOW, is_directive
from bigcrawl.links.embedded import ATTRIBUTES, XLINK, embedded_in
from bigcrawl.markup import anchor_text, anchors_of, attributes_of
from bigcrawl.scan import runs
from bigcrawl.scan.names import ForeignElements
from bigcrawl.url.refresh import refresh_in

if TYPE_CHECKING:
    from collections.abc import Mapping

LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src", "meta": "content"}
"""Elements that link to pages, with the attribute that holds the URL; for `meta`, those that refresh."""

ON_REQUEST = frozenset({"link", *ATTRIBUTES})
"""Elements that are read only if named: `link`, with a relation in `_RELATIONS`, and elements that embed something."""
_RELATIONS = frozenset({"next", "prev", "previous", "alternate", "canonical"})

# Also read: the base URL, directives to robots, and the page's canonical URL.
_ASIDE = ("base", "meta", "link")

# Names of common meta elements, which are skipped; any other name may be that of a robot.
_NO_ROBOTS = frozenset(("viewport", "description", "keywords", "author", "generator", "theme-color", "referrer"))
METAS_MAX = 20
"""Limit on the kept meta elements with directives to robots."""
_LOOKS_A_LINK = 2  # tags inspected per link allowed


class PageTags:
    """The unprocessed links and directives in the tags of a page; references are never empty."""

    __slots__ = (
        "_embedded",
        "_tags",
        "anchors",
        "base_href",
        "canonical_hrefs",
        "has_more",
        "kinds",
        "metas",
        "nofollow",
        "references",
    )

    def __init__(self, text: str, tags: tuple[str, ...], links_max: int, *, with_anchors: bool = False) -> None:
        self.references: list[str] = []
        self._tags, self._embedded, chosen = _chosen(tags)
        # The elements or attributes of references that are not those of `<a>`, by place in `references`.
        self.kinds: dict[int, str] | None = {} if self._tags & ON_REQUEST else None
        self.anchors: dict[int, str] | None = {} if with_anchors else None  # texts of `<a>`, by place
        self.nofollow: list[str] = []
        self.metas: list[tuple[str, str]] = []
        self.base_href: str | None = None
        self.canonical_hrefs: list[str] = []  # the first
        self.has_more = False
        self._read(text, chosen, links_max)

    def _read(self, text: str, chosen: frozenset[str], links_max: int) -> None:
        references, room, anchors = self.references, links_max, self.anchors
        foreign = ForeignElements(text) if XLINK in self._embedded else None
        more = chosen if self._embedded else ()
        takes_a = "a" in self._tags
        for hrefs, ends, name, written, end in runs(text, _LOOKS_A_LINK * links_max, more, anchors is not None):
            if takes_a and hrefs:
                left = room - len(references)
                if anchors is not None:
                    anchors.update(enumerate((anchor_text(text, at) for at in ends[:left]), len(references)))
                references += hrefs[:left]
            if len(references) < room and name in chosen:
                is_foreign = foreign is not None and foreign.reach(end)
                self._take(name, written, is_foreign=is_foreign)
                room = links_max - len(self.nofollow)
                if anchors is not None and name == "a" and references:
                    anchors.setdefault(len(references) - 1, anchor_text(text, end))
            if len(references) >= room:
                self.has_more = True
                break

    def _take(self, name: str, written: str, *, is_foreign: bool) -> None:
        every = anchors_of(written) if name == "a" and "<" in written else [attributes_of(written)]
        for attributes in every:
            if reference := self._followed(self._reference(name, attributes), attributes):
                if self.kinds is not None and name != "a":
                    self.kinds[len(self.references)] = name
                self.references.append(reference)
            if self.kinds is not None:
                for kind, embedded in embedded_in(name, attributes, self._embedded, is_foreign=is_foreign):
                    if reference := self._followed(embedded, attributes):
                        self.kinds[len(self.references)] = kind
                        self.references.append(reference)

    def _followed(self, reference: str | None, attributes: Mapping[str, str]) -> str | None:
        if reference and NOFOLLOW in attributes.get("rel", "").lower().split():
            self.nofollow.append(reference)
            return None
        return reference

    @property
    def is_anything(self) -> bool:
        return bool(self.references or self.nofollow or self.canonical_hrefs)

    def _reference(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Return the page that an element links to, if any; record other references."""
        if tag == "base":
            if self.base_href is None:
                self.base_href = attributes.get("href")
            return None
        if tag == "link":
            href = attributes.get("href")
            relations = attributes.get("rel", "").lower().split()
            if href and not self.canonical_hrefs and "canonical" in relations:
                self.canonical_hrefs.append(href)
            return href if "link" in self._tags and not _RELATIONS.isdisjoint(relations) else None
        if tag != "meta":
            return attributes.get(LINK_ATTRIBUTES[tag]) if tag in LINK_ATTRIBUTES and tag in self._tags else None
        name, content = attributes.get("name", "").lower(), attributes.get("content", "")
        if name and name not in _NO_ROBOTS and len(self.metas) < METAS_MAX and is_directive(content):
            self.metas.append((name, content))
        is_refresh = "meta" in self._tags and attributes.get("http-equiv", "").lower() == "refresh"
        return refresh_in(content).target if is_refresh else None


@lru_cache(64)
def _chosen(tags: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """Return the tags, the kinds in `ATTRIBUTES` among them, and all elements that are read."""
    known = LINK_ATTRIBUTES.keys() | ON_REQUEST
    if unknown := set(tags) - known:
        raise ContractError(f"tags has {sorted(unknown)}; only {sorted(known)} lead to pages")
    embedded = tuple(kind for kind in ATTRIBUTES if kind in tags)
    elements = (element for kind in embedded for element in ATTRIBUTES[kind])
    return frozenset(tags), embedded, frozenset((*(tag for tag in tags if tag not in ATTRIBUTES), *elements, *_ASIDE))

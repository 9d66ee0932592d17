"""What the tags of a page say: its references, its base, and its directives to robots."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from bigcrawl.directives import NOFOLLOW, is_directive
from bigcrawl.exceptions import ContractError
from bigcrawl.markup import TagEnds, anchor_text, attributes_of
from bigcrawl.markup import tags as tags_of
from bigcrawl.url.refresh import refresh_in

if TYPE_CHECKING:
    from collections.abc import Mapping

LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src", "meta": "content"}
"""Elements that link to pages, with the attribute that holds the URL; for `meta`, those that refresh."""

# Also read: the base URL, directives to robots, and the page's canonical URL.
_ASIDE = ("base", "meta", "link")

# Common meta elements, skipped without reading their content; any other name may be that of a robot.
_NO_ROBOTS = frozenset(("viewport", "description", "keywords", "author", "generator", "theme-color", "referrer"))
METAS_MAX = 20
"""Limit on the meta elements with directives to robots that are kept of a page."""
_LOOKS_A_LINK = 2  # tags inspected per link allowed


class PageTags:
    """What the tags of a page say, unprocessed; references are never empty."""

    __slots__ = (
        "_reads_meta",
        "anchors",
        "base_href",
        "canonical_hrefs",
        "has_more",
        "metas",
        "nofollow",
        "references",
    )

    def __init__(self, text: str, tags: tuple[str, ...], links_max: int, *, with_anchors: bool = False) -> None:
        self.references: list[str] = []
        self.anchors: list[str] = []  # of each reference, if asked for
        self.nofollow: list[str] = []
        self.metas: list[tuple[str, str]] = []
        self.base_href: str | None = None
        self.canonical_hrefs: list[str] = []  # the first
        self._reads_meta = "meta" in tags
        self.has_more = False
        self._read(text, _chosen(tags), links_max, TagEnds() if with_anchors else None)

    def _read(self, text: str, chosen: frozenset[str], links_max: int, ends: TagEnds | None) -> None:
        references, room = self.references, links_max
        for name, href, written in tags_of(text, _LOOKS_A_LINK * links_max, ends):
            if name not in chosen:
                continue
            reference = href
            if href is None:
                reference = self._reference(name, attributes_of(written))
                room = links_max - len(self.nofollow)
            if reference:
                references.append(reference)
                if ends is not None:
                    self.anchors.append(anchor_text(text, ends.last) if name == "a" else "")
            if len(references) >= room:
                self.has_more = True
                break

    def _reference(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Return a tag's reference, if robots may follow it."""
        reference = attributes.get("href") if tag == "a" else self._other(tag, attributes)
        if reference and NOFOLLOW in attributes.get("rel", "").lower().split():
            self.nofollow.append(reference)
            return None
        return reference

    @property
    def is_anything(self) -> bool:
        """Whether there are references to join."""
        return bool(self.references or self.nofollow or self.canonical_hrefs)

    def _other(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Return the reference of an element other than `a`, if it has one; record what the others say."""
        if tag == "base":
            if self.base_href is None:
                self.base_href = attributes.get("href")
            return None
        if tag == "link":
            href = attributes.get("href")
            if href and not self.canonical_hrefs and "canonical" in attributes.get("rel", "").lower().split():
                self.canonical_hrefs.append(href)
            return None
        if tag != "meta":
            return attributes.get(LINK_ATTRIBUTES[tag])
        name, content = attributes.get("name", "").lower(), attributes.get("content", "")
        if name and name not in _NO_ROBOTS and len(self.metas) < METAS_MAX and is_directive(content):
            self.metas.append((name, content))
        is_refresh = self._reads_meta and attributes.get("http-equiv", "").lower() == "refresh"
        return refresh_in(content).target if is_refresh else None


@lru_cache(64)
def _chosen(tags: tuple[str, ...]) -> frozenset[str]:
    """Return the tags to read: those of links, and those with information about the page."""
    unknown = set(tags) - LINK_ATTRIBUTES.keys()
    if unknown:
        raise ContractError(f"tags has {sorted(unknown)}; only {sorted(LINK_ATTRIBUTES)} lead to pages")
    return frozenset((*tags, *_ASIDE))

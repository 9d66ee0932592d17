"""A batch of URLs for the frontier, as spiders yield it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from bigcrawl.exceptions import ContractError, RequestNotStorableError
from bigcrawl.given import no_method, odd_name, whole_number
from bigcrawl.links.embedded import ATTRIBUTES, ELEMENT
from bigcrawl.links.limits import NOTHING_LEFT_OUT, LeftOut
from bigcrawl.links.page import LinkBatch, read_page
from bigcrawl.links.tags import LINK_ATTRIBUTES
from bigcrawl.listings.changefreqs import CHANGEFREQS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.links.encoding import Page


@dataclass(frozen=True, slots=True)
class Links(LinkBatch):
    """A batch of URLs for the frontier, all fetched by GET with the same callback and priority.

    Raises:
        ContractError: an argument has the wrong type; the message says which, and what to write.
    """

    urls: Sequence[str]
    """URLs, absolute or relative to `base`, in any collection. Invalid URLs are dropped and counted."""

    base: str | None = None
    """The URL of the page that has these links; None if all are absolute."""

    priority: int = 0
    """A whole number, as in a Request: higher is sooner."""

    callback: str | Callable[..., Any] | None = None
    """A method of the spider, or the method's name; None for the spider's `parse`."""

    errback: str | Callable[..., Any] | None = None
    cb_kwargs: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None

    canonical: bool = False
    """Whether each URL was returned by `bigcrawl.url.canonical.canonicalize`, which is then not called again.
    `from_page` sets it. If it is set wrongly, one page looks like several."""

    nofollow: Sequence[str] = ()
    """URLs that the page marks `rel=nofollow`, in the form of `urls`. They are dropped and counted, unless
    BIGCRAWL_NOFOLLOW says otherwise."""

    metas: tuple[tuple[str, str], ...] = ()
    """The names and contents of the page's meta elements with directives to robots; see `bigcrawl.links.directives`."""

    page_canonical: str | None = None
    """The page's canonical URL, as declared by the page itself."""

    left_out: LeftOut = NOTHING_LEFT_OUT
    """Which links were dropped because of limits."""

    anchors: Sequence[str] = ()
    """For each of `urls`, in order, the texts of the links to it; empty unless `from_page` was asked for them."""

    kinds: Sequence[str] = ()
    """For each of `urls`, in order, the element or attribute that has it; empty unless `from_page` was asked for
    elements
    that are read only on request."""

    changefreq: str = ""
    """How often the pages change, according to their site: one of `CHANGEFREQS`, the words of sitemaps; empty if
    unknown.
    With BIGCRAWL_REVISIT it counts like one visit to each page."""

    modified: Mapping[str, int] | None = None
    """When pages changed, according to their site: canonical URLs with seconds since 1970. With BIGCRAWL_REVISIT,
    a page changed after its last visit is visited sooner. Claims about other sites' pages are ignored."""

    def __post_init__(self) -> None:
        if type(self.urls) is not list:
            object.__setattr__(self, "urls", self._listed("urls", self.urls))
        if self.nofollow:
            object.__setattr__(self, "nofollow", self._listed("nofollow", self.nofollow))
        if type(self.priority) is not int:
            try:
                object.__setattr__(self, "priority", whole_number(self.priority))
            except ValueError as error:
                raise self._wrong("priority", str(error)) from None
        if not self.canonical:
            self._check_texts()
        if self.meta is not None or self.cb_kwargs is not None:
            self._check_values()
        if self.changefreq not in CHANGEFREQS:
            raise self._wrong("changefreq", f"is {self.changefreq!r}: it must be one of {', '.join(CHANGEFREQS[1:])}")

    @classmethod
    def from_page(
        cls, page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES), with_anchors: bool = False, **fields: Any
    ) -> Self:
        """Return the links of an HTML page; `fields` are those of this class, such as `priority`.

        `with_anchors` fills `anchors`, at twice the cost.
        """
        found = read_page(page, tags=tags, with_anchors=with_anchors)
        fields |= {
            "nofollow": found.nofollow,
            "metas": found.metas,
            "page_canonical": found.page_canonical,
            "left_out": found.left_out,
            "anchors": found.anchors,
            "kinds": found.kinds,
        }
        return cls(found.urls, canonical=True, **fields)

    def by_priority(self, priorities: Sequence[int]) -> list[Self]:
        """Return one batch for each priority, highest first. Only the first has the data that concern the whole page.

        `priorities` has the priority of each of `urls`, in the same order.

        Raises:
            ContractError: `priorities` and `urls` differ in length.
        """
        if len(priorities) != len(self.urls):
            raise self._wrong("priorities", f"has {len(priorities)} for {len(self.urls)} URLs: give each one its own")
        urls_of: dict[int, list[str]] = {}
        for url, priority in zip(self.urls, priorities, strict=True):
            urls_of.setdefault(priority, []).append(url)
        shared = replace(self, anchors=(), kinds=(), metas=(), nofollow=(), left_out=NOTHING_LEFT_OUT, modified=None)
        batches = [
            replace(shared, urls=urls, priority=priority) for priority, urls in sorted(urls_of.items(), reverse=True)
        ]
        if not batches:
            return [self]
        batches[0] = replace(
            batches[0], metas=self.metas, nofollow=self.nofollow, left_out=self.left_out, modified=self.modified
        )
        return batches

    def by_kind(self) -> list[Self]:
        """Return one batch of links to pages, and one for each kind of embedded element, named in `meta[ELEMENT]`."""
        if not self.kinds:
            return [self]
        urls_of: dict[str, list[str]] = {}
        for url, kind in zip(self.urls, self.kinds, strict=True):
            urls_of.setdefault(kind if kind in ATTRIBUTES else "", []).append(url)
        batches = [replace(self, urls=urls_of.pop("", []), kinds=(), anchors=())]
        shared = replace(batches[0], metas=(), nofollow=(), left_out=NOTHING_LEFT_OUT, modified=None)
        for kind, urls in urls_of.items():
            batches.append(replace(shared, urls=urls, meta={**(self.meta or {}), ELEMENT: kind}))
        return batches

    def _listed(self, name: str, urls: object) -> Sequence[str]:
        if isinstance(urls, str | bytes):
            written = f"Links([{urls!r}])" if name == "urls" else f"{name}=[{urls!r}]"
            raise self._wrong(name, f"is {urls!r}, one text: write {written}, a list of URLs")
        if not isinstance(urls, Iterable):
            raise self._wrong(name, f"is {urls!r}: it must be a list of URLs")
        return urls if isinstance(urls, list | tuple) else list(urls)

    def _check_texts(self) -> None:
        if self.base is not None and not isinstance(self.base, str):
            raise self._wrong("base", f"is {self.base!r}: it must be a str, such as response.url")
        if set(map(type, self.urls)) - {str}:
            for at, url in enumerate(self.urls):
                if not isinstance(url, str):
                    raise self._wrong(f"urls[{at}]", f"is {url!r}: it must be a str")

    def _check_values(self) -> None:
        for name, values in (("meta", self.meta), ("cb_kwargs", self.cb_kwargs)):
            if values is not None and not isinstance(values, dict):
                raise self._wrong(name, f"is {values!r}: it must be a dict")
        if (odd := odd_name(self.cb_kwargs)) is not None:
            raise self._wrong("cb_kwargs", f"has the key {odd!r}, which is not the name of an argument")
        try:
            whole_number((self.meta or {}).get("depth", 0))
        except ValueError as error:
            raise self._wrong("meta['depth']", str(error)) from None

    def _wrong(self, name: str, reason: str) -> ContractError:
        return ContractError(f"Links of {self._source}: {name} {reason}")

    @property
    def _source(self) -> str:
        first = self.urls[0] if isinstance(self.urls, list | tuple) and self.urls else "(no URL)"
        return str(self.base or first)

    @property
    def changefreq_code(self) -> int:
        return CHANGEFREQS.index(self.changefreq)

    @property
    def callback_name(self) -> str | None:
        """The name of the spider's method that gets the responses; None for `parse`.

        Raises:
            RequestNotStorableError: the callback is a function that is not a method of a spider.
        """
        return self._method_name("callback", self.callback)

    @property
    def errback_name(self) -> str | None:
        """The name of the spider's method that gets the failures, or None; raises like `callback_name`."""
        return self._method_name("errback", self.errback)

    def check_methods(self, spider: object) -> None:
        """Raise RequestNotStorableError unless callback and errback are methods of the spider."""
        for path, method, name in (
            ("callback", self.callback, self.callback_name),
            ("errback", self.errback, self.errback_name),
        ):
            found = getattr(spider, name, None) if name else None
            if name and (not callable(found) or not (isinstance(method, str) or found == method)):
                raise RequestNotStorableError(self._source, path, no_method(path, method))

    def _method_name(self, key_path: str, method: str | Callable[..., Any] | None) -> str | None:
        if method is None or isinstance(method, str):
            return method
        name = getattr(method, "__name__", "")
        owner = getattr(method, "__self__", None)
        if owner is None or not name or getattr(owner, name, None) != method:
            raise RequestNotStorableError(self._source, key_path, no_method(key_path, method))
        return name

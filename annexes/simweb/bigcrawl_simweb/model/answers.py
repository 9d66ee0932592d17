"""The answers of each kind of resource."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.addresses import origin_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import PLAIN, Feature
from bigcrawl_simweb.basics.markup import PageWriter, in_own_words, render_notice, with_changed_words
from bigcrawl_simweb.basics.power_law import mix_bits, random_words
from bigcrawl_simweb.basics.resources import ENDLESS_KINDS, PAGES_PER_TOPIC, Kind, Resource
from bigcrawl_simweb.exhibits.exhibit import HTML, ExhibitContext
from bigcrawl_simweb.exhibits.table import PATHS, path_of, proof_of, row_of
from bigcrawl_simweb.model.changing_pages import changed_ms_of, is_unchanged, period_ms_of, validators, with_etag
from bigcrawl_simweb.model.graph import is_frameset
from bigcrawl_simweb.model.sitemaps import (
    LIARS_EVERY,
    LISTS,
    NEWS_LIST,
    NEWS_MAX,
    Entry,
    ListedPage,
    alternate_links,
    announced_in,
    announced_ms,
    changefreq_of,
    feed,
    index_of_sitemaps,
    mapped_in,
    sitemap,
)
from bigcrawl_simweb.model.spelling import Base, relative_path, spell_link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl_simweb.model.graph import Graph
    from bigcrawl_simweb.model.names import HostNames

_BASE_SHARE_PERCENT: Final = 15
_SLOW_HOSTS_EVERY: Final = 3
_TEXT_PURPOSE: Final = 51
_SMALL_BYTES: Final = 3_000
_CACHED_MAX: Final = 16_384
_NEAR_PURPOSE: Final = 52
_WORDS_PURPOSE: Final = 53
NEAR_WORDS_MAX: Final = 4
"""Words of a near copy that differ from its story; two copies of a story share 0.9 of their phrases."""

WORDY_KINDS: Final = frozenset(
    {Kind.PAGE, Kind.PRIVATE, Kind.HIDDEN, Kind.TEXT, Kind.PROOF, Kind.MAPPED, Kind.NEWS, Kind.HOME, *ENDLESS_KINDS}
)
"""Kinds with a distinct text on each page, in a web with copies."""

_PLAIN: Final = (("Content-Type", "text/plain; charset=utf-8"),)
_CSS: Final = (("Content-Type", "text/css"),)
_XML: Final = (("Content-Type", "application/xml"),)
_GZIP: Final = (("Content-Type", "application/gzip"),)
_SMALL_KINDS: Final = frozenset({Kind.PROOF, Kind.MAPPED, Kind.ANNOUNCED, Kind.HOME})


class WebAnswers:
    def __init__(
        self,
        seed: int,
        agent: str,
        slow_ms: int,
        hosts: int,
        graph: Graph,
        names: HostNames,
        features: frozenset[Feature] = PLAIN,
    ) -> None:
        self._has_validators = Feature.VALIDATORS in features
        self._has_copies = Feature.COPIES in features
        self._seed = seed
        self._agent = agent
        self._slow_ms = slow_ms
        self._hosts = hosts
        self._graph = graph
        self._names = names
        self._writer = PageWriter(seed)
        self._authority = lru_cache(_CACHED_MAX)(lambda host, port: f"{names.name_of(host)}:{port}")

    def answer(self, resource: Resource, port: int, at_ms: int, conditions: Mapping[str, str]) -> Answer:
        found = self._plain_answer(resource, port, at_ms, conditions)
        if self._has_copies and found.status == 200 and resource.kind in WORDY_KINDS:
            # Pages made of the same paragraphs would be unintended near copies.
            found = replace(found, body=in_own_words(found.body, self._own_draw(resource)))
        changes = resource.kind in (Kind.EXHIBIT, Kind.NEWS)
        return with_etag(found, conditions) if self._has_validators and not changes else found

    def _plain_answer(self, resource: Resource, port: int, at_ms: int, conditions: Mapping[str, str]) -> Answer:
        kind = resource.kind
        if kind is Kind.PAGE or kind is Kind.PRIVATE or kind is Kind.HIDDEN:
            return Answer(200, HTML, self._page_body(resource, port), delay_ms=self._delay_ms(resource))
        if kind in ENDLESS_KINDS or kind in _SMALL_KINDS:
            return Answer(200, HTML, self._small_page(resource, port))
        if kind is Kind.EXHIBIT:
            return row_of(resource).answer(self._exhibit_context(resource, port, at_ms))
        if kind is Kind.NEWS:
            return self._news_answer(resource, port, at_ms, conditions)
        if kind is Kind.FEED:
            return self._feed_answer(resource, port, at_ms)
        if kind is Kind.SITEMAP:
            return self._sitemap_answer(resource, port, at_ms)
        return self._answer_of_other_kind(resource, port)

    def _answer_of_other_kind(self, resource: Resource, port: int) -> Answer:
        status = status_of(resource)
        match resource.kind:
            case Kind.TEXT:
                draw = mix_bits(self._seed ^ mix_bits(resource.host ^ mix_bits(resource.number + _TEXT_PURPOSE)))
                return Answer(200, _PLAIN, self._writer.text(draw, self._graph.size_of(0, draw >> 32)))
            case Kind.ASSET:
                return Answer(200, _CSS, b"body { margin: 2em }\n")
            case Kind.HOP | Kind.LOOP:
                location = self._redirect_location(resource, port)
                return Answer(status, (*HTML, ("Location", location)), render_notice(status, location))
            case Kind.COPY | Kind.NEAR_COPY:
                return Answer(200, HTML, self._copy_body(resource))
            case _:
                retry_after = (("Retry-After", "1"),) if status == 503 else ()
                return Answer(status, HTML + retry_after, render_notice(status))

    def url(self, resource: Resource, port: int) -> str:
        return origin_of(self._names.name_of(resource.host), port) + path_of(resource.kind, resource.number)

    def _delay_ms(self, resource: Resource) -> int:
        slow = resource.kind is Kind.PAGE and resource.number == 3 and resource.host % _SLOW_HOSTS_EVERY == 0
        return self._slow_ms if slow else 0

    def _page_body(self, source: Resource, port: int) -> bytes:
        links = self._graph.links(source)
        draw, base_draw, *draws = random_words(
            _text_layout(len(links)), self._seed, _TEXT_PURPOSE, source.host, self._graph.key(source)
        )
        host, authority = source.host, self._authority(source.host, port)
        base, written_base = self._base_of_page(base_draw, source, authority, port)
        hrefs = []
        for (to, kind, number), spelling in zip(links, draws, strict=True):
            to_authority = authority if to == host else self._authority(to, port)
            hrefs.append(spell_link(spelling, to_authority, PATHS[kind](number), base))
        title = f"{source.kind.capitalize()} {source.number} of {authority.partition(':')[0]}"
        render = self._writer.frameset if is_frameset(source) else self._writer.page
        page = render(draw, title, written_base, hrefs, self._graph.size_of(len(links), draw >> 32))
        if (source.kind, source.number) == (Kind.PAGE, 0) and (feeds := self._graph.count(Kind.FEED, host)):
            named = alternate_links([self.url(Resource(host, Kind.FEED, number), port) for number in range(feeds)])
            return page.replace(b"</head>", named + b"</head>", 1)
        return page

    def _base_of_page(self, draw: int, source: Resource, authority: str, port: int) -> tuple[Base, str | None]:
        here = Base(authority, path_of(source.kind, source.number))
        if draw % 100 >= _BASE_SHARE_PERCENT:
            return here, None
        topics = 1 + self._graph.count(Kind.PAGE, source.host) // PAGES_PER_TOPIC
        draw, name = divmod(draw // 100, 2)
        draw, is_elsewhere = divmod(draw, 3)
        if not is_elsewhere:
            authority = self._authority((draw >> 20) % self._hosts, port)
        base = Base(authority, f"/topic-{draw % topics}/" + ("index.html" if name else ""))
        return base, spell_link(draw, base.authority, base.path, here)

    def _small_page(self, source: Resource, port: int) -> bytes:
        """Return a page with plain links, for resources that do not test the spelling of links."""
        base = Base(self._authority(source.host, port), path_of(source.kind, source.number))
        hrefs = [self._plain_href(target, base, port) for target in self._graph.links(source)]
        draw = mix_bits(self._seed ^ mix_bits(source.host ^ self._graph.key(source)))
        title = f"{source.kind.capitalize()} {source.number}"
        return self._writer.page(draw, title, None, hrefs, _SMALL_BYTES)

    def _plain_href(self, target: Resource, base: Base, port: int) -> str:
        authority, path = self._authority(target.host, port), path_of(target.kind, target.number)
        return path if authority == base.authority else f"http://{authority}{path}"

    def _copy_body(self, source: Resource) -> bytes:
        hrefs = [path_of(target.kind, target.number) for target in self._graph.links(source)]
        is_near = source.kind is Kind.NEAR_COPY
        draw = mix_bits(self._seed ^ source.number ^ _NEAR_PURPOSE * is_near)
        page = self._writer.page(draw, f"Story {source.number}", None, hrefs, 2 * _SMALL_BYTES)
        page = in_own_words(page, draw)
        return with_changed_words(page, self._own_draw(source), NEAR_WORDS_MAX) if is_near else page

    def _own_draw(self, source: Resource) -> int:
        return mix_bits(self._seed ^ mix_bits(source.host ^ mix_bits(self._graph.key(source) + _WORDS_PURPOSE)))

    def _news_answer(self, source: Resource, port: int, at_ms: int, conditions: Mapping[str, str]) -> Answer:
        changed_ms = changed_ms_of(self._seed, source.host, source.number, at_ms)
        headers = validators(changed_ms)
        if is_unchanged(conditions, changed_ms):
            return Answer(304, headers)
        hrefs = [path_of(target.kind, target.number) for target in self._graph.links(source)]
        body = self._writer.page(mix_bits(changed_ms), f"News of {changed_ms}", None, hrefs, _SMALL_BYTES)
        return Answer(200, HTML + headers, body)

    def _feed_answer(self, source: Resource, port: int, at_ms: int) -> Answer:
        host, seed = source.host, self._seed
        dated = [(Kind.ANNOUNCED, number, announced_ms(seed, host, number)) for number in announced_in(source.number)]
        news = range(min(NEWS_MAX, self._graph.count(Kind.NEWS, host)))
        dated += [(Kind.NEWS, number, changed_ms_of(seed, host, number, at_ms)) for number in news]
        entries = (Entry(self.url(Resource(host, kind, n), port), f"{kind} {n}", made_ms) for kind, n, made_ms in dated)
        media_type, body = feed(source.number, self.url(source, port), entries)
        return Answer(200, (("Content-Type", media_type),), body)

    def _sitemap_answer(self, source: Resource, port: int, at_ms: int) -> Answer:
        host = source.host
        if not source.number:
            lists = (Resource(host, Kind.SITEMAP, number) for number in range(1, LISTS + 1))
            return Answer(200, _XML, index_of_sitemaps(self.url(target, port) for target in lists))
        mapped = [self.url(Resource(host, Kind.MAPPED, number), port) for number in mapped_in(source.number)]
        news = range(self._graph.count(Kind.NEWS, host))
        lies = bool(news) and host % LIARS_EVERY == 1
        pages = [ListedPage(self.url(Resource(host, Kind.PAGE, 0), port))]
        pages += [ListedPage(url, "always", at_ms) if lies else ListedPage(url) for url in mapped]
        for number in news if source.number == NEWS_LIST else ():
            changed_ms = changed_ms_of(self._seed, host, number, at_ms)
            word = changefreq_of(period_ms_of(number))
            pages.append(ListedPage(self.url(Resource(host, Kind.NEWS, number), port), word, changed_ms))
        return Answer(200, _GZIP, sitemap(pages))

    def _redirect_location(self, source: Resource, port: int) -> str:
        target = self._graph.redirect(source)
        if target.host != source.host or source.number % 2 == 0:
            return self.url(target, port)
        fragment = "#part-1" if source.number % 8 == 5 else ""
        return relative_path(path_of(source.kind, source.number), path_of(target.kind, target.number)) + fragment

    def _exhibit_context(self, exhibit: Resource, port: int, at_ms: int) -> ExhibitContext:
        onward, row = proof_of(exhibit), row_of(exhibit)
        draw = mix_bits(self._seed ^ mix_bits(exhibit.host ^ self._graph.key(exhibit)))
        return ExhibitContext(
            authority=self._authority(exhibit.host, port),
            own=path_of(exhibit.kind, exhibit.number),
            onward=path_of(onward.kind, onward.number) if onward else "",
            word=row.word,
            agent=self._agent,
            at_ms=at_ms,
            phase_ms=draw % 2**20,
            filler=lambda wanted: self._writer.filler(draw, wanted).decode(),
        )


def status_of(resource: Resource) -> int:
    match resource.kind:
        case Kind.MISSING:
            return 404
        case Kind.FAILING:
            return 503 if resource.number % 2 else 500
        case Kind.HOP:
            return 302 if resource.number % 2 else 301
        case Kind.LOOP:
            return 302
        case _:
            return 200


@lru_cache(512)
def _text_layout(links: int) -> struct.Struct:
    return struct.Struct(f"<2Q{links}H")

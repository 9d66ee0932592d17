"""The resources that a crawl can reach, and those that every correct crawler reaches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bigcrawl_simweb.basics.resources import ENDLESS_KINDS, Kind, Resource
from bigcrawl_simweb.exhibits.table import row_of
from bigcrawl_simweb.model.sitemaps import LISTS, NEWS_LIST, NEWS_MAX, announced_in, mapped_in

if TYPE_CHECKING:
    from bigcrawl_simweb.model.expectations import Expectations, Expected
    from bigcrawl_simweb.model.graph import Graph


class Reachability:
    def __init__(
        self,
        graph: Graph,
        expectations: Expectations,
        obey_robots: bool,
        obey_nofollow: bool,
        read_sitemaps: bool,
        read_feeds: bool,
    ) -> None:
        self._graph = graph
        self._expectations = expectations
        self._obey_robots = obey_robots
        self._obey_nofollow = obey_nofollow
        self._read_sitemaps = read_sitemaps
        self._read_feeds = read_feeds

    def expected(self, starts: list[Resource]) -> dict[Resource, Expected]:
        """Return the correct result for every reachable resource.

        Required are those reachable through pages whose links all correct crawlers find.
        """
        found = self._reach_all(starts, certain_only=False)
        certain = self._reach_all(starts, certain_only=True) if self._expectations.may_differ else found
        expected = {}
        for resource in found:
            wanted = self._expectations.of(resource).expected
            expected[resource] = wanted if resource in certain else replace(wanted, required=False)
        return expected

    def _reach_all(self, starts: list[Resource], *, certain_only: bool) -> set[Resource]:
        waiting, seen = list(starts), set(starts)
        reached: set[Resource] = set()
        while waiting:
            resource = waiting.pop()
            if resource.kind in ENDLESS_KINDS or not self._expectations.resolves(resource.host):
                continue
            if self._obey_robots and self._expectations.closes(resource):
                continue
            reached.add(resource)
            if certain_only and not self._expectations.of(resource).is_certain:
                continue
            fresh = set(self.leads_to(resource)) - seen
            seen |= fresh
            waiting += fresh
        return reached

    def leads_to(self, resource: Resource) -> list[Resource]:
        host, kind, number = resource
        if kind in (Kind.HOP, Kind.LOOP):
            return [self._graph.redirect(resource)]
        if kind is Kind.EXHIBIT and self._obey_nofollow and row_of(resource).nofollow:
            return []
        if kind is Kind.SITEMAP:
            if not number:
                return [Resource(host, kind, other) for other in range(1, LISTS + 1)]
            news = range(self._graph.count(Kind.NEWS, host) if number == NEWS_LIST else 0)
            mapped = [Resource(host, Kind.MAPPED, other) for other in mapped_in(number)]
            return mapped + [Resource(host, Kind.NEWS, other) for other in news]
        if kind is Kind.FEED:
            news = range(min(NEWS_MAX, self._graph.count(Kind.NEWS, host)))
            announced = [Resource(host, Kind.ANNOUNCED, other) for other in announced_in(number)]
            return announced + [Resource(host, Kind.NEWS, other) for other in news]
        links = self._graph.links(resource)
        if self._read_feeds and (kind, number) == (Kind.PAGE, 0):
            links += [Resource(host, Kind.FEED, other) for other in range(self._graph.count(Kind.FEED, host))]
        if self._read_sitemaps and (kind, number) == (Kind.PAGE, 0) and self._expectations.names_sitemap(host):
            links.append(Resource(host, Kind.SITEMAP, 0))
        return links

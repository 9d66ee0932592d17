"""Requests that try a URL in process again: Scrapy's retries, and redirects of a URL to itself.

For each Scrapy makes a new Request with the old one's meta. Here they are not new URLs: the taken URL fails, and waits
in its host's queue for its next try. Other requests may only copy old meta; the started requests tell them apart.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bigcrawl.politeness.backoff_policy import FREE_TRIES_MAX, is_failure
from bigcrawl.scheduler.adapter.request_codec import ENTRY, ONCE, jar_bytes
from bigcrawl.scheduler.records.body import as_next_try
from bigcrawl.scheduler.records.member import order_of, pack_member, priority_after_failure
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from scrapy import Request

    from bigcrawl.scheduler.adapter.live_requests import LiveRequests
    from bigcrawl.scheduler.adapter.request_codec import KeyOf
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.records.held import HeldUrl

# Outcomes of a URL that redirects to itself: it was answered, and retries in its meta are older.
REDIRECTED = frozenset(f"status:{code}" for code in (301, 302, 303, 307, 308))


class Tries:
    """Recognises tries, and prepares the next try of a URL."""

    def __init__(
        self, started: StartedRequests, url_bytes_max: int, key_of: KeyOf, *, keeps_first: bool = False
    ) -> None:
        """`keeps_first`: whether the body of a try has the first one too, because URLs are visited again."""
        self._keeps_first = keeps_first
        self._key_of = key_of
        self._started = started
        self._url_bytes_max = url_bytes_max

    def __repr__(self) -> str:
        return f"<Tries of {len(self._started)}>"

    def redirected_from(self, meta: dict[str, Any]) -> HeldUrl | None:
        """The URL in process of which a request with this meta is the redirect; None if it only copies old meta."""
        came_from = meta.get("redirect_urls")
        if not meta.get("redirect_times") or not came_from:
            return None
        return next((held for request, held in self._started.items() if request.url == came_from[-1]), None)

    def is_redirect_in_jar(self, meta: dict[str, Any], jar: object) -> bool:
        """Whether the jar is part of the key of the URL in process that redirects; see `redirected_from`."""
        for request, held in self._started.items():
            before = request._meta or {}
            if request.url == meta["redirect_urls"][-1] and jar in (before.get("cookiejar"), before.get(ENTRY)):
                canonical = canonicalize(request.url, self._url_bytes_max)
                return held.fields.key == self._key_of(canonical, request.method, request.body, jar_bytes(jar))
        return False

    def tried_again(self, request: Request, meta: dict[str, Any]) -> HeldUrl | None:
        """The URL in process that this request tries again, as a retry or a redirect to itself; None if there is none.

        A redirect from another URL to one in process is no try: it is a link like any other.
        """
        if not (meta.get("retry_times") or meta.get("redirect_times")):
            return None
        canonical = canonicalize(request.url, self._url_bytes_max)
        # Its key may include its cookie jar, its entry, or what it is fetched once for.
        jars = dict.fromkeys((*(jar_bytes(meta.get(name)) for name in (ONCE, ENTRY, "cookiejar")), b""))
        keys: list[int] = [self._key_of(canonical, request.method, request.body, jar) for jar in jars]
        known = [(keys.index(h.fields.key), r, h) for r, h in self._started.items() if h.fields.key in keys]
        for _, started, held in sorted(known, key=itemgetter(0)):
            before = started._meta or {}
            came_from = list(before.get("redirect_urls") or [])
            if meta.get("redirect_urls", []) == [*came_from, started.url]:
                return held
            is_retry = int(meta.get("retry_times", 0)) > int(before.get("retry_times", 0))
            if is_retry and meta.get("redirect_urls", []) == came_from:
                return held
        return None

    def try_again(self, held: HeldUrl, request: Request, live: LiveRequests, handout: Handout) -> None:
        """Send a URL back to its host's queue as this request, which is its retry or its redirect to itself."""
        is_redirect = held.outcome in REDIRECTED
        attempts = held.fields.attempts + (not is_redirect)
        goes_behind = not is_redirect and (is_failure(held.outcome) or "retry_times" in (request._meta or {}))
        if is_failure(held.outcome) and handout.health.is_failing(held.host, held.fields.key):
            self._give_try_back(held, request)
        url, _ = live.encode(
            request, held.fields.body, key_of=self._key_of, checked=True, url_bytes_max=self._url_bytes_max
        )
        # A redirect keeps its place in Redis, where it was admitted. A failed URL goes behind its host's others, which
        # should not wait for it; the next one shows whether the host failed or the page.
        priority = priority_after_failure(held.fields.priority) if goes_behind else held.fields.priority
        body = as_next_try(url.body, held.fields.body) if self._keeps_first else url.body
        url = url._replace(key=held.fields.key, priority=priority, flags=held.fields.flags, body=body)
        held.try_again(pack_member(held.seq, url, attempts), order_of(priority, held.seq) if goes_behind else None)

    def _give_try_back(self, held: HeldUrl, request: Request) -> None:
        """Do not count this try, up to a limit, because the host has failed already with another URL."""
        counted = next((r.meta.get("retry_times", 0) for r, url in self._started.items() if url is held), 0)
        if held.fields.attempts - counted >= FREE_TRIES_MAX:
            return
        if counted:
            request.meta["retry_times"] = counted
        else:
            request.meta.pop("retry_times", None)

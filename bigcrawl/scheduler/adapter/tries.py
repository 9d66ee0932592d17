"""Requests that try a URL in process again, and not merely copy its meta: retries, and redirects to itself."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from scrapy import Request

from bigcrawl.politeness.backoff_policy import FREE_TRIES_MAX, is_failure
from bigcrawl.scheduler.adapter.request_codec import ENTRY, ONCE, jar_bytes
from bigcrawl.scheduler.records.body import as_next_try
from bigcrawl.scheduler.records.member import order_of, pack_member, priority_after_failure
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.adapter.live_requests import LiveRequests
    from bigcrawl.scheduler.adapter.request_codec import KeyOf
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.handout.handout import Handout
    from bigcrawl.scheduler.records.held import HeldUrl

# A URL that redirects to itself was answered, so retries in its meta are older.
REDIRECTED = frozenset(f"status:{code}" for code in (301, 302, 303, 307, 308))


class RetryMarks:
    def __init__(
        self,
        started: StartedRequests,
        url_bytes_max: int,
        key_of: KeyOf,
        apart: Callable[[Request], bytes] | None = None,
    ) -> None:
        self._apart = apart
        self._key_of = key_of
        self._started = started
        self._url_bytes_max = url_bytes_max

    def redirected_from(self, meta: dict[str, Any]) -> HeldUrl | None:
        """Return the URL in process that redirected to a request with this meta, unless the meta is a copy."""
        came_from = meta.get("redirect_urls")
        if not meta.get("redirect_times") or not came_from:
            return None
        return next((held for request, held in self._started.items() if request.url == came_from[-1]), None)

    def is_redirect_in_jar(self, meta: dict[str, Any], jar: object) -> bool:
        for request, held in self._started.items():
            before = request._meta or {}
            if request.url == meta["redirect_urls"][-1] and jar in (before.get("cookiejar"), before.get(ENTRY)):
                canonical = canonicalize(request.url, self._url_bytes_max)
                jars = self._jar_names(request, jar)
                return any(held.fields.key == self._key_of(canonical, request.method, request.body, j) for j in jars)
        return False

    def tried_again(self, request: Request, meta: dict[str, Any]) -> HeldUrl | None:
        if not (meta.get("retry_times") or meta.get("redirect_times")):
            return None
        canonical = canonicalize(request.url, self._url_bytes_max)
        jars = self._jar_names(request, *map(meta.get, (ONCE, ENTRY, "cookiejar")), None)
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

    def _jar_names(self, request: Request, *jars: object) -> dict[bytes, None]:
        told = self._apart(request) if self._apart is not None else b""
        apart = [jar_bytes([jar, told]) for jar in jars] if told else []
        return dict.fromkeys((*apart, *map(jar_bytes, jars)))

    def try_again(self, held: HeldUrl, request: Request, live: LiveRequests, handout: Handout) -> None:
        """Return a URL to its host's queue for its next try, with this request: its retry, or redirect to itself."""
        is_redirect = held.outcome in REDIRECTED
        attempts = held.fields.attempts + (not is_redirect)
        goes_behind = not is_redirect and (is_failure(held.outcome) or "retry_times" in (request._meta or {}))
        if is_failure(held.outcome) and handout.health.is_failing(held.host, held.fields.key):
            self._give_try_back(held, request)
        url, _ = live.encode(
            request, held.fields.body, key_of=self._key_of, checked=True, url_bytes_max=self._url_bytes_max
        )
        # A redirect keeps its place in Redis. A failed URL goes behind its host's others; the next one shows which of
        # the two failed.
        priority = priority_after_failure(held.fields.priority) if goes_behind else held.fields.priority
        body = as_next_try(url.body, held.fields.body) if handout.ends.may_come_again else url.body
        url = url._replace(key=held.fields.key, priority=priority, flags=held.fields.flags, body=body)
        held.try_again(pack_member(held.seq, url, attempts), order_of(priority, held.seq) if goes_behind else None)

    def _give_try_back(self, held: HeldUrl, request: Request) -> None:
        """Do not count this try, up to a limit, because the host had already failed with another URL."""
        counted = next((r.meta.get("retry_times", 0) for r, url in self._started.items() if url is held), 0)
        if held.fields.attempts - counted >= FREE_TRIES_MAX:
            return
        if counted:
            request.meta["retry_times"] = counted
        else:
            request.meta.pop("retry_times", None)


class FingerprintChoice:
    """Returns a request's fingerprint unless a plain request with its URL, method and body has the same."""

    def __init__(self, fingerprint: Callable[[Request], bytes]) -> None:
        self._fingerprint = fingerprint

    def __call__(self, request: Request) -> bytes:
        meta = {"verbatim_url": True} if request.meta.get("verbatim_url") else None
        plain = Request(request.url, method=request.method, body=request.body, meta=meta)
        found = self._fingerprint(request)
        return b"" if found == self._fingerprint(plain) else found

"""Random walks: a near-uniform sample of the pages that seeds lead to, from which the number of pages is estimated."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.http import TextResponse

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.sampling.steps import WalkStep
from bigcrawl.scheduler.adapter.request_codec import ONCE
from bigcrawl.spiders.broad import BroadSpider, is_html
from bigcrawl.url.canonical import canonicalize
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

WALKS_MAX: Final = 1_000_000
LINKS_MAX: Final = 1_000
"""Of a page, those with the lowest keys: to choose from, and kept in its item."""


class SampleSpider(BroadSpider):
    """`scrapy crawl sample -a seeds=FILE -a walks=1000 -o walks.jsonl`, then `python -m bigcrawl.sampling walks.jsonl`.

    Each walk starts at a seed drawn at random, goes on to a link of the page drawn at random, and ends at each page
    with the probability `restart`, or where there is no way on. A step is fetched once, though other steps may ask for
    the same URL; a repeat after a crash chooses as before, so walks do not fork. The other arguments are those of
    `BroadSpider`, and `seed`, of the dice.

    Cost: walks / restart fetches at most. Source: PolyBot §1.1; `bigcrawl.sampling.estimating`.
    """

    name = "sample"
    custom_settings = {**BroadSpider.custom_settings, "BIGCRAWL_BUDGET_POLICY": "none"}  # noqa: RUF012 - Scrapy's way

    def __init__(
        self, walks: int | str = 1_000, restart: float | str = 0.15, seed: int | str = 1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.seed = str(seed)
        try:
            self.walks, self.restart = int(walks), float(restart)
        except ValueError as error:
            self.wrong_arguments = ConfigError(f"walks must be a whole number, and restart a number: {error}")
        else:
            if not (1 <= self.walks <= WALKS_MAX and 0.01 <= self.restart <= 1):
                given = f"walks is {walks} and restart {restart}"
                self.wrong_arguments = ConfigError(f"{given}: may be 1 to {WALKS_MAX}, and 0.01 to 1")

    async def start(self) -> AsyncIterator[Any]:
        """Yield the first step of each walk. Raises what `BroadSpider.start` raises."""
        seeds = [url async for links in super().start() for url in links.urls]
        for walk in range(self.walks):
            yield self._step(self._dice(walk).choice(seeds), walk, 0)

    async def parse(self, response: Response, walk: int = 0, step: int = 0, **_: Any) -> AsyncIterator[Any]:
        """Yield the step, and the next one of its walk."""
        links: list[str] = []
        if response.status == 200 and isinstance(response, TextResponse) and is_html(response):
            found = link_checks_of(self.crawler).canonical(Links.from_page(response), response.url)
            links = sorted(set(found), key=PUBLIC_KEYS.of_url)[:LINKS_MAX]
        yield self._item(response.request, response.status == 200, links)
        dice = self._dice(walk, step)
        if links and dice.random() >= self.restart:
            yield self._step(dice.choice(links), walk, step + 1)

    def ended(self, failure: Failure) -> Any:
        """Yield a step without an answer, or one that robots.txt forbids: it is no page, and ends its walk."""
        yield self._item(failure.request, False, [])  # type: ignore[attr-defined]

    def _step(self, url: str, walk: int, step: int) -> Request:
        meta = {ONCE: [walk, step], "verbatim_url": True}
        return Request(url, errback=self.ended, meta=meta, cb_kwargs={"walk": walk, "step": step})

    def _item(self, request: Request | None, answers: bool, links: list[str]) -> dict[str, Any]:
        assert request is not None
        url = canonicalize(request.meta.get("redirect_urls", [request.url])[0])
        asked, found, *keys = map(int, PUBLIC_KEYS.of_urls([url, canonicalize(request.url), *links]))
        return WalkStep(
            **request.cb_kwargs,
            asked=asked,
            found=found,
            is_page=answers and asked == found,
            links=tuple(keys),
            url=url,
        )._asdict()

    def _dice(self, walk: int, step: int | None = None) -> Random:
        return Random(f"{self.seed}/{walk}/{step}")

"""Records random walks from the seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import TextResponse

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.spiders.broad import BroadSpider, is_html
from bigcrawl_sampling.sketch import WalkSketch
from bigcrawl_sampling.steps import WalkStep
from bigcrawl_sampling.walking import RandomWalks, links_to_choose_from

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response
    from twisted.python.failure import Failure


class SampleSpider(BroadSpider):
    """`scrapy crawl sample -a seeds=FILE -a walks=1000 -o walks.jsonl`, then `python -m bigcrawl_sampling walks.jsonl`.

    Each walk starts at a random seed and continues with a random link. It ends at each page with the probability
    `restart`, or where no link leads on. Cost: walks / restart fetches at most. Source: PolyBot §1.1.
    """

    name = "sample"
    changeable_arguments = ("walks",)
    custom_settings = {**BroadSpider.custom_settings, "BIGCRAWL_BUDGET_POLICY": "none"}  # noqa: RUF012 - Scrapy's way

    def __init__(
        self, walks: int | str = 1_000, restart: float | str = 0.15, seed: int | str = 1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        try:
            self._walking = RandomWalks.parse_options(walks, restart, seed)
            self.walks, self.restart, self.seed = self._walking  # other values give other start requests
        except ConfigError as error:
            self.wrong_arguments = error
        self._sketch = WalkSketch()
        self.crawl_figures, self.crawl_summary = self._sketch.figures, self._sketch.to_json

    async def start(self) -> AsyncIterator[Any]:
        seeds = [url async for links in super().start() for url in links.urls]
        for walk in range(self._walking.walks):
            yield self._request_of_step(self._walking.first_url(walk, seeds), walk, 0)

    async def parse(self, response: Response, walk: int = 0, step: int = 0, **_: Any) -> AsyncIterator[Any]:
        links: list[str] = []
        if response.status == 200 and isinstance(response, TextResponse) and is_html(response):
            links = links_to_choose_from(
                link_checks_of(self.crawler).canonical_urls(Links.from_page(response), response.url)
            )
        yield self._item_of_step(response.request, links, answers=response.status == 200)
        if (onward := self._walking.next_url(walk, step, links)) is not None:
            yield self._request_of_step(onward, walk, step + 1)

    def ended(self, failure: Failure) -> Any:
        yield self._item_of_step(failure.request, [], answers=False)  # type: ignore[attr-defined]

    def _request_of_step(self, url: str, walk: int, step: int) -> Request:
        meta = {"bigcrawl_once": [walk, step], "verbatim_url": True}
        return Request(url, errback=self.ended, meta=meta, cb_kwargs={"walk": walk, "step": step})

    def _item_of_step(self, request: Request | None, links: list[str], *, answers: bool) -> dict[str, Any]:
        assert request is not None
        asked = request.meta.get("redirect_urls", [request.url])[0]
        step = WalkStep.from_urls(**request.cb_kwargs, asked=asked, found=request.url, links=links, answers=answers)
        self._sketch.add(step)
        return step._asdict()

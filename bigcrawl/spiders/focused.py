"""A focused crawl: pages about a topic, and the links that lead to them, before all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy.http import TextResponse

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links, page_text
from bigcrawl.scoring.scorers import CheckedScorer, make_scorer, url_words
from bigcrawl.scoring.scores import priority_of
from bigcrawl.spiders.broad import BroadSpider, is_html

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

OWN_SHARE: Final = 0.6  # weight of anchor and URL in a link's score; the rest is its page's
_STEPS: Final = 10  # different scores of links: each is a batch to the frontier


class FocusedSpider(BroadSpider):
    """`scrapy crawl focused -a seeds=FILE -a topic="bees honey beekeep*"`; yields each page that is about the topic.

    Its arguments are those of `BroadSpider`, and `topic`, `scorer`, `threshold` and `tunnel`: docs/guide/focused.md.
    The best link is not always fetched next: URLs wait at five levels, and none overtakes those in Redis.
    """

    name = "focused"
    changeable_arguments = ("threshold", "tunnel")
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        **BroadSpider.custom_settings,
        "BIGCRAWL_BUDGET_POLICY": "none",
        "BIGCRAWL_PRIORITY_BIAS": 100,
        "BIGCRAWL_HOT_URLS": 1_000,
    }

    def __init__(
        self,
        topic: str = "",
        scorer: Any = "",
        threshold: float | str = 0.8,
        tunnel: int | str = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        try:
            self.scored = CheckedScorer(make_scorer(scorer, topic))
            self.threshold, self.tunnel = float(threshold), int(tunnel)
        except ConfigError as error:
            self.wrong_arguments = error
        except ValueError as error:
            self.wrong_arguments = ConfigError(f"threshold must be a number, and tunnel a whole one: {error}")
        self._harvest = [0, 0]  # pages about the topic, of pages that were scored
        self.crawl_figures = {"pages about the topic": self._harvest}

    async def parse(self, response: Response, lead: float = 1.0, hops: int = 0, **_: Any) -> AsyncIterator[Any]:
        """Yield the page if it is about the topic, and its links by score.

        `lead` is the score of the last page about the topic on the way here; `hops` counts the pages since.
        """
        if not (isinstance(response, TextResponse) and is_html(response)):
            return
        [score] = self.scored([page_text(response)])
        lead, hops = (score, 0) if score >= self.threshold else (lead, hops + 1)
        self._harvest[1] += response.status == 200
        if not hops and response.status == 200:
            self._harvest[0] += 1
            yield {"url": response.url, "score": round(score, 3)}
        links = Links.from_page(response, with_anchors=True, cb_kwargs={"lead": round(lead, 3), "hops": hops})
        for batch in links.by_priority(self._link_priorities(links, lead, hops)):
            yield batch

    def _link_priorities(self, links: Links, lead: float, hops: int) -> list[int]:
        words = [f"{anchor} {url_words(url)}" for url, anchor in zip(links.urls, links.anchors, strict=True)]
        pages_part = (1 - OWN_SHARE) * lead / 2**hops if hops <= self.tunnel else 0.0
        scores = [round(_STEPS * (OWN_SHARE * own + pages_part)) / _STEPS for own in self.scored(words)]
        return [priority_of(score or (-1 if hops > self.tunnel else 0)) for score in scores]

"""Which words occur where in stored pages (UbiCrawler §5): the first half of a search engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

VISIBLE = "bigcrawl.links.page_text"
words_in = re.compile(r"[^\W_]+").findall


class WordsSpider(scrapy.Spider):
    """`-s BIGCRAWL_SOURCE=warc`: for every stored HTML page its words, each with the places where it stands.

    `-a text=` names the function that makes text of a response: by default all that is visible, or for example
    `crawls.texts.main_text`, or one of yours.
    """

    name = "words"
    custom_settings = {"BIGCRAWL_SOURCE_PAGES": "all"}  # noqa: RUF012 - Scrapy's own way

    def __init__(self, text: str = VISIBLE, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text_of = load_object(text)

    def parse(self, response: Response) -> Iterator[Any]:
        """Yield the page's words, in lower case, each with its places: 0 is the first word."""
        if not isinstance(response, HtmlResponse):
            return
        text = self.text_of(response)
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words_in(getattr(text, "text", text).lower())):
            places.setdefault(word, []).append(place)
        yield {"url": response.url, "words": places}

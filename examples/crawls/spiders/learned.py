"""The focused spider of bigcrawl with a scorer that was trained from pages, instead of a list of words."""

from __future__ import annotations

from typing import Any

from bigcrawl.spiders.focused import FocusedSpider
from crawls.topic_model import TopicModel


class LearnedSpider(FocusedSpider):
    """`-a model=FILE`, as `python -m crawls.topic_model` has written it; the rest as for bigcrawl's focused spider."""

    name = "learned"

    def __init__(self, model: str, threshold: str = "0.5", **kwargs: Any) -> None:
        super().__init__(scorer=TopicModel.load(model), threshold=threshold, **kwargs)

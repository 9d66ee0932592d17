from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.adapter.values.codec import ValueCodec
from bigcrawl.scheduler.adapter.values.known_names import packages_of
from bigcrawl.scheduler.adapter.values.taught_types import taught_types

if TYPE_CHECKING:
    from scrapy import Spider

    from bigcrawl.config import Config


def values_of(config: Config, spider: Spider) -> ValueCodec:
    frontier = config.frontier
    settings = getattr(spider, "settings", None)
    modules = [type(spider).__module__, *(settings.getlist("SPIDER_MODULES") if settings else ())]
    packages = frontier.stored_packages if frontier.stored_packages is not None else packages_of(modules)
    return ValueCodec(spider, packages, taught_types(frontier.stored_types))

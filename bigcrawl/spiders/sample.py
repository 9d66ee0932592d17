"""The spider `sample` of the annex bigcrawl_sampling, under its first name, where Scrapy finds it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from bigcrawl.exceptions import MissingAnnexError
from bigcrawl.spiders.broad import BroadSpider

if find_spec("bigcrawl_sampling") is not None:
    from bigcrawl_sampling import spider

    SampleSpider = spider.SampleSpider
    sys.modules[__name__] = spider
else:

    class SampleSpider(BroadSpider):  # type: ignore[no-redef]
        name = "sample"
        wrong_arguments = MissingAnnexError("bigcrawl_sampling")

"""From sampled stacks to CPU microseconds a page by stage.

A sample belongs to the stage of the innermost call whose file is in `STAGES`. Files that work for everybody
(asyncio, Twisted's deferreds, Scrapy's utilities, the standard library) say nothing; when nothing else is on the
stack, `FALLBACKS` decide.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

COLLECTOR: Final = "garbage collector"
NATIVE: Final = "native threads"
OTHER: Final = "other"
UNSAMPLED: Final = "not sampled"
FUNCTIONS_KEPT: Final = 25

# Stage, and fragments of paths. In a file's path the first row with a match counts.
STAGES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("WARC", ("/bigcrawl/warc/", "/bigcrawl/page_index/", "/bigcrawl/pipelines/")),
    # asyncio's streams are used by the Redis client alone.
    ("Redis client", ("/bigcrawl/redisdb/", "/redis/", "/hiredis/", "/asyncio/streams.py")),
    ("canonical and key", ("/bigcrawl/url/", "/tldextract/", "/ada_url/", "/mmh3/")),
    (
        "parse and links",
        (
            *(
                "/bigcrawl/links/",
                "/bigcrawl/scan/",
                "/bigcrawl/scan/",
                "/bigcrawl/listings/",
                "/bigcrawl/scoring/",
                "/bigcrawl_sampling/",
            ),
            *("/bigcrawl/spiders/", "/selectolax/"),
            *("/benchmarks/crawl/spiders.py", "/scrapy/linkextractors/", "/lxml/", "/parsel/"),
        ),
    ),
    (
        "frontier",
        (
            *("/bigcrawl/scheduler/", "/bigcrawl/drum/", "/bigcrawl/politeness/", "/bigcrawl/middlewares/"),
            "/bigcrawl/features/",
            *("/bigcrawl/store/", "/bigcrawl/metrics/", "/bigcrawl/serving/", "/bigcrawl/dashboard/"),
            *("/bigcrawl/features/", "/bigcrawl_report/", "/bigcrawl/revisiting/", "/bigcrawl/content/"),
            *("/bigcrawl/stored/", "/bigcrawl/page_store/", "/bigcrawl/text_files/"),
            *("/scrapy/core/scheduler.py", "/scrapy/pqueues.py", "/scrapy/squeues.py", "/scrapy/dupefilters.py"),
            *("/queuelib/", "/scrapy_redis/"),
        ),
    ),
    (
        "download",
        (
            *("/bigcrawl/downloads/", "/scrapy/core/downloader/", "/scrapy/downloadermiddlewares/"),
            *("/scrapy/core/http2/", "/twisted/web/", "/twisted/internet/tcp.py", "/twisted/internet/endpoints.py"),
            *("/twisted/internet/abstract.py", "/aiohttp/", "/yarl/"),
        ),
    ),
    (
        "engine",
        (
            *("/scrapy/core/", "/scrapy/spidermiddlewares/", "/scrapy/extensions/"),
            *("/bigcrawl/extensions/", "/bigcrawl/logs/", "/bigcrawl/config/"),
        ),
    ),
)
FALLBACKS: Final = (
    ("engine", ("/scrapy/",)),
    ("event loop", ("/asyncio/", "/twisted/", "/uvloop/", "/selectors.py")),
)
ORDER: Final = tuple(dict.fromkeys([name for name, _ in (*STAGES, *FALLBACKS)] + [OTHER, COLLECTOR, UNSAMPLED, NATIVE]))


@dataclass(frozen=True, slots=True)
class StageCosts:
    """CPU of one profiled run, in microseconds a page.

    Attributes:
        pages: how many were fetched while it was sampled.
        main: by stage, of the main thread; in the order of `STAGES`, then what belongs to none.
        others: likewise, of all other threads. All values of both together are all CPU of the process.
        functions: file and function with the time of their own, in any thread, the most expensive first.
    """

    pages: int
    main: dict[str, float]
    others: dict[str, float]
    functions: list[tuple[str, float]]

    @property
    def total_us(self) -> float:
        return sum(self.main.values()) + sum(self.others.values())


def stage_costs(profile: dict[str, Any]) -> StageCosts:
    """Sum up what `profiler.Profile` wrote."""
    main, others = _by_stage(profile["main"]), _by_stage(profile["others"])
    # The handler's own time, and what the main thread did after its last sample.
    main[UNSAMPLED] = profile["main_ns"] - profile["gc_ns"] - main.total()
    main[COLLECTOR] = profile["gc_ns"]
    # The clocks are not read at one moment: where there are no native threads, their sum may be a little short.
    others[NATIVE] = max(0, profile["process_ns"] - profile["main_ns"] - others.total())
    functions: Counter[str] = Counter()
    for stack, spent_ns in (*profile["main"], *profile["others"]):
        functions[stack[0]] += spent_ns
    ns_to_us_a_page = 1 / 1000 / max(1, profile["pages"])
    return StageCosts(
        pages=profile["pages"],
        main={name: main[name] * ns_to_us_a_page for name in ORDER if main[name]},
        others={name: others[name] * ns_to_us_a_page for name in ORDER if others[name]},
        functions=[(name, spent_ns * ns_to_us_a_page) for name, spent_ns in functions.most_common(FUNCTIONS_KEPT)],
    )


def _by_stage(stacks: Sequence[tuple[Sequence[str], int]]) -> Counter[str]:
    spent: Counter[str] = Counter()
    for stack, spent_ns in stacks:
        spent[stage_of(stack)] += spent_ns
    return spent


def stage_of(stack: Sequence[str]) -> str:
    """The stage of one stack: `file:function`, the innermost call first."""
    for rows in (STAGES, FALLBACKS):
        for call in stack:
            for name, fragments in rows:
                if any(fragment in call for fragment in fragments):
                    return name
    return OTHER

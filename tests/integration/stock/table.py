"""The rows: each spider once, with what differs on purpose."""

from __future__ import annotations

from tests.integration.stock.case import ANYTHING, Case

_OWN = "tests.integration.stock.spiders.OwnPipeline"
_HANDLES = "tests.integration.stock.holding.HandleMiddleware"
_FAILING = "tests.integration.stock.failing"
_ROBOTS_FIRST = "without a robots.txt no page is asked for, so each page asks for it in its place"
_REFUSAL = "<class 'bigcrawl.scheduler.adapter.fetch_errors.UrlRefusedError'>"
_REFUSED = [
    '{"depth": 0, "status": 200, "url": "http://site0/page/1"}',
    f'{{"failed": "{_REFUSAL}", "retries": null, "url": "http://site0/page/2"}}',
]
_UNDER_WAY = {"items": ANYTHING, "signals": ANYTHING, "stats": ANYTHING}

CASES = (
    Case("plain"),
    Case("start"),
    Case("rules"),
    Case("map"),
    Case("forms"),
    Case(
        "errback_example",
        {"RETRY_TIMES": 1},
        ours={"stats": ANYTHING, "signals": ANYTHING},
        why="robots.txt of a host that is away is asked for in the place of the page, and not once more besides",
    ),
    Case("cookies"),
    Case(
        "cookies",
        {"COOKIES_ENABLED": False},
        ours={"signals": ANYTHING, "stats": ANYTHING},
        why="a page that redirects to itself for a cookie is asked for once, and not REDIRECT_MAX_TIMES times",
        name="cookies-off",
    ),
    Case("pipelines", {"ITEM_PIPELINES": {_OWN: 300}}),
    Case("chain", {"CLOSES_AT": 3}, name="close-in-callback"),
    Case("chain", {"DEPTH_LIMIT": 2}, name="depth-limit"),
    Case(
        "chain",
        {"CLOSESPIDER_ITEMCOUNT": 2},
        ours=_UNDER_WAY,
        why="how many more pages are under way when a limit is reached is nobody's promise",
        name="closespider-itemcount",
    ),
    Case("chain", {"CLOSESPIDER_PAGECOUNT": 2}, name="closespider-pagecount"),
    Case("chain", {"CLOSESPIDER_ERRORCOUNT": 1, "FAILS_AT": 2}, name="closespider-errorcount"),
    # Seconds in which a busy machine has begun the fetch, and those until it is given up, before the site lets it go.
    Case("hold", {"CLOSESPIDER_TIMEOUT": 6, "DOWNLOAD_TIMEOUT": 9, "RETRY_ENABLED": False}, name="closespider-timeout"),
    Case("retries", {"RETRY_TIMES": 1}),
    Case("redirects"),
    Case(
        "beside",
        ours={"signals": ANYTHING},
        why="robots_parsed is sent for the hosts of the crawl's pages",
    ),
    Case("keys"),
    Case("handled", {"RETRY_TIMES": 2, "DOWNLOADER_MIDDLEWARES": {_HANDLES: 10}}),
    Case("kept", {"DOWNLOADER_MIDDLEWARES": {_HANDLES: 10}, "BIGCRAWL_NOT_STORABLE": "memory"}),
    Case(
        "refused",
        ours={"items": _REFUSED, "signals": ANYTHING, "stats": ANYTHING},
        why="what cannot be stored is refused, unless a setting has it kept in memory",
    ),
    Case("values"),
    Case("data"),
    Case(
        "fingerprints",
        {
            "REQUEST_FINGERPRINTER_CLASS": "tests.integration.stock.spiders.ByKind",
            "BIGCRAWL_FINGERPRINTS": True,
            "RETRY_TIMES": 1,
        },
    ),
    Case(
        "damaged_data",
        ours={"stats": ANYTHING},
        why="the first error of a handler is logged, also if its errback gets it",
    ),
    Case(
        "failing",
        {"DOWNLOAD_HANDLERS": {"http": f"{_FAILING}.RaisingHandler"}},
        ours={"stats": ANYTHING},
        why=_ROBOTS_FIRST,
        name="handler-raises",
    ),
    Case(
        "failing",
        {"DOWNLOAD_HANDLERS": {"http": f"{_FAILING}.UnmadeHandler"}},
        ours={"stats": ANYTHING},
        why=_ROBOTS_FIRST,
        name="handler-cannot-be-made",
    ),
    Case(
        "failing",
        {"DOWNLOAD_HANDLERS": {"http": f"{_FAILING}.ImpersonatingHandler"}, "RETRY_TIMES": 1},
        ours={"stats": ANYTHING, "signals": ANYTHING},
        why="robots.txt is asked for as its page connects, and so is answered",
        name="handler-impersonates",
    ),
    Case("unpacked"),
)

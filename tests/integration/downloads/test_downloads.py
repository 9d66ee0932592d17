"""Row by row: with bigcrawl a spider sees, and a server sees, what they see with stock Scrapy."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.utils.request import request_httprepr

from tests.integration.downloads import tables
from tests.integration.downloads.case import fill
from tests.integration.downloads.conftest import OURS
from tests.integration.downloads.differences import differences, put
from tests.integration.downloads.origin import ADDRESSES

_ROWS = {
    "bare": tables.CASES,
    "watched": tables.ALL,
    "surrounded": tables.SURROUNDED,
    "handled": tables.HANDLED,
    "handled_otherwise": tables.HANDLED,
}
BARE = pytest.mark.long("rows of the run that is watched, without anybody who watches")
_RUNS = (pytest.param("bare", marks=BARE), *(name for name in _ROWS if name != "bare"))
_COUNTED = ("downloader/", "retry/", "httpcompression/", "httpcache/", "httperror/", "file_", "item_", "response_")

if TYPE_CHECKING:
    from tests.integration.downloads.case import Case
    from tests.integration.downloads.conftest import Pair
    from tests.integration.downloads.origin import Hit
    from tests.integration.downloads.sides import Seen


def _by_name(cases: tuple[Case, ...]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


def _told(seen: Seen, case: Case) -> dict[str, Any]:
    """All that one side has to tell of a case; a copy, for the runs are shared by all tests."""
    signals = seen.more.get("signals", {})
    hits = [hit for hit in seen.hits if hit.case == case.name]
    if case.files:  # they are fetched all at a time
        hits.sort(key=lambda hit: hit.target.rpartition("/")[2])
    told = {
        "record": seen.records.get(case.name, []),
        "served": [_served(hit) for hit in hits],
        "signals": signals.get(case.name, []),
    }
    return deepcopy(told)


def _served(hit: Hit) -> dict[str, Any]:
    """A request as the origin got it: the order of a header's values counts, that of their names is nobody's."""
    return {
        "place": hit.place,
        "peer": hit.peer,
        "line": [hit.method, hit.target, hit.version],
        "headers": sorted((list(pair) for pair in hit.headers), key=lambda pair: pair[0]),
        "body": hit.body.decode("latin-1"),
    }


def _compare(pair: Pair, case: Case) -> None:
    wanted, found = (_told(side, case) for side in pair)
    assert wanted["record"], "stock Scrapy never told of it"
    for record in wanted["record"]:
        if "meta" in record and not case.by_engine:
            # The frontier knows the depth of all it hands out; stock notes it with the first response.
            record["meta"].setdefault("depth", 0)
    for path, value in {**case.ours, **(case.ours_watched if wanted["signals"] else {})}.items():
        put(wanted, path, value)
    lines = differences(wanted, found)
    assert not lines, "\n".join(lines)


def _counted(seen: Seen) -> dict[str, Any]:
    return {key: value for key, value in seen.stats.items() if key.startswith(_COUNTED)}


def _counted_on_purpose(pair: Pair, cases: tuple[Case, ...]) -> Counter[str]:
    """By how much the stats of bigcrawl's side are to differ, by the rows that say so."""
    more: Counter[str] = Counter()
    for case in cases:
        if case.counted:
            more.update(case.counted)
            stock, ours = ([hit for hit in side.hits if hit.case == case.name] for side in pair)
            for hit in ours[len(stock) :]:
                more["downloader/request_count"] += 1
                more[f"downloader/request_method_count/{hit.method}"] += 1
                more["downloader/request_bytes"] += _request_bytes(hit)
    return more


def _request_bytes(hit: Hit) -> int:
    """What Scrapy's stats count for a request; they know its host without the port."""
    headers = {name: value for name, value in hit.headers if name != "Host"}
    url = f"http://{fill(ADDRESSES[hit.place], {'net': OURS})}{hit.target}"
    return len(request_httprepr(Request(url, method=hit.method, headers=headers)))


@_by_name(tables.CASES)
@BARE
def test_row_is_as_in_scrapy(bare: Pair, case: Case) -> None:
    """A project that has no component of its own."""
    _compare(bare, case)


@_by_name(tables.ALL)
def test_row_is_as_in_scrapy_when_watched(watched: Pair, case: Case) -> None:
    """A project with downloader middlewares of every kind, and with handlers of every signal."""
    _compare(watched, case)


@_by_name(tables.SURROUNDED)
def test_row_is_as_in_scrapy_under_other_settings(surrounded: Pair, case: Case) -> None:
    """Proxies from the environment, HTTP cache, bound address, verified certificates, limits and the like."""
    _compare(surrounded, case)


@_by_name(tables.HANDLED)
def test_projects_own_handlers_are_used(handled: Pair, case: Case) -> None:
    """Handlers of the project's, of Scrapy's other kinds, and schemes without one."""
    _compare(handled, case)


@_by_name(tables.HANDLED)
def test_scrapys_other_handlers_are_used(handled_otherwise: Pair, case: Case) -> None:
    """Scrapy's handler on aiohttp for http, and the one for HTTP/2 for https."""
    _compare(handled_otherwise, case)


@pytest.mark.parametrize("run", _RUNS)
def test_run_ends_by_itself(run: str, request: pytest.FixtureRequest) -> None:
    """No row is left hanging; a run that was stopped has seen less than it should."""
    stock, ours = request.getfixturevalue(run)
    assert stock.reason == "finished", stock.log
    assert ours.reason == "finished", ours.log


@pytest.mark.parametrize("run", _RUNS)
def test_stats_are_as_in_scrapy(run: str, request: pytest.FixtureRequest) -> None:
    """Requests, bytes, statuses, exceptions, retries, cache hits: what a project's monitoring reads."""
    pair = request.getfixturevalue(run)
    stock, ours = (_counted(side) for side in pair)
    assert stock["downloader/request_count"] > 0
    for key, more in _counted_on_purpose(pair, _ROWS[run]).items():
        stock[key] = stock.get(key, 0) + more
    lines = differences(stock, ours, "stats")
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("run", [pytest.param("bare", marks=BARE), "surrounded"])
def test_large_bodies_are_warned_of_as_in_scrapy(run: str, request: pytest.FixtureRequest) -> None:
    """DOWNLOAD_WARNSIZE and DOWNLOAD_MAXSIZE: one line for each body that is too large."""
    stock, ours = (side.log.count("larger than download ") for side in request.getfixturevalue(run))
    assert stock
    assert ours == stock


@pytest.mark.parametrize("run", [pytest.param("bare", marks=BARE), "watched", "surrounded"])
def test_tunnels_are_asked_for_as_in_scrapy(run: str, request: pytest.FixtureRequest) -> None:
    """A proxy gets the same CONNECTs; how many depends on which connections were kept."""
    stock, ours = (
        {(hit.target, hit.version, hit.headers) for hit in side.hits if hit.method == "CONNECT"}
        for side in request.getfixturevalue(run)
    )
    assert stock
    assert ours == stock


def test_every_difference_has_a_reason() -> None:
    """A row that is not as in Scrapy says why, and no name is used twice."""
    everything = (*tables.ALL, *tables.SURROUNDED, *tables.HANDLED, *tables.DOCUMENTED)
    assert all(case.why for case in everything if case.ours or case.ours_watched or case.counted)
    names = [case.name for case in everything]
    assert len(names) == len(set(names))

"""Why a crawl fetches nothing: every reason that there can be, by what `status` has read."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bigcrawl.scheduler.crawl.survey import Survey
from bigcrawl.views.standstill import CrawlFacts, done_in_s, standstill_reasons
from tests.support.running.tables import each

RESTS = {"host": "a.example", "due_in_s": 12.3, "failures": 0, "why": None}
FAILS = {"host": "a.example", "due_in_s": 1234.5, "failures": 3, "why": "timeout"}


def seen(counts: dict[str, int] | None = None, owned: int = 4, **fields: Any) -> Survey:
    return Survey(4, owned=owned, counts=Counter(counts or {}), **fields)


def facts(survey: Survey, report: dict[str, Any] | None = None, **fields: Any) -> CrawlFacts:
    """A crawl with one node, unless `reports` are given."""
    return CrawlFacts(survey, **{"reports": {"n1": {"rate": 0.0, **(report or {})}}, **fields})


CASES = {
    "finished": (facts(seen(), finished=True), ["the crawl is finished"]),
    "finished, some left": (
        facts(seen({"withheld": 5, "dead": 1}, hosts_retired=2), finished=True),
        ["the crawl is finished; 5 URLs are withheld, 2 hosts are retired, 1 URLs are dead letters"],
    ),
    "no node": (facts(seen(owned=0, urls_disk=7), reports={}), ["no node runs"]),
    "no node, and slow by hand": (
        facts(seen(owned=0), reports={}, has_speed=False, speed_by_hand=True),
        ["its speed is 0 for now, set by hand; `scrapy frontier speed --unset` lifts it", "no node runs"],
    ),
    "window closed": (
        facts(seen(hosts_ready=2, urls_queued=9), has_speed=False),
        ["its speed is 0 for now, by BIGCRAWL_SPEED"],
    ),
    "import": (
        facts(seen(), importing=True, paused=frozenset({""})),
        ["an import into this crawl was not completed: run it again"],
    ),
    "paused": (
        facts(seen(urls_disk=9), paused=frozenset({""})),
        ["it is paused; `scrapy frontier resume` lets it continue"],
    ),
    "paused node": (
        facts(seen(urls_taken=9), paused=frozenset({"n1", "gone"})),
        ["node n1 is paused; `scrapy frontier resume n1` lets it continue"],
    ),
    "pages": (
        facts(seen({"status:200": 70, "status:404": 30}, urls_disk=7), pages_max=100),
        ["it has the 100 pages of BIGCRAWL_MAX_PAGES"],
    ),
    "trouble": (
        facts(seen(urls_taken=1), {"trouble": "the disk is full"}),
        ["node n1 waits: the disk is full"],
    ),
    "no owner": (
        facts(seen(owned=1, urls_disk=3)),
        [
            "3 partitions have no owner; nodes take them over within a lease",
            "3 URLs wait on disk for the next steps",
        ],
    ),
    "visits": (
        facts(seen({"revisits": 5}, urls_disk=5)),
        ["5 pages wait for the time of their next visit"],
    ),
    "visits, and more": (
        facts(seen({"revisits": 5}, urls_disk=7)),
        ["2 URLs wait on disk for the next steps", "5 pages wait for the time of their next visit"],
    ),
    "crowded": (facts(seen(urls_taken=1), {"crowded": True}), ["outbox or inboxes are full, so nothing is taken: n1"]),
    "start requests": (facts(seen(), starting=("n1",)), ["node n1 runs the start requests"]),
    "long callbacks": (
        facts(seen(urls_taken=9), {"stages": {"started": 5, "ended": 3, "waiting": 1}}),
        [
            "5 URLs are being fetched, parsed or piped",
            "3 pages are being stored",
            "1 URLs wait at a node for addresses, robots.txt, the gap of a server, or their time",
        ],
    ),
    "delays": (
        facts(seen(hosts_waiting=40, urls_queued=90), awaited=RESTS),
        ["40 hosts wait for their time; the next, a.example, is due in 12 s"],
    ),
    "a host that fails": (
        facts(seen(hosts_waiting=1, urls_queued=9), awaited=FAILS),
        ["the only host waits; the next, a.example, is due in 1,234 s, because it failed 3 times in a row (timeout)"],
    ),
    "inboxes": (facts(seen(inboxes_unfolded=2, urls_inbox=80)), ["what 2 inboxes hold is not merged yet"]),
    "blacklist": (facts(seen({"withheld": 12})), ["nothing is left to fetch; 12 URLs are withheld"]),
    "just begun": (facts(seen(urls_taken=1)), ["it is not known; the nodes may have begun a moment ago"]),
}


@each("name", CASES)
def test_reasons(name: str) -> None:
    found, said = CASES[name]
    assert standstill_reasons(found) == said
    assert done_in_s(found) is None


def test_damage_holds_the_end_up() -> None:
    [reason] = standstill_reasons(facts(seen({"damaged": 1})))
    assert "damaged partitions: use `scrapy frontier repair`, or restore" in reason
    [reason] = standstill_reasons(facts(seen({"rejected": 2}, rejected_in=[1])))
    assert "2 inbox entries could not be read: `scrapy frontier rejected`" in reason


def test_crawl_that_fetches_says_when_it_is_done() -> None:
    """By what waits now, and what all nodes fetch."""
    found = facts(
        seen(urls_disk=900, urls_inbox=50, urls_queued=40, urls_taken=10), reports={"a": {"rate": 3}, "b": {"rate": 7}}
    )
    assert standstill_reasons(found) == []
    assert standstill_reasons(found._replace(has_speed=False)) == ["its speed is 0 for now, by BIGCRAWL_SPEED"]
    assert done_in_s(found) == 100.0

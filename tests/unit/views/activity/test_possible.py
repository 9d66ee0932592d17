"""How many pages a second are possible, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.crawl.survey import Survey
from bigcrawl.views.standstill import CrawlFacts, possible_rate
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

NODE: dict[str, Any] = {"rate": 10.0, "stages": {"started": 5}, "fetches_max": 16}  # a fetch takes half a second


def test_the_tightest_bound_says_what_limits(tmp_path: Path) -> None:
    """Hosts give a page each in a fetch and a delay; nodes so many at a time; the speed is the operator's."""
    config = make_config(tmp_path, "crawl", host_delay=1.5)
    few = Survey(4, hosts_ready=1, hosts_waiting=2, hosts_busy=1)
    many = Survey(4, hosts_waiting=1_000)
    assert possible_rate(CrawlFacts(few, {"a": NODE}), config, None) == (2.0, "the delays of hosts")
    assert possible_rate(CrawlFacts(many, {"a": NODE}), config, None) == (32.0, "fetches at a time")
    assert possible_rate(CrawlFacts(many, {"a": NODE}), config, 7.0) == (7.0, "the speed set")


def test_it_is_unknown_while_no_fetch_ends_and_nothing_without_nodes(tmp_path: Path) -> None:
    """Nothing either while all is paused."""
    config = make_config(tmp_path, "crawl")
    idle = {"rate": 0.0, "stages": {}, "fetches_max": 16}
    assert possible_rate(CrawlFacts(Survey(4), {"a": idle}), config, None).per_s is None
    assert possible_rate(CrawlFacts(Survey(4), {}), config, None).per_s == 0.0
    paused = CrawlFacts(Survey(4), {"a": NODE}, paused=frozenset(("",)))
    assert possible_rate(paused, config, None).per_s == 0.0

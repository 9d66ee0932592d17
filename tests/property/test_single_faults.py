"""Each single fault of the network is survived; here a part of them, all in tests/fault."""

from __future__ import annotations

import pytest

from tests.property.frontier_trial import SITES, SITES_IDS, Sites
from tests.property.single_faults import count_round_trips, run_with, singles

EVERY = 307  # a prime, so that all kinds and all messages have their turn


@pytest.mark.parametrize("sites", SITES, ids=SITES_IDS)
def test_a_single_fault_of_the_network_costs_nothing(redis_url: str, crawl_name: str, sites: Sites) -> None:
    """Refused, unheard, unsent, cut short or late: the crawl is complete, polite, and fetches nothing twice."""
    faults = singles(count_round_trips(redis_url, crawl_name, sites))
    assert len(faults) > EVERY
    for number, single in enumerate(faults[::EVERY]):
        run_with(redis_url, f"{crawl_name}-{number}", single, sites)

"""The protocol under faults of network and Redis, as in tests/property, at length: every single fault; many mixes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.single_faults import count_round_trips, run_with, singles
from tests.property.test_unreliable_redis import UnreliableMachine
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.fault, pytest.mark.timeout(3_600)]

SETTINGS = settings(max_examples=150, stateful_step_count=30, deadline=None)


@pytest.fixture
def url() -> Iterator[str]:
    """A server of the test's own: thousands of crawls leave nothing in the run's."""
    with PrivateRedis(aof=False) as server:
        yield server.url


def test_each_single_fault_of_the_network_costs_nothing(url: str, crawl_name: str) -> None:
    """Every round trip of a crawl of two nodes goes wrong once, in every way."""
    faults = singles(count_round_trips(url, crawl_name))
    assert len(faults) > 500
    for number, single in enumerate(faults):
        run_with(url, f"{crawl_name}-{number}", single)


def test_nothing_is_lost_and_nothing_comes_twice_in_any_mix(url: str) -> None:
    """Random faults of all kinds, deaths, stops and rewinds of up to half a minute."""
    run_state_machine_as_test(partial(UnreliableMachine, url), settings=SETTINGS)  # type: ignore[arg-type]

"""Delays that shrink as budgets grow, and never below their floors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.scheduler.gates import delays as paces_module
from bigcrawl.scheduler.gates.delays import PLDS_OF_A_SERVER, HostDelays
from bigcrawl.scheduler.rules.delay_rules import DelayBook, DelayRule
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "192.0.2.1"


def paces(tmp_path: Path, **settings: Any) -> HostDelays:
    """Budgets of 10 for all, and seconds of delay."""
    return HostDelays(make_config(tmp_path, "crawl", **{"budget": 10, "host_delay": 4, "server_delay": 2, **settings}))


def test_nothing_is_scaled_by_default(tmp_path: Path) -> None:
    """Without floors a host rests its delay, and a server has its gap, whatever the budgets."""
    made = paces(tmp_path)
    made.record_budgets({"a.example": 10_000})
    assert not made.are_scaled
    assert made.host_delay_ms("a.example") == 4_000
    assert made.server_delay_ms(ADDRESS, "a.example") == 2_000


@pytest.mark.parametrize(("budget", "delay_ms"), [(0, 4_000), (10, 4_000), (20, 2_000), (80, 500), (10_000, 500)])
def test_host_rests_less_with_a_larger_budget(tmp_path: Path, budget: int, delay_ms: int) -> None:
    """In proportion, so that a turn of it takes as long as anybody's, down to the floor."""
    made = paces(tmp_path, host_delay_min=0.5)
    assert made.host_delay_ms("a.example") == 4_000
    made.record_budgets({"a.example": budget})
    assert made.are_scaled
    assert made.host_delay_ms("a.example") == delay_ms
    assert made.host_delay_ms("unknown.example") == 4_000


def test_delay_by_hand_goes_before_what_is_scaled(tmp_path: Path) -> None:
    """For the hosts that it names; others rest as before."""
    made = paces(tmp_path, host_delay_min=0.5)
    made.record_budgets({"a.example": 20, "b.example": 20})
    made.set_by_hand(DelayBook({"a.example": DelayRule(delay_ms=7_000)}, str))
    assert [made.host_delay_ms(host) for host in ("a.example", "b.example")] == [7_000, 2_000]


@pytest.mark.parametrize(
    ("settings", "rules", "differ"),
    [
        ({}, {}, False),
        ({"host_delay_min": 0.5}, {}, True),
        ({"server_delay_min": 0.5}, {}, True),
        ({}, {"a.example": DelayRule(delay_ms=7_000)}, True),
    ],
)
def test_hosts_rest_for_different_times_if_scaled_or_by_hand(
    tmp_path: Path, settings: dict[str, float], rules: dict[str, DelayRule], *, differ: bool
) -> None:
    """One reason is enough."""
    made = paces(tmp_path, **settings)
    made.set_by_hand(DelayBook(rules, str))
    assert made.differ is differ


@pytest.mark.parametrize(("delay", "has_gap"), [(0, False), (0.001, True)])
def test_servers_have_gaps_if_they_have_a_delay(tmp_path: Path, delay: float, *, has_gap: bool) -> None:
    """A server without one may be asked at any time."""
    assert paces(tmp_path, server_delay=delay).servers_have_gaps is has_gap


def test_server_has_the_gap_of_the_mean_of_its_hosts(tmp_path: Path) -> None:
    """A host of a large budget among small ones does not speak for its server alone."""
    made = paces(tmp_path, server_delay_min=0.1)
    made.record_budgets({"large.example": 30})
    assert made.server_delay_ms(ADDRESS, "small.example") == 2_000
    assert made.server_delay_ms(ADDRESS, "large.example") == 1_000
    assert made.server_delay_ms("192.0.2.2", "large.example") == 667
    assert made.server_delay_ms(ADDRESS, "small.example") == 1_000


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts, servers, and the hosts of a server: the oldest are forgotten, and rest the whole delay."""
    monkeypatch.setattr(paces_module, "HOSTS_KEPT", 3)
    monkeypatch.setattr(paces_module, "SERVERS_KEPT", 2)
    made = paces(tmp_path, host_delay_min=0.5, server_delay_min=0.1)
    for i in range(4):
        made.record_budgets({f"h{i}.example": 20})
    assert [made.host_delay_ms(f"h{i}.example") for i in range(4)] == [4_000, 2_000, 2_000, 2_000]
    for i in range(5):
        made.server_delay_ms(f"192.0.2.{i}", "h3.example")
    for i in range(2 * PLDS_OF_A_SERVER):
        made.server_delay_ms(ADDRESS, f"other{i}.example")
    assert len(made._met) == 2
    assert len(made._met[ADDRESS]) == PLDS_OF_A_SERVER


def test_a_pld_counts_once_for_its_server(tmp_path: Path) -> None:
    """Ten hosts of one large PLD beside a small one: the mean is that of two, as IRLbot has it."""
    made = HostDelays(
        make_config(tmp_path, "crawl", budget=10, server_delay=2, server_delay_min=0.1),
        lambda host: ".".join(host.split(".")[-2:]),
    )
    made.record_budgets({f"h{number}.large.example": 30 for number in range(10)} | {"small.test": 10})
    for number in range(10):
        made.server_delay_ms(ADDRESS, f"h{number}.large.example")
    assert made.server_delay_ms(ADDRESS, "small.test") == 1_000

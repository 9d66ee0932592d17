"""When a node is starved, crowded or idle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.scheduler.node.workload import Workload
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path


def workload_of(tmp_path: Path, held: int = 0, **outbox: Any) -> Workload:
    config = make_config(tmp_path, "crawl", in_process_max=8, outbox_urls_max=1_000)
    of_outbox = {"waiting": 0, "is_full": False, "unfolded": SimpleNamespace(is_full=False), **outbox}
    made: Any = Workload
    workload: Workload = made(config.frontier, SimpleNamespace(held=list(range(held))), SimpleNamespace(**of_outbox))
    return workload


@pytest.mark.parametrize(
    ("outbox", "unfolded", "is_crowded"),
    [
        ({}, 0, False),
        ({}, 999, False),
        ({}, 1_000, True),
        ({"is_full": True}, 0, True),
        ({"unfolded": SimpleNamespace(is_full=True)}, 0, True),
    ],
)
def test_spiders_wait_where_anything_is_full(
    tmp_path: Path, outbox: dict[str, Any], unfolded: int, *, is_crowded: bool
) -> None:
    """The outbox, the inboxes of this node's partitions, or those of others."""
    workload = workload_of(tmp_path, **outbox)
    workload.record_unfolded(unfolded)
    assert workload.is_crowded is is_crowded


@pytest.mark.parametrize(("held", "is_starved"), [(3, True), (4, False)])
def test_merges_may_rest_while_there_is_enough_to_fetch(tmp_path: Path, held: int, *, is_starved: bool) -> None:
    """Half of what may be in process is enough; a node that stops is in haste anyway."""
    workload = workload_of(tmp_path, held)
    assert workload.is_starved is is_starved
    assert workload.may_rest() is not is_starved
    workload.stop()
    assert not workload.may_rest()


@pytest.mark.parametrize(
    ("held", "waiting", "has_waiting", "is_idle"),
    [(0, 0, False, True), (1, 0, False, False), (0, 1, False, False), (0, 0, True, False)],
)
def test_node_is_idle_when_nothing_is_anywhere(
    tmp_path: Path, held: int, waiting: int, *, has_waiting: bool, is_idle: bool
) -> None:
    """In process, in the outbox, or in its partitions."""
    ownership: Any = SimpleNamespace(has_waiting=has_waiting)
    assert workload_of(tmp_path, held, waiting=waiting).is_idle(ownership) is is_idle

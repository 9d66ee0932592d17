"""The side of a node that features see, and where their rows leave it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from bigcrawl.clock import ManualClock
from bigcrawl.config import read_config
from bigcrawl.features.tallies.page import NodeTallies
from bigcrawl.scheduler.handout.observers import NodeSide, Observers, TakesRows, WaitingRows
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.rules.budget_rules import Limit, RuleBook, parse_rules
from tests.support.keys import KEYS, pld_key
from tests.support.worlds.partition_world import pld_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bigcrawl.features.tallies.tallies import Tallies
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.observed import ObservedRows


class Sent:
    """Keeps what it is offered, as an outbox does."""

    def __init__(self, offered: int = 0) -> None:
        self.offered = offered
        self.rows: list[ObservedRows] = []
        self.hints: list[ObservedRows] = []

    def offer_rows(self, rows: ObservedRows) -> None:
        self.offered += 1
        self.rows.append(rows)

    def offer_hint(self, rows: ObservedRows) -> None:
        self.hints.append(rows)


NO_OBSERVERS = Observers(HeldUrls(), Sent(), ())


async def _no_address(_: str) -> list[str]:
    return []


def node_side(
    sent: TakesRows,
    settings: Mapping[str, object] | None = None,
    *,
    was_fetched: Callable[[HeldUrl], bool] = lambda _: False,
    look_up: Callable[[str], Awaitable[list[str]]] = _no_address,
    carry: Callable[[WaitingRows], None] = lambda _: None,
    rules: Mapping[str, Mapping[str, object]] | None = None,
) -> NodeSide:
    """What features see of a node with these settings and rules."""
    config, parsed = read_config(settings or {}), parse_rules(rules or {})
    book, limited = RuleBook(parsed, pld_of, pld_key), {limit for rule in parsed.values() for limit in rule}

    def limit_of(name: str, host: str, url: str) -> Limit | None:
        return book.for_url(host, url).get(name)

    side: Any = SimpleNamespace(
        config=config,
        partitions=config.crawl.partitions,
        clock=ManualClock(),
        node="node",
        pld_of=pld_of,
        pld_key=pld_key,
        key_of=KEYS.of_bytes,
        look_up=look_up,
        offer_hint=sent.offer_hint,
        carry=carry,
        was_fetched=was_fetched,
        limited=limited,
        limit_of=limit_of,
        client=None,
        reports=dict,
        repeated=int,
        sent_bytes=int,
        announce=lambda event, facts: None,
    )
    return cast("NodeSide", side)


def tallies_of(node: Node) -> Tallies:
    """What a node has counted."""
    found = node.observers.observer_of(NodeTallies)
    assert found is not None
    return found.tallies

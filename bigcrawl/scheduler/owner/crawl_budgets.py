"""The budgets of all PLDs: their ranks over all partitions (STAR), each half minute, and the operator's rules."""

from __future__ import annotations

import logging
import zlib
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.budgets.allowances import EffectiveBudgets, divide_budgets, make_budgets
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeCounts, InDegreeRanks, sum_published
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.budgets.policy import NO_POLICY
from bigcrawl.scheduler.partition.fold.feature import features_of
from bigcrawl.scheduler.records.body import address_or_none
from bigcrawl.scheduler.rules.blacklist import NOTHING, Blacklist
from bigcrawl.scheduler.rules.budget_rules import Limit, RuleBook, merge_rules, parse_rules, read_live_rules
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS, Callbacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bigcrawl.config import Config
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.budgets.policy import BudgetArray
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.rules.budget_rules import Rule
    from bigcrawl.url.key import PldKey

logger = logging.getLogger(__name__)

REFRESH_MS = 30_000


class CrawlBudgets:
    """The current budgets on one node, None without limits.

    `limited` has the limits that rules set; `is_told` says that a rule has changed since the last refresh.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        pld_of: Callable[[str], str],
        pld_key: Callable[[str], PldKey],
        callbacks: Callbacks = ANY_CALLBACKS,
        units: BudgetUnits | None = None,
    ) -> None:
        self._config = config
        self._units = units
        self.callbacks = callbacks
        self._client = client
        self._keys = CrawlKeys(config.crawl.name)
        make_policy(config.budget, EMPTY_COUNTS)
        self._prioritizing = _prioritizing_of(config)
        self._generation, self._links_scored = 1, 0
        self._rules = parse_rules(config.budget.rules)
        self._live: dict[str, Rule] = {}
        self._published: dict[int, InDegreeCounts] = {}
        self._counts = EMPTY_COUNTS
        self.pld_of = pld_of
        self.pld_key = pld_key
        self._stale_ms = 0
        self.is_told = False
        self.budgets: EffectiveBudgets | None = None
        self._book = RuleBook({}, pld_of, pld_key)
        self.limited: set[str] = set()
        self._budgets_mark = 0
        self._blacklist: Blacklist = NOTHING
        self._new_blacklist: Blacklist = NOTHING
        self._withholds: Callable[[QueuedUrl], bool] | None = None

    def begin(self) -> None:
        """Make budgets without counts, once the public-suffix list is loaded."""
        self._remake_budgets()

    def publish_again(self) -> None:
        """Publish everything at the next refresh, because a restarted Redis may have lost it."""
        self._published.clear()
        self.mark_stale()

    def is_stale(self, now_ms: int) -> bool:
        return now_ms >= self._stale_ms

    def record_poll(self, now_ms: int) -> None:
        self._stale_ms = now_ms + REFRESH_MS
        self.is_told = False

    def mark_stale(self) -> None:
        self._stale_ms = 0

    def record_change(self) -> None:
        self.is_told = True
        self.mark_stale()

    def record_blacklist(self, blacklist: Blacklist) -> None:
        """Withhold the URLs that this blacklist covers, from the next refresh on."""
        self._new_blacklist = blacklist
        self.mark_stale()

    @property
    def current_mark(self) -> int:
        return self._mark_with(self._new_blacklist)

    def _mark_with(self, blacklist: Blacklist) -> int:
        return zlib.crc32(blacklist.digest.to_bytes(4, "little"), self._budgets_mark)

    @property
    def linked_plds(self) -> int:
        return self._counts.total

    @property
    def withholding_check(self) -> Callable[[QueuedUrl], bool] | None:
        """The predicate for URLs that stay on disk, or None. Each new blacklist has its own predicate."""
        return self._withholds

    async def refresh(self, owned: Iterable[OwnedPartition]) -> bool:
        """Publish the counts of these partitions and read those of all. Return whether budgets have changed."""
        changed = self._changed_counts(owned)
        rows = [("HSET", self._keys.in_degrees, partition, c.to_bytes()) for partition, c in changed.items()]
        *_, published, live = await self._client.commands(
            [*rows, ("HVALS", self._keys.in_degrees), ("HGETALL", self._keys.rules)]
        )
        self._published |= changed
        counts, unreadable = sum_published(published)
        if unreadable:
            logger.warning(
                "the in-degree counts of %(count)d partitions cannot be read and are ignored", {"count": unreadable}
            )
        fields = live if isinstance(live, dict) else dict(zip(live[::2], live[1::2], strict=True))
        rules, faults = read_live_rules(fields)
        for fault in faults:
            logger.warning("%(fault)s; it is ignored", {"fault": fault})
        return self._adopt_counts(counts, rules)

    def budgets_of(self, partition: Partition, hosts: Sequence[str]) -> list[int]:
        if self.budgets is None:
            return [0] * len(hosts)
        plds = np.array([self.pld_key(self.pld_of(host)) for host in hosts], dtype=np.uint64)
        budgets = self.budgets.budgets(plds, partition.in_degrees(plds))
        if self._units is not None:
            budgets = self._with_units(budgets, partition, hosts, plds)
        divisors = partition.budget_divisors(plds)
        found: list[int] = (budgets if divisors is None else divide_budgets(budgets, divisors)).tolist()
        return found

    def _with_units(
        self, budgets: BudgetArray, partition: Partition, hosts: Sequence[str], plds: KeyArray
    ) -> BudgetArray:
        assert self.budgets is not None
        assert self._units is not None
        keys = np.where(self.budgets.is_by_hand(plds), plds, self._units.keys_of_hosts(hosts, plds))
        at, in_degrees = self._units.own_accounts(keys, plds, partition.in_degrees)
        budgets = budgets.copy()
        budgets[at] = self.budgets.budgets(keys[at], in_degrees)
        return budgets

    def give_to(self, partition: Partition) -> None:
        partition.sources.set_budgets(self.budgets)
        partition.sources.set_units(self._units)
        partition.sources.set_callbacks(self.callbacks)
        partition.sources.set_withholds(self._withholds)
        partition.sources.set_mark(self._mark_with(self._blacklist))
        partition.sources.set_prioritizing(self._prioritizing)

    def _changed_counts(self, owned: Iterable[OwnedPartition]) -> dict[int, InDegreeCounts]:
        if self._config.budget.policy == NO_POLICY and not self._config.frontier.counts_links:
            return {}
        counts = {each.keys.partition: each.disk.state.in_degrees for each in owned}
        known = self._published.get
        return {at: now for at, now in counts.items() if (then := known(at)) is not now and then != now}

    def _adopt_counts(self, counts: InDegreeCounts, rules: dict[str, Rule]) -> bool:
        is_same_list = self._new_blacklist is self._blacklist
        self._blacklist = self._new_blacklist
        if not is_same_list:
            self._withholds = self._blacklist.withholding_check
        if (counts, rules) == (self._counts, self._live):
            return not is_same_list
        self._counts, self._live = counts, rules
        self._remake_budgets()
        return True

    def limit_of(self, name: str, host: str, url: str) -> Limit | None:
        return self._book.for_url(host, url).get(name)

    def _remake_budgets(self) -> None:
        self.budgets = self._new_budgets()
        if self._prioritizing is None:
            return
        # Scoring again at each doubling costs each waiting URL about one more look.
        if self._prioritizing.counts_links and self._counts.links >= 2 * max(1, self._links_scored):
            self._generation += 1
            self._links_scored = self._counts.links
        self._prioritizing = self._prioritizing.renewed(InDegreeRanks(self._counts), self._generation)

    def _new_budgets(self) -> EffectiveBudgets | None:
        rules = merge_rules(self._rules, self._live)
        self._book = RuleBook(rules, self.pld_of, self.pld_key)
        deciding = self._config.budget.replace(rules={}), sorted(rules.items())
        self._budgets_mark = zlib.crc32(repr(deciding).encode())
        self.limited.clear()
        self.limited.update(*rules.values())
        return make_budgets(self._config.budget, self._counts, self._book, address_or_none)


def _prioritizing_of(config: Config) -> SafePrioritizer | None:
    """Return how URLs are scored, or None. Prioritizers are imported only if the crawl scores URLs."""
    if not config.frontier.prioritizer and not any(feature.changes_scores for feature in features_of(config)):
        return None
    from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer, as_given, make_prioritizer

    prioritizer = make_prioritizer(config.frontier.prioritizer) or as_given
    return SafePrioritizer(prioritizer, InDegreeRanks(EMPTY_COUNTS), counts_links=config.frontier.counts_links)

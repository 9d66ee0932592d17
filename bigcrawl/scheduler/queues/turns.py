"""All waiting URLs except parked ones (steps 5 and 6 of a URL's life): in turns, over budget, or timed.

A turn has one queue for each level, `queue-<turn>-<level>`. The queues of the current turn, c, are the front queues.
When they are empty, the next turn with URLs becomes current; nothing is rewritten. Without budgets, all URLs stay in
turn 0. Turn c also takes arriving URLs, so that new URLs need not wait for the extra URLs of others. It closes once
enough URLs have joined it, so that it ends however many PLDs are discovered.

Source: IRLbot §6.2 (BEAST). Differs: a sliding window rather than a ring of queues; incremental re-reads, also by size;
the quantum.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bigcrawl.scheduler.budgets.placement import OVER_BUDGET, TurnWindow
from bigcrawl.scheduler.queues.fifo import FifoState, Queues
from bigcrawl.scheduler.queues.front_queues import FrontQueues, Selector, level_in, queue_name
from bigcrawl.scheduler.queues.rescoring import RescoringRound
from bigcrawl.scheduler.queues.timed import TimedUrls
from bigcrawl.scheduler.queues.turn_state import QUANTUM_MAX, WINDOW_MAX, WINDOW_MIN, OverBudgetQueue, TurnState
from bigcrawl.scheduler.queues.unrunnable import UnrunnableUrls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# The current turn closes once this many ordinary URLs have joined it, and as many as it has extra ones.
TURN_CLOSES_AT = 4096
_QUEUE = "queue"


class TurnQueues:
    def __init__(
        self,
        queues: Queues,
        state: TurnState,
        selector: Selector,
        later: dict[int, int],
        timed: TimedUrls,
        unrunnable: UnrunnableUrls,
        rescoring: RescoringRound | None = None,
    ) -> None:
        self._queues = queues
        self._state = state
        self._ordinary, self._joined, self._extra = state.ordinary, state.joined, state.extra
        self._later = later
        self._later_waiting = sum(later.values())
        self.rescoring = rescoring or RescoringRound()
        self.timed = timed
        self.unrunnable = unrunnable
        self.over = OverBudgetQueue(queues, state.generation, is_rereading=state.is_rereading)
        self.front = FrontQueues(queues, _queue_prefix(state.turn), selector)

    @classmethod
    def restore(
        cls, epoch: EpochDirectory, states: Mapping[str, FifoState], state: TurnState, selector: Selector
    ) -> TurnQueues:
        later: dict[int, int] = {}
        numbers: set[int] = set()
        for name, queue in states.items():
            kind, _, rest = name.partition("-")
            if kind != _QUEUE:
                continue
            turn, _, level = rest.partition("-")
            numbers.add(level_in(level)[1])
            if int(turn) > state.turn:
                later[int(turn)] = later.get(int(turn), 0) + queue.waiting
        older = numbers - {selector.levels.number}
        selector = selector.with_older_levels(older) if older else selector
        queues = Queues.restore(epoch, states)
        turns = cls(
            queues, state, selector, later, TimedUrls.restore(queues, state.released_s), UnrunnableUrls.restore(queues)
        )
        if older:
            turns.rescoring.begin(turns.front, later, older_only=True)
        return turns

    def __len__(self) -> int:
        return self.front.waiting + self._later_waiting + len(self.over)

    def __repr__(self) -> str:
        return (
            f"<TurnQueues turn={self._state.turn} front={self.front.waiting} later={self._later_waiting} {self.over!r}>"
        )

    @property
    def state(self) -> TurnState:
        return self._state._replace(
            ordinary=self._ordinary,
            joined=self._joined,
            extra=self._extra,
            generation=self.over.generation,
            is_rereading=self.over.is_rereading,
            released_s=self.timed.released_s,
        )

    @property
    def by_turn(self) -> dict[int, int]:
        return {self._state.turn: self.front.waiting, **dict(sorted(self._later.items()))}

    @property
    def is_plain(self) -> bool:
        """Whether all waiting URLs are ordinary and in the front queues, as in a crawl without budgets."""
        if self._later or len(self.over):
            return False
        front = self.front
        return not any(queue.waiting and front.tier_of(level) for level, queue in front.queues.items())

    @property
    def window(self) -> TurnWindow:
        state = self._state
        is_closed = self._joined >= max(TURN_CLOSES_AT, self._extra)
        over = self.over
        return TurnWindow(
            state.turn + is_closed, state.turn + state.window, over.generation, over.is_rereading, state.quantum
        )

    def fork(self) -> TurnQueues:
        queues = self._queues.fork()
        return TurnQueues(
            queues,
            self.state,
            self.front.selector.fork(),
            self._later.copy(),
            self.timed.fork(queues),
            self.unrunnable.fork(queues),
            self.rescoring.fork(),
        )

    def flush(self) -> None:
        self._queues.flush()

    def queue_states(self) -> Mapping[str, FifoState]:
        return self._queues.states()

    def append(self, urls: Sequence[QueuedUrl]) -> None:
        self.front.extend(urls)
        self._ordinary += len(urls)
        self._joined += len(urls)

    def put(self, urls: Iterable[QueuedUrl], turns: Sequence[int], tiers: Sequence[int], *, reread: bool) -> None:
        levels = self.front.selector.levels
        level_of, number = levels.of, levels.number
        over: list[QueuedUrl] = []
        placed: defaultdict[tuple[int, int], list[QueuedUrl]] = defaultdict(list)  # by turn and level
        for url, turn, tier in zip(urls, turns, tiers, strict=True):
            if turn == OVER_BUDGET:
                over.append(url)
            else:
                placed[turn, level_of(url.priority) + number * tier].append(url)
        self.over.extend(over, failed=reread)
        for (turn, level), together in placed.items():
            count = len(together)
            if turn != self._state.turn:
                self._queues[queue_name(_queue_prefix(turn), level, number)].extend(together)
                self._later[turn] = self._later.get(turn, 0) + count
                self._later_waiting += count
                continue
            self.front.queue_at(level).extend(together)
            if level < number:
                self._ordinary += count
                self._joined += count
            else:
                self._extra += count
        if reread:
            self._state = self._state.counting_reread(len(turns), len(turns) - len(over))

    def withhold(self, urls: Sequence[QueuedUrl], *, reread: bool) -> None:
        self.put(urls, [OVER_BUDGET] * len(urls), [0] * len(urls), reread=reread)

    def advance(self) -> bool:
        """If the front queues are empty, make the next turn with URLs current. Return whether they have URLs now."""
        if self.front.waiting:
            return True
        if not self._later:
            return False
        turn = min(self._later)
        self._later_waiting -= self._later.pop(turn)
        self.front.remove()
        self.front = FrontQueues(self._queues, _queue_prefix(turn), self.front.selector)
        self._state = self._state._replace(turn=turn)
        front = self.front
        waiting = (queue.waiting for level, queue in front.queues.items() if not front.tier_of(level))
        self._ordinary, self._joined = sum(waiting), 0
        self._extra = self.front.waiting - self._ordinary
        self.rescoring.record_turn(turn, self.front)
        return True

    def begin_rescore(self) -> None:
        self.rescoring.begin(self.front, self._later)

    def allow_reread(self) -> None:
        """Allow a re-read as soon as no other URLs wait, because budgets have changed."""
        self._state = self._state._replace(is_resting=False, has_new_budgets=self.over.is_rereading)

    def wants_reread(self, *, starved: bool) -> bool:
        return self._state.wants_reread(self.over, starved=starved)

    def begin_reread(self) -> None:
        is_empty = not (self.front.waiting or self._later)
        turn_urls = self._ordinary + self._extra
        self._state = self._state.beginning_reread(self.over, turn_urls=turn_urls, is_empty=is_empty)
        self.over.begin_reread()

    def end_reread(self) -> None:
        in_turns = self.front.waiting + self._later_waiting
        self._state = self._state.ending_reread(in_turns, max(self._later, default=self._state.turn))

    def _check(self) -> None:
        self._queues._check()
        self.over._check()
        self.timed._check()
        self.unrunnable._check()
        state = self.state
        later: dict[int, int] = {}
        for name in self._queues.names:
            kind, _, rest = name.partition("-")
            if kind == _QUEUE:
                turn = int(rest.partition("-")[0])
                assert turn >= state.turn, "no queue of a past turn is kept"
                later[turn] = later.get(turn, 0) + self._queues.waiting(name)
        assert later.pop(state.turn, 0) == self.front.waiting, "the front queues are those of the current turn"
        assert later == self._later, "every turn's URLs are counted"
        assert all(later.values()), "no later turn is empty"
        assert self._later_waiting == sum(later.values()), "the sum of later turns is kept"
        assert WINDOW_MIN <= state.window <= WINDOW_MAX, "the window is bounded"
        assert max(later, default=0) <= state.turn + WINDOW_MAX, "no URL lies behind the window"
        assert 1 <= state.quantum <= QUANTUM_MAX, "the quantum is bounded"
        assert state.ordinary + state.extra >= self.front.waiting, "a turn has had at least the URLs that wait in it"


def _queue_prefix(turn: int) -> str:
    return f"{_QUEUE}-{turn}"

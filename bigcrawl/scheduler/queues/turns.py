"""All waiting URLs except parked ones: the queues of each turn, the over-budget queue, and revisits (steps 5 and 6).

A turn has one queue for each level, `queue-<turn>-<level>`: levels 0 to 4 hold ordinary URLs, and each tier of extra
URLs has five further levels (`budgets.placement`). The queues of the current turn are the front queues. When they are
empty, the next turn with URLs becomes current; nothing is rewritten. Without budgets, everything stays in turn 0.

    from              to                when
    arriving          turn c .. c + j   placed: see `placement`
    arriving          over budget       beyond c + j, or behind such URLs of its PLD
    turn c + 1 ..     front queues      the front queues are empty and there is room
    over budget       turn, or          re-read: when c reaches `next_reread`, or when no turn has URLs; j doubles
                      over budget       before, up to `WINDOW_MAX`; or when the queue has trebled since c moved on

Turn c also takes arriving URLs, so that new URLs need not wait for the extra URLs of others. It is closed once enough
URLs have joined it, so that it ends however many PLDs are discovered.

A re-read is spread over steps. `turn_state` says when one is due, and how it changes the window and the quantum.
`rescoring` has which URLs are to be scored again. URLs that wait for the time of their next visit (`queues.revisits`)
are not waiting URLs here until they are due, nor those that no spider can run (`queues.unrunnable`) until one can.
Then they arrive like new ones.

Source: IRLbot §6.2 (BEAST). Differs: a sliding window rather than a ring of queues; re-reads in small portions, and
by size; the quantum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.budgets.placement import OVER_BUDGET, Window
from bigcrawl.scheduler.queues.front_queues import LEVELS, FrontQueues, level_of
from bigcrawl.scheduler.queues.named_queues import Queues
from bigcrawl.scheduler.queues.over_budget import OverBudget
from bigcrawl.scheduler.queues.rescoring import Rescoring
from bigcrawl.scheduler.queues.revisits import Revisits
from bigcrawl.scheduler.queues.turn_state import QUANTUM_MAX, WINDOW_MAX, WINDOW_MIN
from bigcrawl.scheduler.queues.unrunnable import Unrunnable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.fifo import FifoState
    from bigcrawl.scheduler.queues.front_queues import Selector
    from bigcrawl.scheduler.queues.turn_state import TurnState
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# The current turn closes once this many ordinary URLs have joined it, and at least as many as it has extra ones.
TURN_CLOSES_AT = 4096
_QUEUE = "queue"


class Turns:
    """The front queues, the later turns, the over-budget queue, and what waits for its next visit.

    Attributes:
        front: the front queues.
        over: the over-budget queue.
        rescoring: which URLs in turns are to be scored again.
        revisits: URLs that wait for the time of their next visit.
        unrunnable: URLs that wait for a spider that can run them.
    """

    def __init__(
        self,
        queues: Queues,
        state: TurnState,
        selector: Selector,
        later: dict[int, int],
        revisits: Revisits,
        unrunnable: Unrunnable,
        rescoring: Rescoring | None = None,
    ) -> None:
        self._queues = queues
        self._state = state
        self._ordinary, self._joined, self._extra = state.ordinary, state.joined, state.extra
        # The number of URLs in each later turn that has any.
        self._later = later
        self._later_waiting = sum(later.values())
        self.rescoring = rescoring or Rescoring()
        self.revisits = revisits
        self.unrunnable = unrunnable
        self.over = OverBudget(queues, state.generation, is_rereading=state.is_rereading)
        self.front = FrontQueues(queues, _prefix(state.turn), selector)

    @classmethod
    def restore(
        cls, epoch: EpochDirectory, states: Mapping[str, FifoState], state: TurnState, selector: Selector
    ) -> Turns:
        """Return the queues that a manifest describes. Their segments are sealed."""
        later: dict[int, int] = {}
        for name, queue in states.items():
            kind, _, rest = name.partition("-")
            if kind == _QUEUE and (turn := int(rest.partition("-")[0])) > state.turn:
                later[turn] = later.get(turn, 0) + queue.waiting
        queues = Queues.restore(epoch, states)
        return cls(
            queues, state, selector, later, Revisits.restore(queues, state.released_s), Unrunnable.restore(queues)
        )

    def __len__(self) -> int:
        return self.front.waiting + self._later_waiting + len(self.over)

    def __repr__(self) -> str:
        return f"<Turns turn={self._state.turn} front={self.front.waiting} later={self._later_waiting} {self.over!r}>"

    @property
    def state(self) -> TurnState:
        """The state of the turns."""
        return self._state._replace(
            ordinary=self._ordinary,
            joined=self._joined,
            extra=self._extra,
            generation=self.over.generation,
            is_rereading=self.over.is_rereading,
            released_s=self.revisits.released_s,
        )

    @property
    def by_turn(self) -> dict[int, int]:
        """URLs in the current turn and in each later one that has any."""
        return {self._state.turn: self.front.waiting, **dict(sorted(self._later.items()))}

    @property
    def is_plain(self) -> bool:
        """Whether all waiting URLs are ordinary and in the front queues, as in a crawl without budgets."""
        if self._later or len(self.over):
            return False
        return not any(queue.waiting for level, queue in self.front.queues.items() if level >= LEVELS)

    @property
    def window(self) -> Window:
        """Where URLs may be placed now."""
        state = self._state
        is_closed = self._joined >= max(TURN_CLOSES_AT, self._extra)
        over = self.over
        return Window(
            state.turn + is_closed, state.turn + state.window, over.generation, over.is_rereading, state.quantum
        )

    def fork(self) -> Turns:
        """Return a copy to change. This one stays as it is."""
        queues = self._queues.fork()
        return Turns(
            queues,
            self.state,
            self.front.selector.fork(),
            self._later.copy(),
            self.revisits.fork(queues),
            self.unrunnable.fork(queues),
            self.rescoring.fork(),
        )

    def flush(self) -> None:
        """Write pending URLs to disk."""
        self._queues.flush()

    def queue_states(self) -> Mapping[str, FifoState]:
        """Return the states of the queues for the manifest. All must be flushed."""
        return self._queues.states()

    # Placing.

    def append(self, urls: Sequence[QueuedUrl]) -> None:
        """Add URLs at the end of the current turn, whatever share their PLD has had."""
        self.front.extend(urls)
        self._ordinary += len(urls)
        self._joined += len(urls)

    def put(self, urls: Iterable[QueuedUrl], turns: Sequence[int], tiers: Sequence[int], *, reread: bool) -> None:
        """Put URLs where they were placed: into turns, in the order given, or into the over-budget queue.

        Args:
            urls: in order of arrival.
            turns: the turn of each URL, not before the current one, or `OVER_BUDGET`.
            tiers: the tier of each URL in its turn.
            reread: whether they come from the over-budget queue.
        """
        current, queues, later = self._state.turn, self._queues, self._later
        over = ordinary_here = extra_here = 0
        for url, turn, tier in zip(urls, turns, tiers, strict=True):
            if turn == OVER_BUDGET:
                self.over.append(url, failed=reread)
                over += 1
                continue
            level = level_of(url.priority) + LEVELS * tier
            if turn == current:
                self.front.append_at(level, url)
                extra_here += tier > 0
                ordinary_here += not tier
            else:
                queues[f"{_QUEUE}-{turn}-{level}"].append(url)
                later[turn] = later.get(turn, 0) + 1
                self._later_waiting += 1
        self._ordinary += ordinary_here
        self._joined += ordinary_here
        self._extra += extra_here
        if reread:
            self._state = self._state.counting_reread(len(turns), len(turns) - over)

    def withhold(self, urls: Sequence[QueuedUrl], *, reread: bool) -> None:
        """Add URLs at the end of the over-budget queue, whatever share their PLD has had; `reread` as for `put`."""
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
        self.front = FrontQueues(self._queues, _prefix(turn), self.front.selector)
        self._state = self._state._replace(turn=turn)
        self._ordinary, self._joined = sum(self.front.counts()[:LEVELS]), 0
        self._extra = self.front.waiting - self._ordinary
        self.rescoring.note_turn(turn, self.front)
        return True

    def begin_rescore(self) -> None:
        """Scores have changed: have all URLs that wait in turns scored again."""
        self.rescoring.begin(self.front, self._later)

    # Re-reading.

    def wake(self) -> None:
        """Allow a re-read as soon as nothing else waits, because budgets have changed."""
        self._state = self._state._replace(is_resting=False, has_new_budgets=self.over.is_rereading)

    def wants_reread(self, *, starved: bool) -> bool:
        """Whether the over-budget queue is being re-read, or should be now. See `TurnState.wants_reread`."""
        return self._state.wants_reread(self.over, starved=starved)

    def begin_reread(self) -> None:
        """Begin a re-read of the over-budget queue."""
        is_empty = not (self.front.waiting or self._later)
        turn_urls = self._ordinary + self._extra
        self._state = self._state.beginning_reread(self.over, turn_urls=turn_urls, is_empty=is_empty)
        self.over.begin_reread()

    def end_reread(self) -> None:
        """Finish a re-read, in which all URLs were taken from the over-budget queue and put elsewhere, or back."""
        in_turns = self.front.waiting + self._later_waiting
        self._state = self._state.ending_reread(in_turns, max(self._later, default=self._state.turn))

    def _check(self) -> None:
        self._queues._check()
        self.over._check()
        self.revisits._check()
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


def _prefix(turn: int) -> str:
    return f"{_QUEUE}-{turn}"

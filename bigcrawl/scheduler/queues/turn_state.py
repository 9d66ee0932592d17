"""The state of the turns, and when the over-budget queue is re-read (step 5); pure.

The over-budget queue is re-read when turn c has reached `next_reread`, when no turn has URLs, or when the queue has
trebled since c moved on. It has trebled when two URLs have arrived for each that failed the last re-read. Each arrival
then pays for reading half of a failed URL, and for reading itself. So a PLD that was over budget once does not wait for
everything that a link farm has in the turns, however long they have become. In this case j also grows, up to
`WINDOW_GROWN`.

The quantum, which says how many budgets make a PLD's share in a turn, is set by re-reads. It rises if turns are too
small to be worth their files. It also rises if a re-read would read too many URLs that arrivals have not paid for,
compared with what turns hold; this happens when a few PLDs have nearly all URLs. It falls if turns are large and the
re-read was cheap, or if no PLD's share has reached the end of the window.

If a re-read placed nothing while no turn had URLs, it is not repeated until budgets change, URLs arrive, or c has moved
on to `next_reread`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bigcrawl.scheduler.queues.over_budget import OverBudget

WINDOW_MIN = 4
# Each turn costs some files. IRLbot has 16 queues at 8 billion pages, and 128 at 80 billion.
WINDOW_MAX = 128
# Limit for re-reads by size, because every turn has files.
WINDOW_GROWN = 32

# The quantum steers turns towards sizes between these.
_TURN_SMALL = 256
_TURN_LARGE = 4096

# A re-read by size starts when the queue has trebled and at least this many more URLs have arrived.
_ARRIVED_PER_FAILED = 2
_REREAD_LEAST = 1024
# URLs re-read for each URL that passes; both lie below IRLbot's bound of 2 L - 1 = 12.
_REREAD_DEAR = 8
_REREAD_CHEAP = 4

# With a budget of 10, a partition with a single PLD spreads 84 million of its URLs over 128 turns.
QUANTUM_MAX = 1 << 16


class TurnState(NamedTuple):
    """The state of the turns, as the manifest stores it.

    Attributes:
        turn: c, the current one.
        ordinary: ordinary URLs that it has had.
        joined: how many of them were placed in it while it was current.
        extra: extra URLs that it has had.
        window: j, how many turns after c take URLs.
        quantum: m, see `placement`.
        next_reread: the turn in which the over-budget queue is re-read.
        generation: the one that takes over-budget URLs.
        is_rereading: whether the one before it is being re-read.
        reread: URLs that this re-read, or the last one, has taken from the over-budget queue.
        passed: how many of them it has placed in turns.
        has_new_budgets: whether budgets have changed since this re-read began.
        is_resting: whether the last re-read placed nothing, so that another would be in vain.
        reread_ever: URLs taken from the over-budget queue in total.
        released_s: up to when revisits were released, in seconds since 1970.
    """

    turn: int = 0
    ordinary: int = 0
    joined: int = 0
    extra: int = 0
    window: int = WINDOW_MIN
    quantum: int = 1
    next_reread: int = WINDOW_MIN
    generation: int = 1
    is_rereading: bool = False
    reread: int = 0
    passed: int = 0
    has_new_budgets: bool = False
    is_resting: bool = False
    reread_ever: int = 0
    released_s: int = 0

    def wants_reread(self, over: OverBudget, *, starved: bool) -> bool:
        """Whether the over-budget queue is being re-read, or should be now.

        Args:
            over: the queue.
            starved: whether no turn has URLs although there is room for some.
        """
        if over.is_rereading:
            return True
        if self.turn >= self.next_reread or (starved and not self.is_resting):
            return len(over) > 0
        has_moved = self.turn > self.next_reread - self.window  # if not, the last re-read would just be repeated
        return has_moved and over.arrived >= _ARRIVED_PER_FAILED * over.failed + _REREAD_LEAST

    def beginning_reread(self, over: OverBudget, *, turn_urls: int, is_empty: bool) -> TurnState:
        """The state when a re-read begins. The window doubles, and the quantum rises if turns hold too little for it.

        If no turn has URLs, the whole queue counts as the cost of a re-read: a large backlog of a few PLDs that arrived
        at once would otherwise stall the crawl while all of it is read for a few URLs. If not, only the part counts for
        which recent arrivals have not paid.

        Args:
            over: the over-budget queue.
            turn_urls: how many URLs the current turn has had.
            is_empty: whether no turn has URLs.
        """
        is_due = is_empty or self.turn >= self.next_reread
        window = min(2 * self.window, WINDOW_MAX if is_due else max(self.window, WINDOW_GROWN))
        turn_size = max(turn_urls, self.passed // self.window, 1)
        unpaid = len(over) if is_empty else max(over.failed - over.arrived // _ARRIVED_PER_FAILED, 0)
        missing = unpaid // (_REREAD_DEAR * window * turn_size)
        return self._replace(
            quantum=min(self.quantum << missing.bit_length(), QUANTUM_MAX),
            window=window,
            next_reread=self.turn + window,
            reread=0,
            passed=0,
            has_new_budgets=False,
            is_resting=False,
        )

    def counting_reread(self, urls: int, passed: int) -> TurnState:
        """The state after so many URLs were re-read, of which so many have `passed` into turns."""
        return self._replace(
            reread=self.reread + urls, passed=self.passed + passed, reread_ever=self.reread_ever + urls
        )

    def ending_reread(self, in_turns: int, last_turn: int) -> TurnState:
        """The state when a re-read ends: the quantum is adjusted, and the next one waits if this one was in vain.

        Args:
            in_turns: how many URLs wait in turns.
            last_turn: the last turn that has any.
        """
        quantum = self.quantum
        is_needed = last_turn >= self.next_reread  # a PLD with more than its share has URLs at the end of the window
        if not is_needed:
            quantum //= 2
        elif self.passed and in_turns < _TURN_SMALL * self.window:
            quantum *= 2
        elif in_turns > _TURN_LARGE * self.window and self.reread <= _REREAD_CHEAP * self.passed:
            quantum //= 2
        is_vain = not (self.passed or in_turns or self.has_new_budgets)
        return self._replace(quantum=min(max(quantum, 1), QUANTUM_MAX), is_resting=is_vain)


FIRST_TURN = TurnState()

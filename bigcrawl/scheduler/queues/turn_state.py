"""The state of the turns, and when the over-budget queue is re-read.

The queue is re-read when turn c has reached `next_reread`, when no turn has URLs, or when two URLs have arrived for
each that failed the last re-read. In the last case each arrival pays for reading itself and half of a failed URL. So a
PLD that was over budget once need not wait for all URLs that a link farm has in the turns.

Re-reads adjust the quantum. It rises if turns are too small to be worth their files, or if few PLDs have nearly all
URLs, so that arrivals have not paid for the re-read. It falls if turns are large and the re-read was cheap, or if no
PLD's share has reached the end of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bigcrawl.scheduler.queues.over_budget import OverBudgetQueue

WINDOW_MIN = 4
# Each turn costs some files. IRLbot has 16 queues at 8 billion pages, and 128 at 80 billion.
WINDOW_MAX = 128
WINDOW_GROWN = 32

# Bounds of the turn sizes that the quantum aims for.
_TURN_SMALL = 256
_TURN_LARGE = 4096

# A re-read by size needs this many arrivals.
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
        joined: ordinary URLs that were placed in it while it was current.
        window: j, how many turns after c take URLs.
        quantum: m, see `placement`.
        generation: the one that takes over-budget URLs.
        reread: URLs taken from the queue by the current or last re-read.
        passed: those of them that were placed in turns.
        is_resting: the last re-read placed nothing, so another waits for new budgets, URLs or `next_reread`.
        released_s: the time up to which timed URLs were released.
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

    def wants_reread(self, over: OverBudgetQueue, *, starved: bool) -> bool:
        """Whether to re-read the over-budget queue; `starved` if no turn has URLs although there is room."""
        if over.is_rereading:
            return True
        if self.turn >= self.next_reread or (starved and not self.is_resting):
            return len(over) > 0
        has_moved = self.turn > self.next_reread - self.window  # otherwise it would repeat the last re-read
        return has_moved and over.arrived >= _ARRIVED_PER_FAILED * over.failed + _REREAD_LEAST

    def beginning_reread(self, over: OverBudgetQueue, *, turn_urls: int, is_empty: bool) -> TurnState:
        """Return the state at the start of a re-read: a doubled window, and a larger quantum if turns hold too little.

        A re-read costs the URLs that arrivals have not paid for. If no turn has URLs, it costs the whole queue:
        otherwise a large backlog of a few PLDs would stall the crawl while all of it is read for a few URLs.
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
        return self._replace(
            reread=self.reread + urls, passed=self.passed + passed, reread_ever=self.reread_ever + urls
        )

    def ending_reread(self, in_turns: int, last_turn: int) -> TurnState:
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

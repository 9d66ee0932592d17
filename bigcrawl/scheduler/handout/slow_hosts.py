"""The share of a node's fetches for slow hosts (step 11): however many there are, others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.scheduler.records.outcomes import ABORTED

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.concurrency import Crowd
    from bigcrawl.scheduler.records.held import HeldUrl

HOSTS_REMEMBERED: Final = 100_000  # some 10 MB
FETCHES_PART: Final = 4  # a quarter of a node's concurrent fetches is for slow hosts
NEVER_MS: Final = 1 << 62


class SlowHosts:
    """Hosts whose last answer was slow, and how many fetches of them are under way.

    Attributes:
        hosts: the slow ones; empty most of the time, so that a page costs one look.
        after_ms: a download that takes longer is slow.
    """

    def __init__(self, after_ms: int, crowd: Crowd) -> None:
        """A host is slow if a download takes longer than `after_ms`; 0: no host is."""
        self._crowd = crowd
        self._fetching = 0
        self.after_ms = after_ms or NEVER_MS
        self.hosts: BoundedDict[str, None] = BoundedDict(HOSTS_REMEMBERED)

    def __repr__(self) -> str:
        return f"<SlowHosts {len(self.hosts)} fetching={self._fetching}>"

    def have_room_for(self, host: str) -> bool:
        """Whether a fetch of the host may start: it is not slow, or the share is not used up."""
        return host not in self.hosts or self._fetching < max(1, self._crowd.shared // FETCHES_PART)

    def note_start(self, held: HeldUrl) -> None:
        """A fetch has begun. If the host is slow, it uses the share."""
        if held.host in self.hosts:
            held.take_slow_share()
            self._fetching += 1

    def leave(self, held: HeldUrl) -> None:
        """A URL is no longer being fetched, and does not use the share any more."""
        if held.uses_slow_share:
            held.return_slow_share()
            self._fetching -= 1

    def note_end(self, held: HeldUrl) -> None:
        """A fetch is over. Its download shows whether the host is slow."""
        self.leave(held)
        if held.outcome == ABORTED:
            return
        if held.download_ms > self.after_ms:
            self.hosts.remember(held.host, None)
        else:
            self.hosts.pop(held.host, None)

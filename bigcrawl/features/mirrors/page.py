"""Finds the contents of a PLD that are samples (see `verdicts`), and sends them as hints to the PLD's partition."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.features.mirrors.rows import SAMPLED, pack_sampled
from bigcrawl.features.mirrors.settings import MirrorConfig
from bigcrawl.features.mirrors.verdicts import is_sample, sample_secret
from bigcrawl.scheduler.budgets.policies import NO_POLICY
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.observed import ObservedRows

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import NodeSide, SeenPage

SAMPLES_MAX: Final = 1 << 16
"""How many samples to remember (about 10 MB), so that a content on many pages of a PLD counts once."""


def observer_of(side: NodeSide) -> ContentSamples | None:
    config = side.config
    return (
        ContentSamples(side)
        if config.feature_config(MirrorConfig).share and config.budget.policy != NO_POLICY
        else None
    )


class ContentSamples(Observer):
    def __init__(self, side: NodeSide) -> None:
        self._side = side
        self._sent: BoundedDict[tuple[int, int], None] = BoundedDict(SAMPLES_MAX)  # PLDs and contents

    @cached_property
    def _sample_secret(self) -> int:
        return sample_secret(self._side.key_of)

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        content = page.content
        if is_sample(content, self._sample_secret):
            side = self._side
            sample = side.pld_key(side.pld_of(page.held.host)), content
            if sample not in self._sent:
                side.offer_hint(ObservedRows(sample[0] % side.partitions, pack_sampled(*sample), SAMPLED))
            self._sent.remember(sample, None)
        return ()

    def send_again(self) -> None:
        self._sent.clear()

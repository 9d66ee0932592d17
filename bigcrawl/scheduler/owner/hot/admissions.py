"""The numbered admit batches of an owned partition.

A batch is committed on disk before it is sent. Redis accepts number n once, after n - 1, so unconfirmed batches are
sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.hot.admit_calls import admit_call

if TYPE_CHECKING:
    from bigcrawl.redisdb import scripts
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity
    from bigcrawl.scheduler.owner.hot.hot_set import HotSet
    from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
    from bigcrawl.scheduler.partition.committed import CommittedFiles


class AdmitBatches:
    def __init__(self, keys: PartitionKeys, committed: CommittedFiles, hot: HotSet, connections: int) -> None:
        self._keys = keys
        self._committed = committed
        self._hot = hot
        self._connections = connections
        self.confirmed = committed.manifest.batch_number

    @property
    def are_pending(self) -> bool:
        return self.confirmed < self._committed.manifest.batch_number

    def send(self, identity: Identity, batch: AdmitBatch) -> scripts.Call[bool]:
        self._hot.record_offered(batch, self.confirmed)
        return admit_call(self._keys, identity, batch, self._connections)

    def send_again(self, identity: Identity) -> list[scripts.Call[bool]]:
        batches = self._committed.batches(self.confirmed)
        return [admit_call(self._keys, identity, batch, self._connections) for batch in batches]

    def record_confirmed(self) -> None:
        self.confirmed = self._committed.manifest.batch_number

"""The numbered admit batches of an owned partition: committed before they are sent, and sent until confirmed."""

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
    def __init__(
        self, keys: PartitionKeys, committed: CommittedFiles, hot: HotSet, connections: int, head_start_ms: int
    ) -> None:
        self._keys = keys
        self._committed = committed
        self._hot = hot
        self._connections = connections
        self.head_start_ms = head_start_ms
        self.confirmed = committed.manifest.batch_number

    @property
    def are_pending(self) -> bool:
        return self.confirmed < self._committed.manifest.batch_number

    def send(self, identity: Identity, batch: AdmitBatch) -> scripts.Call[bool]:
        self._hot.record_offered(batch, self.confirmed)
        return self._call(identity, batch)

    def send_again(self, identity: Identity) -> list[scripts.Call[bool]]:
        batches = self._committed.batches(self.confirmed)
        return [self._call(identity, batch) for batch in batches]

    def _call(self, identity: Identity, batch: AdmitBatch) -> scripts.Call[bool]:
        return admit_call(self._keys, identity, batch, self._connections, head_start_ms=self.head_start_ms)

    def record_confirmed(self) -> None:
        self.confirmed = self._committed.manifest.batch_number

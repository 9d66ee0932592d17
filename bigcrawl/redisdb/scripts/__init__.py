"""The Lua scripts as typed functions that return a `Call`, which `client.RedisClient.run` executes.

Only the function of the same name calls a script; the scripts of `hosts` are in `lua/hosts/`. A script's header is its
contract, and a test compares it with the function.
"""

from __future__ import annotations

from bigcrawl.redisdb.scripts.back_queues import admit_urls, drop_urls
from bigcrawl.redisdb.scripts.call import Call, Identity, Value
from bigcrawl.redisdb.scripts.crawl import (
    NOTHING_MADE,
    BeatReply,
    CrawlCompany,
    NodesMade,
    announce_end,
    beat_node,
    check_rights,
    claim_start,
    meet_crawls,
    put_recent,
    record_errors,
    record_event,
    tell_time,
)
from bigcrawl.redisdb.scripts.exchange import (
    ANSWERS,
    NO_EFFECT,
    EndedUrl,
    ExchangeReply,
    HostEffect,
    TakenUrl,
    effect_of_answer,
    effect_of_failure,
    effect_of_move,
    exchange_urls,
)
from bigcrawl.redisdb.scripts.gates import StartTimes, grant_starts, hold_host, leave_host, pass_gates
from bigcrawl.redisdb.scripts.hosts import RETIRED_MS, awaken_host, borrow_host, put_robots, retire_hosts, return_host
from bigcrawl.redisdb.scripts.inbox import (
    advance_inbox,
    append_batch,
    park_urls,
    record_rewind,
    set_aside_urls,
    trim_partition,
)
from bigcrawl.redisdb.scripts.ownership import (
    GrantedClaim,
    PartitionView,
    RefusedClaim,
    claim_partition,
    look_partition,
    release_partition,
    renew_block_leases,
    renew_leases,
)
from bigcrawl.redisdb.scripts.reconciliation import ReconcileReply, reconcile_partition
from bigcrawl.redisdb.scripts.sums import DueHost, PartitionSums, sum_partitions
from bigcrawl.redisdb.scripts.suspects import bury_url, try_suspect, unbury_urls
from bigcrawl.redisdb.scripts.tallies import PutTallies, fold_tallies, put_tallies

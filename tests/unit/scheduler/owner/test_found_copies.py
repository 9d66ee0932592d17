"""Near copies that a step has found reach the partitions of their contents, and the crawl goes on until they have."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.owner.durable_rounds import LOOK_MS
from bigcrawl.scheduler.records.contents import pack_contents
from bigcrawl.scheduler.records.inbox_entry import CONTENTS
from tests.unit.content.pages import edited, page
from tests.unit.content.test_near_copies import rows_of
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.crawl.survey import Survey
    from tests.unit.scheduler.world import World

PARTITIONS = 4
CONTENTS_OF_PAGES = {1: 8, 2: 17, 3: 26}  # of these, 17 and 26 are near copies, at home in partitions 1 and 2


async def look(w: World) -> Survey:
    """What all nodes see once this one has told how its partitions are."""
    w.clock.advance(LOOK_MS)
    [node] = w.nodes
    await node.ownership.make_durable_due()
    return await survey(w.client, w.config.crawl.name, PARTITIONS)


def test_one_inbox_that_refuses_rows_does_not_have_others_get_theirs_again(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The crawl is not finished until it has them; then it is."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=PARTITIONS) as w:
            node = await w.joined()
            inboxes = [PartitionKeys(crawl_name, number).inbox for number in range(PARTITIONS)]
            sketched = rows_of(*((n, edited(page(1), n, 4)) for n in CONTENTS_OF_PAGES), contents=CONTENTS_OF_PAGES)
            await w.client.command("XADD", inboxes[3], "*", CONTENTS, pack_contents(sketched=sketched.tobytes()))
            commands_each = node.parts.client.commands_each

            async def refusing(rows: Any) -> Any:
                replies = await commands_each([row for row in rows if row[1] != inboxes[1]])
                refusal = RedisRefusedError("OOM command not allowed when used memory > 'maxmemory'")
                return [refusal if row[1] == inboxes[1] else replies.pop(0) for row in rows]

            node.parts.client.commands_each = refusing  # type: ignore[method-assign]
            node.fold.note_inboxes()
            node.ownership.owned[3].note_outcomes()
            for _ in range(4):
                w.clock.advance(30_000)
                try:
                    await node.ownership.step_due(starved=True, idle=True)
                except RedisRefusedError:
                    continue
            lengths = [await w.client.command("XLEN", inbox) for inbox in inboxes]
            assert lengths == [0, 0, 1, 1]
            seen = await look(w)
            assert (seen.rows_untold, seen.is_empty) == (1, False)
            node.parts.client.commands_each = commands_each  # type: ignore[method-assign]
            for _ in range(3):
                w.clock.advance(30_000)
                await node.ownership.step_due(starved=True, idle=True)
            assert await w.client.command("XLEN", inboxes[1]) == 1
            seen = await look(w)
            assert (seen.rows_untold, seen.is_empty) == (0, True)
            assert seen.counts["near_copies"] == 2

    asyncio.run(scenario())

"""What scope and filters say of a URL, for `scrapy frontier explain`: by the settings of whoever asks.

The scope itself is asked of the nodes that crawl, because a spider's argument may have set it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.json_text import read_json
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.alike import FIELD
from bigcrawl.scheduler.crawl.node_reports import read_or_nothing
from bigcrawl.scheduler.rules.link_rules import LinkRules
from bigcrawl.scheduler.rules.scope import LIST, Scope, parse_names

if TYPE_CHECKING:
    from bigcrawl.commands.opened_crawl import OpenedCrawl

_SCOPES: Final = {
    "host": "only links from its own host are followed, or to hosts of seeds",
    "pld": "only links from its own pay-level domain are followed, or to those of seeds",
    "prefix": "only links below the directories of seeds are followed",
}


async def filters_data(crawl: OpenedCrawl, url: str) -> dict[str, Any]:
    """Return what scope and filters say of links to a canonical URL, for programs.

    Raises:
        TransientStoreError: Redis does not answer.
    """
    filters = crawl.config.filters
    scope = await _scope_of_nodes(crawl) or filters.scope
    is_in = None
    if scope == LIST and filters.scope_list:
        is_in = Scope(LIST, parse_names(filters.scope_list), crawl.suffixes.pld).leads_from()(url)
    return {"scope": scope, "in_scope": is_in, "dropped_by_filter": LinkRules(filters).against(url) or None}


def filter_rows(data: dict[str, Any]) -> dict[str, str]:
    """Return the rows of an explanation about scope and filters; none if they have nothing to do with the URL."""
    rows = {}
    if data.get("in_scope") is False:
        rows["scope"] = "out of BIGCRAWL_SCOPE_LIST: links to it are not followed"
    elif data["where"] == "nowhere" and data["seen"] is False and data.get("scope") in _SCOPES:
        rows["scope"] = f"{data['scope']}: {_SCOPES[data['scope']]}"
    if data.get("dropped_by_filter"):
        rows["filter"] = f"{data['dropped_by_filter']} drops it: links to it are not followed"
    return rows


async def _scope_of_nodes(crawl: OpenedCrawl) -> str | None:
    """Return the scope of a node that lives, or lived lately; None if there is none, or it has the default."""
    for text in await crawl.client.command("HVALS", CrawlKeys(crawl.config.crawl.name).nodes):
        reported = read_or_nothing(text).get(FIELD, {}).get("BIGCRAWL_SCOPE")
        if isinstance(reported, str):
            with suppress(ValueError):
                return str(read_json(reported))
    return None

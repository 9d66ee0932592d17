"""Where every URL is that a crawl did not fetch, and whether it may be there.

The crawl is asked, URL by URL, what `scrapy frontier explain` says; the web knows what is true.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.url.canonical import host_of
from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.basics.resources import Kind
from bigcrawl_simweb.exhibits.table import row_of
from tests.support.crawling.explained import explained

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.crawling.crawls import Crawl
    from tests.support.hostile.web import HostileWeb

NOWHERE, WITHHELD, RETIRED = "nowhere", "withheld", "retired"


class Account(NamedTuple):
    """What the crawl says of a URL: the name of its outcome, `withheld`, `retired` if its host is, or where it is."""

    url: str
    state: str


def accounts_of(crawl: Crawl, urls: Iterable[str]) -> list[Account]:
    """Ask a crawl that has ended about URLs; cost: some milliseconds each."""
    return [Account(url, _state(said)) for url, said in explained(crawl, urls).items()]


def _state(said: dict[str, Any]) -> str:
    """A URL on disk when the crawl has ended is there because a rule holds it."""
    if said["where"] == "ended":
        return str(said["outcome"]["name"])
    if said["where"] not in ("disk", "withheld"):
        return str(said["where"])
    return RETIRED if said["host_state"] == "retired" else WITHHELD


class Truth:
    """What the web and its server's log say of URLs."""

    def __init__(self, hostile: HostileWeb) -> None:
        self._web = hostile.served.web
        self._port = hostile.served.saved.port
        self._hostile = hostile
        self.asked: set[str] = set()
        self._read: set[str] = set()
        for each in hostile.served.exchanges():
            url = f"http://{each.host}:{self._port}{each.target}"
            self.asked.add(url)
            if each.status != ABORTED_STATUS and not each.is_faulty and each.status < 400:
                self._read.add(url)

    def not_asked_for(self) -> list[str]:
        """Every URL of the web that is linked to from anywhere, or that a page that was read leads to, and was not."""
        linked = set(self._hostile.followed) | set(self.leading)
        return sorted(url for url in linked - self.asked if not self._is_robots_step(url))

    @cached_property
    def leading(self) -> dict[str, list[str]]:
        """By URL, the pages that were read and of which every correct crawler follows the link to it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for url in self._read:
            if self._is_followed(url):
                for target in self._web.leads_to(url, self._port):
                    found[target].append(url)
        return found

    def is_right(self, account: Account, leading: dict[str, list[str]]) -> bool:
        """Whether a URL that was not asked for may be in that state."""
        url, state = account
        host = host_of(url)
        target = url.partition(f":{self._port}")[2]
        match state:
            case "dropped:forbidden" | "retired":
                expected = self._hostile.followed.get(url)
                if expected is None:
                    return self._web.is_endless(host, target)
                return not self._web.allows(host, target) or not expected.required
            case "withheld":
                return self._web.is_endless(host, target)
            case "nowhere":
                return url not in leading
            case "dropped:unresolved" | "error:dns":
                return not isinstance(self._web.address_of(host), str)
        return False

    def _is_followed(self, url: str) -> bool:
        resource = self._web.resource_at(url)
        if resource is None:
            return False
        if resource.kind is Kind.EXHIBIT:
            row = row_of(resource)
            return row.leads and row.is_certain and row.is_whole and not row.nofollow
        return True

    def _is_robots_step(self, url: str) -> bool:
        return "/robots/kind-" in url


def wrong(truth: Truth, accounts: Iterable[Account]) -> list[Account]:
    """Those that may not be where they are."""
    leading = truth.leading
    return [account for account in accounts if not truth.is_right(account, leading)]


def summary(accounts: Iterable[Account]) -> Counter[str]:
    """How many URLs are in each state."""
    return Counter(account.state for account in accounts)

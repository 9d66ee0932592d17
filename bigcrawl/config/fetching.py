"""Settings of politeness, speed, DNS and limits."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Self

from bigcrawl.config.contact import find_contact, find_mail
from bigcrawl.config.frontier import concurrency_of
from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_group import Group, derived, seconds, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


def _parse_network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text, strict=False)


def _parse_name_server(text: str) -> str:
    """Return a name server in the form that c-ares reads, given as `address`, `address:port` or `[address]:port`."""
    bracketed = re.fullmatch(r"\[(.*)\](?::(\d{1,5}))?", text)
    plain = re.fullmatch(r"([\d.]+):(\d{1,5})", text)
    address, port = bracketed.groups() if bracketed else plain.groups() if plain else (text, None)
    found = ip_address(address)
    if port is not None and not 0 < int(port) < 65_536:
        raise ValueError(f"{port} is not a port")
    host = f"[{found}]" if found.version == 6 else str(found)
    return f"{host}:{port or 53}"


def _contact_of(own: str | None, agent: str) -> str:
    if own and find_contact(own) != own:
        raise ConfigError(
            f"BIGCRAWL_CONTACT is {own!r}; must be your web page or mail address, such as "
            f"https://<your site>/bot or <you>@<your site>; names reserved for examples are refused"
        )
    return own or find_contact(agent)


class PolitenessConfig(Group):
    """Delays, limits, address checks, and the crawler's identity.

    The delays `..._min_ms` are lower bounds when delays are scaled by budget, and equal the delays if they are not.
    """

    host_delay_ms: int = seconds(
        "BIGCRAWL_HOST_DELAY",
        1.0,
        "Pause between the end of a fetch from a host and the start of the next.",
        (0, 86_400),
        alike=True,
        title="Politeness",
    )
    host_delay_min_ms: int = seconds(
        "BIGCRAWL_HOST_DELAY_MIN",
        0.0,
        "Lower bound of the host delay, which shrinks as the domain's budget grows. Crawl-delay still applies. 0: "
        "no scaling.",
        (0, 86_400),
        alike=True,
    )
    host_connections: int = setting(
        "BIGCRAWL_HOST_CONNECTIONS",
        1,
        "Concurrent connections to one host, over all nodes. Above 1, the host delay runs from start to start.",
        (1, 64, "connections"),
        alike=True,
    )
    connection_pages: int = setting(
        "BIGCRAWL_CONNECTION_PAGES",
        1,
        "Pages of a host fetched one after the other over a connection that it keeps, before the host delay. Where "
        "robots.txt has a Crawl-delay, and after failures, it is 1.",
        (1, 1_000, "pages"),
        alike=True,
    )
    server_delay_ms: int = seconds(
        "BIGCRAWL_SERVER_DELAY",
        0.5,
        "Pause between the starts of two fetches from one IP address, over all nodes and all crawls on the Redis.",
        (0, 86_400),
        alike=True,
    )
    server_delay_min_ms: int = seconds(
        "BIGCRAWL_SERVER_DELAY_MIN",
        0.0,
        "Lower bound of the server delay, which shrinks as the mean budget of the server's domains grows. 0: no "
        "scaling.",
        (0, 86_400),
        alike=True,
    )
    crawl_delay_max_ms: int = seconds(
        "BIGCRAWL_CRAWL_DELAY_MAX", 60.0, "Cap on the Crawl-delay of a robots.txt.", (0, 86_400), alike=True
    )
    download_factor: float = setting(
        "BIGCRAWL_DOWNLOAD_FACTOR",
        0.0,
        "Host delay as a multiple of the last download time, where that is longer (Mercator used 10). 0: off.",
        (0, 1_000, "times"),
        alike=True,
    )
    slow_after_ms: int = seconds(
        "BIGCRAWL_SLOW_SECONDS",
        10.0,
        "A download that takes longer is slow. Its host then rests for ten times the excess, at most ten minutes. "
        "Slow hosts share a quarter of a node's fetches. 0: off.",
        (0, 3_600),
    )
    backoff_first_ms: int = seconds(
        "BIGCRAWL_BACKOFF",
        10.0,
        "Rest of a host after a 429, a 503 or no answer. Each further failure in a row multiplies it by four. Up "
        "to half is added at random.",
        (0, 86_400),
    )
    backoff_longest_ms: int = seconds("BIGCRAWL_BACKOFF_MAX", 43_200.0, "Upper bound of that rest.", (0, 86_400))
    retry_after_max_ms: int = seconds(
        "BIGCRAWL_RETRY_AFTER_MAX",
        3_600.0,
        "Cap on the Retry-After of a 429 or 503. 0: Retry-After is ignored.",
        (0, 864_000),
    )
    host_failures_max: int = setting(
        "BIGCRAWL_HOST_FAILURES_MAX",
        8,
        "Failures in a row after which a host is retired, most of a day with the defaults. Its URLs are kept, and "
        "the crawl does not wait for them. 0: never.",
        (0, 1_000_000, "failures"),
    )
    last_failures_max: int = setting(
        "BIGCRAWL_LAST_FAILURES_MAX",
        4,
        "The same while only failing hosts are left, so that a crawl ends minutes after its last page, not a day. "
        "0: no difference.",
        (0, 1_000_000, "failures"),
    )
    obey_robots: bool = setting(
        "BIGCRAWL_ROBOTS",
        "obey",
        "robots.txt is obeyed unless this is the whole phrase ignore-i-own-these-hosts.",
        choices=("obey", "ignore-i-own-these-hosts"),
        alike=True,
        read="obey".__eq__,
    )
    robots_head_start_ms: int = seconds(
        "BIGCRAWL_ROBOTS_HEAD_START",
        0.0,
        "A host that enters Redis passes hosts that have been due for at most this long. So its look-up and its "
        "robots.txt come ahead of its turn, and its first page waits for one turn, not for two. See docs/robots.md.",
        (0, 60),
    )
    connection_keys: tuple[str, ...] = setting(
        "BIGCRAWL_CONNECTION_KEYS",
        ["proxy", "bindaddress", "impersonate", "impersonate_args", "impersonate_curl_options", "curl_cffi_options"],
        "Keys of meta that decide how a request connects. robots.txt is fetched with those of the request for which it "
        "is fetched, and with its name and password for the proxy.",
    )
    robots_kept_min_ms: int = seconds(
        "BIGCRAWL_ROBOTS_KEPT_MIN",
        3_600.0,
        "Shortest time a robots.txt is cached, even if its Cache-Control says less. Without Cache-Control it is "
        "cached for "
        "a day.",
        (0, 86_400),
    )
    obey_nofollow: bool = setting(
        "BIGCRAWL_NOFOLLOW",
        "obey",
        "Whether links marked nofollow (by rel, robots meta element or X-Robots-Tag) are dropped or followed.",
        choices=("obey", "follow"),
        alike=True,
        read="obey".__eq__,
    )
    allow_private_addresses: bool = setting(
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES",
        False,
        "Fetch from loopback, private, link-local and cloud metadata addresses. For tests and intranets.",
        alike=True,
    )
    allow_addresses: tuple[IPv4Network | IPv6Network, ...] = setting(
        "BIGCRAWL_ALLOW_ADDRESSES",
        [],
        "Addresses and networks to fetch from although they are not public, such as 10.1.0.0/16.",
        alike=True,
        parse=(_parse_network, "10.1.0.0/16"),
    )
    contact: str = setting(
        "BIGCRAWL_CONTACT",
        None,
        "A web page or mail address where site owners can reach you. Unset: the one in USER_AGENT. Without either, "
        "nothing is fetched from public addresses.",
        title="Identity",
    )
    agent: str = derived("")
    mail: str = derived("")
    fetch_deadline_ms: int = seconds(
        "BIGCRAWL_FETCH_DEADLINE",
        300.0,
        "Hard time limit of a fetch. A host rests this long if its node, on the same machine, hangs or is stopped.",
        (1, 86_400),
        alike=True,
        title="Fetching",
    )
    stop_grace_ms: int = seconds(
        "BIGCRAWL_STOP_GRACE",
        4.0,
        "Time that running fetches get to end after a stop signal. The rest are aborted and requeued.",
        (0, 3_600),
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        if self.connection_pages > 1 and self.host_connections > 1:
            raise ConfigError(
                "BIGCRAWL_CONNECTION_PAGES and BIGCRAWL_HOST_CONNECTIONS are both above 1; set one of them to 1: "
                "with several connections per host, every fetch waits for the delay"
            )
        agent = str(given["USER_AGENT"] or "bigcrawl")
        contact = _contact_of(self.contact, agent)
        return self.replace(
            robots_head_start_ms=self.robots_head_start_ms if self.obey_robots else 0,
            host_delay_min_ms=min(self.host_delay_min_ms or self.host_delay_ms, self.host_delay_ms),
            server_delay_min_ms=min(self.server_delay_min_ms or self.server_delay_ms, self.server_delay_ms),
            backoff_longest_ms=max(self.backoff_longest_ms, self.backoff_first_ms),
            agent=agent,
            contact=contact,
            mail=find_mail(contact, agent),
        )


class PaceConfig(Group):
    """Speed, blacklist and further delays, mostly unparsed.

    A node runs `fetches_max` fetches at once, or fewer on a congested link, down to `fetches_min`.
    """

    pld_delay_ms: int = seconds(
        "BIGCRAWL_PLD_DELAY",
        0.0,
        "Pause between the starts of two fetches from one pay-level domain, over all its hosts and all nodes. 0: "
        "no pause.",
        (0, 86_400),
        alike=True,
        title="Politeness",
    )
    group: str | None = setting(
        "BIGCRAWL_GROUP",
        None,
        "Import path of a function (host, URL) -> group name or None. Fetches of one group keep BIGCRAWL_GROUP_DELAY.",
        alike=True,
    )
    group_delay_ms: int = seconds(
        "BIGCRAWL_GROUP_DELAY",
        1.0,
        "Pause between the starts of two fetches of one group, over all nodes.",
        (0, 86_400),
        alike=True,
    )
    delay_rules: Mapping[str, Mapping[str, object]] = setting(
        "BIGCRAWL_DELAY_RULES",
        None,
        "Delays set by hand for hosts and pay-level domains: delay, pld_delay.",
        kind=dict,
        alike=True,
    )
    blacklist: tuple[str, ...] = setting(
        "BIGCRAWL_BLACKLIST",
        None,
        "Hosts, pay-level domains, URL patterns and address ranges that are not fetched: a list, or a file.",
        kind=list,
        has_file=True,
        alike=True,
    )
    speed: str = setting(
        "BIGCRAWL_SPEED",
        "",
        "Limits on pages and bytes per second of the whole crawl, by time of day and weekday. Empty: no limit.",
        alike=True,
    )
    time_zone: str = setting(
        "BIGCRAWL_TIME_ZONE",
        "UTC",
        "Time zone of the times in BIGCRAWL_SPEED, a name such as Europe/Berlin.",
        alike=True,
    )
    fetches_min: int = setting(
        "BIGCRAWL_FETCHES_MIN",
        4,
        "Lower bound of a node's concurrent fetches when a congested link or CPU slows all answers. Otherwise it "
        "runs CONCURRENT_REQUESTS. 0: never fewer than that.",
        (0, 100_000, "fetches"),
        title="Fetching",
    )
    fetches_max: int = derived(0)

    def derive(self, given: Mapping[str, Any]) -> Self:
        fetches = concurrency_of(given)
        if given["CONCURRENT_REQUESTS"] in (0, "0"):  # in Scrapy, 0 means no limit
            fetches = given["BIGCRAWL_IN_PROCESS_MAX"] or 3 * fetches
        return self.replace(fetches_min=self.fetches_min or fetches, fetches_max=fetches)


class DnsConfig(Group):
    """How names are resolved, and how long answers are cached.

    Empty `servers` stand for the machine's. With `is_proxys`, a proxy resolves hosts. With `obeys_environment`, fetches
    use the proxies that environment variables name.
    """

    is_proxys: bool = setting(
        "BIGCRAWL_DNS",
        "here",
        "Who resolves names: each node, or the proxy that all fetches go through.",
        choices=("here", "proxy"),
        title="DNS",
        read="proxy".__eq__,
    )
    servers: tuple[str, ...] = setting(
        "BIGCRAWL_DNS_SERVERS",
        [],
        "Addresses of the name servers to ask, with the port if it is not 53. Empty: those of /etc/resolv.conf.",
        parse=(_parse_name_server, "192.0.2.53:5353"),
    )
    families: str = setting(
        "BIGCRAWL_DNS_FAMILIES",
        "ipv4-first",
        "Which addresses of a host to use. With -first, the other family is asked for only if the first has no "
        "address.",
        choices=("ipv4-first", "ipv6-first", "ipv4", "ipv6"),
    )
    timeout_ms: int = seconds("BIGCRAWL_DNS_TIMEOUT", 10.0, "Time limit of a look-up, all tries together.", (0.1, 120))
    tries: int = setting("BIGCRAWL_DNS_TRIES", 4, "How often a look-up asks each name server.", (1, 10, "tries"))
    ttl_min_ms: int = seconds(
        "BIGCRAWL_DNS_TTL_MIN", 60.0, "Shortest time an answer is cached, even if its TTL is shorter.", (0, 86_400)
    )
    ttl_max_ms: int = seconds(
        "BIGCRAWL_DNS_TTL_MAX", 86_400.0, "Longest time an answer is cached, even if its TTL is longer.", (1, 604_800)
    )
    negative_ttl_ms: int = seconds(
        "BIGCRAWL_DNS_NEGATIVE_TTL",
        300.0,
        "How long a name without an address, or that does not exist, is cached as such.",
        (1, 86_400),
    )
    shared_answers: int = setting(
        "BIGCRAWL_DNS_SHARED",
        50_000,
        "DNS answers that nodes share in Redis, some 170 bytes each. 0: no sharing.",
        (0, 10_000_000, "answers"),
    )
    pld_names: int = setting(
        "BIGCRAWL_DNS_PLD_NAMES",
        300,
        "New names of one pay-level domain looked up per minute, scaled by its budget over BIGCRAWL_BUDGET. Others "
        "wait. 0: no limit.",
        (0, 1_000_000, "names"),
    )
    obeys_environment: bool = derived(True)

    def derive(self, given: Mapping[str, Any]) -> Self:
        return self.replace(
            ttl_min_ms=min(self.ttl_min_ms, self.ttl_max_ms),
            obeys_environment=given["HTTPPROXY_ENABLED"] not in (False, 0, "0", "False"),
        )


class LimitsConfig(Group):
    """Limits on answers, on the links of a page, and on connections; `answer_bytes_max` 0 means no limit."""

    truncates: bool = setting(
        "BIGCRAWL_TRUNCATE",
        True,
        "Keep the received part of an answer that exceeds DOWNLOAD_MAXSIZE or DOWNLOAD_TIMEOUT, marked as truncated "
        "in its flags and WARC record. False: the fetch fails.",
        title="Limits of an answer",
    )
    answer_bytes_max: int = derived(0)
    header_bytes_max: int = setting(
        "BIGCRAWL_HEADER_BYTES_MAX",
        65_536,
        "Bytes of an answer's headers, including interim answers and trailers. Beyond that the fetch fails.",
        (1_024, 300_000, "bytes"),
    )
    headers_max: int = setting(
        "BIGCRAWL_HEADERS_MAX", 500, "Header lines of an answer. Beyond that the fetch fails.", (8, 5_000, "lines")
    )
    decompression_ratio_max: int = setting(
        "BIGCRAWL_DECOMPRESSION_RATIO_MAX",
        250,
        "How many times a body may grow when decompressed, above 1 MiB. A larger one is treated as a decompression "
        "bomb and not passed to the spider.",
        (2, 1_000_000, "times"),
    )
    encodings_max: int = setting(
        "BIGCRAWL_ENCODINGS_MAX",
        2,
        "Nested content encodings of a body that are decoded. A body with more is refused.",
        (1, 10, "encodings"),
    )
    page_bytes_max: int = setting(
        "BIGCRAWL_PAGE_BYTES_MAX",
        4 << 20,
        "Bytes of a decompressed page that are scanned for links. The page itself is kept whole.",
        (65_536, 64 << 20, "bytes"),
    )
    page_links_max: int = setting(
        "BIGCRAWL_PAGE_LINKS_MAX",
        20_000,
        "Links extracted from a page, duplicates included. Later ones are dropped.",
        (100, 1_000_000, "links"),
    )
    page_link_bytes_max: int = setting(
        "BIGCRAWL_PAGE_LINK_BYTES_MAX",
        2 << 20,
        "Bytes of all absolute URLs extracted from a page, duplicates included. Later ones are dropped.",
        (65_536, 64 << 20, "bytes"),
    )
    connection_requests_max: int = setting(
        "BIGCRAWL_CONNECTION_REQUESTS_MAX",
        1_000,
        "Requests sent over one connection before it is closed.",
        (1, 1_000_000, "requests"),
    )
    connection_age_s: float = setting(
        "BIGCRAWL_CONNECTION_AGE_MAX",
        600.0,
        "Age at which a connection is used for no more requests.",
        (1, 86_400, "s"),
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        return self.replace(answer_bytes_max=int(given["DOWNLOAD_MAXSIZE"] or 0))

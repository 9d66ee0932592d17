"""Settings of politeness, limits, DNS and speed."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from bigcrawl.config.checks import checked, to_ms
from bigcrawl.config.contact import find_contact, find_mail
from bigcrawl.config.shapes import DnsConfig, LimitsConfig, PaceConfig, PolitenessConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_values import read_values

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_dns(settings: Mapping[str, Any]) -> DnsConfig:
    """Return the settings of DNS; check no others.

    Raises:
        ConfigError: a value has the wrong type or is out of bounds.
    """
    return dns_config(read_values(settings, "BIGCRAWL_DNS"))


def read_politeness(settings: Mapping[str, Any], value: Mapping[str, Any]) -> PolitenessConfig:
    host_delay_ms = to_ms(host_delay(settings, value["BIGCRAWL_HOST_DELAY"]))
    server_delay_ms = to_ms(value["BIGCRAWL_SERVER_DELAY"])
    if value["BIGCRAWL_CONNECTION_PAGES"] > 1 and value["BIGCRAWL_HOST_CONNECTIONS"] > 1:
        raise ConfigError(
            "BIGCRAWL_CONNECTION_PAGES and BIGCRAWL_HOST_CONNECTIONS are both above 1; set one of them to 1: with "
            "several connections, fetches are a delay apart"
        )
    return PolitenessConfig(
        host_delay_ms=host_delay_ms,
        host_delay_min_ms=min(to_ms(value["BIGCRAWL_HOST_DELAY_MIN"]) or host_delay_ms, host_delay_ms),
        host_connections=value["BIGCRAWL_HOST_CONNECTIONS"],
        connection_pages=value["BIGCRAWL_CONNECTION_PAGES"],
        server_delay_ms=server_delay_ms,
        server_delay_min_ms=min(to_ms(value["BIGCRAWL_SERVER_DELAY_MIN"]) or server_delay_ms, server_delay_ms),
        crawl_delay_max_ms=to_ms(value["BIGCRAWL_CRAWL_DELAY_MAX"]),
        download_factor=value["BIGCRAWL_DOWNLOAD_FACTOR"],
        obey_robots=value["BIGCRAWL_ROBOTS"] == "obey",
        robots_kept_min_ms=to_ms(value["BIGCRAWL_ROBOTS_KEPT_MIN"]),
        obey_nofollow=value["BIGCRAWL_NOFOLLOW"] == "obey",
        allow_private_addresses=value["BIGCRAWL_ALLOW_PRIVATE_ADDRESSES"],
        allow_addresses=_networks(value),
        fetch_deadline_ms=to_ms(value["BIGCRAWL_FETCH_DEADLINE"]),
        stop_grace_ms=to_ms(value["BIGCRAWL_STOP_GRACE"]),
        backoff_first_ms=to_ms(value["BIGCRAWL_BACKOFF"]),
        backoff_longest_ms=to_ms(max(value["BIGCRAWL_BACKOFF_MAX"], value["BIGCRAWL_BACKOFF"])),
        retry_after_max_ms=to_ms(value["BIGCRAWL_RETRY_AFTER_MAX"]),
        host_failures_max=value["BIGCRAWL_HOST_FAILURES_MAX"],
        last_failures_max=value["BIGCRAWL_LAST_FAILURES_MAX"],
        slow_after_ms=to_ms(value["BIGCRAWL_SLOW_SECONDS"]),
        agent=(agent := str(settings.get("USER_AGENT") or "bigcrawl")),
        contact=(contact := _contact(value["BIGCRAWL_CONTACT"], agent)),
        mail=find_mail(contact, agent),
        connection_keys=tuple(value["BIGCRAWL_CONNECTION_KEYS"] or ()),
    )


def read_limits(settings: Mapping[str, Any], value: Mapping[str, Any]) -> LimitsConfig:
    return LimitsConfig(
        truncates=value["BIGCRAWL_TRUNCATE"],
        answer_bytes_max=int(settings.get("DOWNLOAD_MAXSIZE") or 0),
        header_bytes_max=value["BIGCRAWL_HEADER_BYTES_MAX"],
        headers_max=value["BIGCRAWL_HEADERS_MAX"],
        decompression_ratio_max=value["BIGCRAWL_DECOMPRESSION_RATIO_MAX"],
        encodings_max=value["BIGCRAWL_ENCODINGS_MAX"],
        page_bytes_max=value["BIGCRAWL_PAGE_BYTES_MAX"],
        page_links_max=value["BIGCRAWL_PAGE_LINKS_MAX"],
        page_link_bytes_max=value["BIGCRAWL_PAGE_LINK_BYTES_MAX"],
        connection_requests_max=value["BIGCRAWL_CONNECTION_REQUESTS_MAX"],
        connection_age_s=value["BIGCRAWL_CONNECTION_AGE_MAX"],
    )


def _networks(value: Mapping[str, Any]) -> tuple[IPv4Network | IPv6Network, ...]:
    name = "BIGCRAWL_ALLOW_ADDRESSES"
    return tuple(checked(name, text, _network, "10.1.0.0/16") for text in value["BIGCRAWL_ALLOW_ADDRESSES"])


def dns_config(value: Mapping[str, Any]) -> DnsConfig:
    name = "BIGCRAWL_DNS_SERVERS"
    servers = tuple(checked(name, text, _server, "192.0.2.53:5353") for text in value["BIGCRAWL_DNS_SERVERS"])
    ttl_max_ms = to_ms(value["BIGCRAWL_DNS_TTL_MAX"])
    return DnsConfig(
        servers=servers,
        families=value["BIGCRAWL_DNS_FAMILIES"],
        timeout_ms=to_ms(value["BIGCRAWL_DNS_TIMEOUT"]),
        tries=value["BIGCRAWL_DNS_TRIES"],
        ttl_min_ms=min(to_ms(value["BIGCRAWL_DNS_TTL_MIN"]), ttl_max_ms),
        ttl_max_ms=ttl_max_ms,
        negative_ttl_ms=to_ms(value["BIGCRAWL_DNS_NEGATIVE_TTL"]),
        shared_answers=value["BIGCRAWL_DNS_SHARED"],
        pld_names=value["BIGCRAWL_DNS_PLD_NAMES"],
        is_proxys=value["BIGCRAWL_DNS"] == "proxy",
    )


def read_pace(value: Mapping[str, Any], fetches: int) -> PaceConfig:
    return PaceConfig(
        speed=value["BIGCRAWL_SPEED"],
        time_zone=value["BIGCRAWL_TIME_ZONE"],
        blacklist=tuple(value["BIGCRAWL_BLACKLIST"] or ()),
        pld_delay_ms=to_ms(value["BIGCRAWL_PLD_DELAY"]),
        group=value["BIGCRAWL_GROUP"] or None,
        group_delay_ms=to_ms(value["BIGCRAWL_GROUP_DELAY"]),
        fetches_min=value["BIGCRAWL_FETCHES_MIN"] or fetches,
        fetches_max=fetches,
        delay_rules=value["BIGCRAWL_DELAY_RULES"] or {},
    )


def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text, strict=False)


def _server(text: str) -> str:
    """Return a name server in the form that c-ares reads, given as `address`, `address:port` or `[address]:port`."""
    bracketed = re.fullmatch(r"\[(.*)\](?::(\d{1,5}))?", text)
    plain = re.fullmatch(r"([\d.]+):(\d{1,5})", text)
    address, port = bracketed.groups() if bracketed else plain.groups() if plain else (text, None)
    found = ip_address(address)
    if port is not None and not 0 < int(port) < 65_536:
        raise ValueError(f"{port} is no port")
    host = f"[{found}]" if found.version == 6 else str(found)
    return f"{host}:{port or 53}"


def host_delay(settings: Mapping[str, Any], host_delay: float) -> float:
    """Return the host delay in seconds; Scrapy's DOWNLOAD_DELAY counts if BIGCRAWL_HOST_DELAY is not set."""
    if settings.get("BIGCRAWL_HOST_DELAY") is None:
        return float(settings.get("DOWNLOAD_DELAY") or 0) or host_delay
    return host_delay


def _contact(own: str | None, agent: str) -> str:
    if own and find_contact(own) != own:
        raise ConfigError(
            f"BIGCRAWL_CONTACT is {own!r}; must be a web page or a mail address of yours, such as "
            f"https://<your site>/bot or <you>@<your site>; names reserved for examples are refused"
        )
    return own or find_contact(agent)

"""Settings of the crawl as a whole: its name, its state, its pages."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from bigcrawl.config.pages import check_warc_store, warc_indexes
from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_group import Group, derived, seconds, setting

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _checked_name(setting: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{setting} is {name!r}; must be 1 to 100 letters, digits, dots, dashes or underscores")
    return name


def _host_name() -> str:
    return (re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()).lstrip(".-") or "node")[:60]


def _node_name(name: str | None) -> str:
    return _checked_name("BIGCRAWL_NODE", name or f"{_host_name()}-{os.getpid()}")


def _parse_directory(name: str | None) -> Path | None:
    return Path(name).expanduser().absolute() if name else None


def _with_password(url: str | None, password_file: str | None) -> str | None:
    if password_file is None:
        return url
    name = "BIGCRAWL_REDIS_PASSWORD_FILE"
    try:
        from bigcrawl.text_files.reading import read_text

        password = read_text(Path(password_file)).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} is {password_file!r}, a file that cannot be read: {error}") from None
    if not password:
        raise ConfigError(f"{name} is {password_file!r}, which is empty; must be a file with the password of Redis")
    scheme, separator, rest = (url or "").partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not separator:
        raise ConfigError(f"{name} is set, but BIGCRAWL_REDIS_URL, to which the password would be added, is not")
    if at and ":" in user:
        raise ConfigError(f"BIGCRAWL_REDIS_URL has a password, and {name} another one; set one of them")
    return f"{scheme}://{user}:{quote(password, safe='')}@{host}{slash}{path}"


class CrawlConfig(Group):
    """The crawl, and where its state lives.

    Attributes:
        node: the name of this process in files and status.
        machine: a name that survives a restart: BIGCRAWL_NODE, or the host's name.
        spider: the spider's name; empty if the process runs none.
        arguments: the spider's arguments that must not change during a crawl; None if unknown.
    """

    name: str = setting(
        "BIGCRAWL_CRAWL",
        "crawl",
        "Name of the crawl. Several crawls can share one Redis. Letters, digits, . _ -",
        title="The crawl and where its state lives",
        read=lambda name: _checked_name("BIGCRAWL_CRAWL", name),
    )
    redis_url: str | None = setting(
        "BIGCRAWL_REDIS_URL",
        None,
        "redis://, rediss:// or unix:// URL of a Redis >= 7.0 or Valkey, of any master of a Redis Cluster, or "
        "redis+sentinel:// URL of its sentinels. Unset: bigcrawl starts an embedded server with its data in the "
        "state directory.",
    )
    redis_password_file: str | None = setting(
        "BIGCRAWL_REDIS_PASSWORD_FILE",
        None,
        "File that holds the password of Redis, and nothing else. It is added to BIGCRAWL_REDIS_URL, which then has "
        "none.",
    )
    state_dir: Path = setting(
        "BIGCRAWL_STATE_DIR",
        "state",
        "Directory of seen sets and queues, shared by all nodes of the crawl. With BIGCRAWL_STORE_URL, each node has "
        "its own.",
        read=lambda name: Path(name).absolute(),
    )
    warc_dir: Path | None = setting(
        "BIGCRAWL_WARC_DIR", "warc", "Directory for WARC files. An empty string stores no pages.", read=_parse_directory
    )
    warc_mode: int = setting(
        "BIGCRAWL_WARC_MODE",
        "600",
        "Permissions of WARC files, as in chmod: 600 for the owner only, 640 for the group too, 644 for everybody.",
        choices=("600", "640", "644"),
        read=lambda digits: int(digits, 8),
    )
    warc_sync_s: float = setting(
        "BIGCRAWL_WARC_SYNC_SECONDS",
        0.1,
        "Time between two syncs of the pages written so far. A page counts as fetched once it is synced. 0: sync "
        "only when a file is full.",
        (0, 60, "s"),
    )
    warc_copies: str = setting(
        "BIGCRAWL_WARC_COPIES",
        "whole",
        "A page with the body of another that this node stored recently is stored whole; or by reference, as a "
        "`revisit` "
        "record with its own headers, and with address, date and record id of the other. With `over-nodes`, bodies "
        "that other nodes stored are known too. See docs/copies.md.",
        choices=("whole", "by-reference", "over-nodes"),
    )
    drops_copy_links: bool = setting(
        "BIGCRAWL_COPY_LINKS",
        "follow",
        "Whether links on a page with the body of another page of its pay-level domain are followed or dropped. Such "
        'pages are recognised only with `BIGCRAWL_WARC_COPIES = "by-reference"` or `"over-nodes"`.',
        choices=("follow", "drop"),
        read="drop".__eq__,
    )
    warc_indexes: tuple[str, ...] = setting(
        "BIGCRAWL_WARC_INDEX",
        ["cdxj"],
        "Indexes that are made of each WARC file once it is full: cdxj, with which pages are found and replayed; "
        "parquet, a table for questions about the crawl, which needs the extra bigcrawl[parquet]. An empty list: none.",
        read=warc_indexes,
    )
    warc_store_url: str | None = setting(
        "BIGCRAWL_WARC_STORE_URL",
        None,
        "s3://bucket/path, gs://bucket/path or file:///directory, where WARC files and their indexes are moved once "
        "they are full. Unset: they stay in BIGCRAWL_WARC_DIR.",
    )
    warc_disk_percent_max: int = setting(
        "BIGCRAWL_WARC_DISK_PERCENT_MAX",
        70,
        "How full the disk of BIGCRAWL_WARC_DIR may be while WARC files wait for BIGCRAWL_WARC_STORE_URL. Beyond that "
        "the crawl pauses until there is room or all are in the store.",
        (1, 100, "%"),
    )
    node: str = setting(
        "BIGCRAWL_NODE",
        None,
        "Name of this node in files and status. A node that is started again under its name gets its partitions "
        "back. Unset: host name and process id in files and status, the host name for partitions.",
        read=_node_name,
    )
    machine: str = derived("")
    capacity: float = setting(
        "BIGCRAWL_CAPACITY",
        1.0,
        "Share of the partitions that this node owns, relative to the other nodes. A node with 2 owns twice as many "
        "as one with 1.",
        (0.01, 1_000, ""),
    )
    capacity_from: str = setting(
        "BIGCRAWL_CAPACITY_FROM",
        "setting",
        "Quantity of which BIGCRAWL_CAPACITY is a multiple: the setting alone; free disk space where pages are stored; "
        "bandwidth of the link, as the system knows it; or speed, at which the node reads links at its start.",
        choices=("setting", "disk", "bandwidth", "speed"),
        alike=True,
    )
    capacity_measured: bool = setting(
        "BIGCRAWL_CAPACITY_MEASURED",
        False,
        "Whether this node owns fewer partitions while it is behind with its hosts and other nodes are not.",
    )
    partitions: int = setting(
        "BIGCRAWL_PARTITIONS",
        256,
        "Number of slices that pay-level domains are divided into. Each is owned by one node at a time. A node has its "
        "share to less than one of them: use twenty times the nodes you will ever run, so that shares are within 5 %.",
        (1, 65_536, ""),
        fixed=True,
    )
    private_suffixes: bool = setting(
        "BIGCRAWL_PRIVATE_SUFFIXES",
        False,
        "Treat private suffixes (github.io, blogspot.com) as public suffixes, so that each customer is a pay-level "
        "domain.",
        fixed=True,
    )
    close_when_empty: bool = setting(
        "BIGCRAWL_CLOSE",
        "until-empty",
        "Whether nodes close when the crawl is finished, or wait for more URLs.",
        choices=("until-empty", "forever"),
        read="until-empty".__eq__,
    )
    is_fresh: bool = setting(
        "BIGCRAWL_FRESH", False, "Start the crawl over: delete its state at the start. Pages and feeds stay."
    )
    pages_max: int = setting(
        "BIGCRAWL_MAX_PAGES",
        0,
        "Pages after which the whole crawl stops, earlier runs included. Raise it to go on. 0: no limit.",
        (0, None, "pages"),
    )
    report_dir: Path | None = setting(
        "BIGCRAWL_REPORT_DIR",
        None,
        "Directory for the report of the crawl, report.html and report.json, which the last node writes when it ends. "
        "Unset: none is written; `scrapy frontier report` writes one at any time.",
        title="Nodes",
        read=_parse_directory,
    )
    spider: str = derived("")
    arguments: Mapping[str, str] | None = derived()

    @property
    def crawl_dir(self) -> Path:
        return self.state_dir / self.name

    def derive(self, given: Mapping[str, Any]) -> Self:
        check_warc_store(self.warc_store_url, self.warc_dir)
        if self.drops_copy_links and (self.warc_copies == "whole" or self.warc_dir is None):
            raise ConfigError(
                'BIGCRAWL_COPY_LINKS is "drop", but no copies are detected; set BIGCRAWL_WARC_COPIES to "by-reference" '
                "and BIGCRAWL_WARC_DIR to a directory"
            )
        if self.warc_copies == "over-nodes" and not self.warc_sync_s:
            raise ConfigError(
                'BIGCRAWL_WARC_COPIES is "over-nodes", but BIGCRAWL_WARC_SYNC_SECONDS is 0, so no node can tell which '
                'bodies are safe; set it to 1, or copies to "by-reference"'
            )
        return self.replace(
            redis_url=_with_password(self.redis_url, self.redis_password_file),
            machine=given["BIGCRAWL_NODE"] or _host_name(),
        )


class CloseRateConfig(Group):
    """When to close a slow crawl: below `pages_per_s` for `span_ms`; 0 means never."""

    pages_per_s: float = setting(
        "BIGCRAWL_CLOSE_RATE",
        0.0,
        "The crawl is closed, as by Ctrl-C on every node, if all nodes together fetch fewer pages a second than this "
        "over BIGCRAWL_CLOSE_RATE_SPAN while URLs wait; the same command continues. Pauses and lower speeds do not "
        "count. 0: never.",
        (0, 1e6, "pages a second"),
        title="The crawl and where its state lives",
    )
    span_ms: int = seconds(
        "BIGCRAWL_CLOSE_RATE_SPAN",
        1_800.0,
        "Time over which the rate for BIGCRAWL_CLOSE_RATE is taken. Raise it if the crawl is closed while many hosts "
        "rest.",
        (5, 604_800),
    )


class StoreConfig(Group):
    """Where partitions are backed up; `url` is None without a store.

    `lost_partitions` decides about a partition whose files exist nowhere: wait, refetch or stop.
    """

    url: str | None = setting(
        "BIGCRAWL_STORE_URL",
        None,
        "s3://, gs:// or file:// URL of a store that all nodes can reach. Durable points of partitions go there, so "
        "nodes need no shared disk. Needs the extra `store`. Unset: the state directory alone.",
        alike=True,
        title="The crawl and where its state lives",
    )
    interval_ms: int = seconds(
        "BIGCRAWL_STORE_SECONDS",
        60.0,
        "Time between two durable points of a partition in the store. Each costs a write request, so 256 partitions "
        "that change all the time make 370,000 a day.",
        (1, 3_600),
    )
    lost_partitions: str = setting(
        "BIGCRAWL_LOST_PARTITIONS",
        "wait",
        "What to do if neither the disk nor the store has the files of a partition that was in use: set it apart until "
        "they are back, while the others continue; start it from scratch, so that its pages are fetched again as "
        "links to them "
        "are found, and its waiting URLs are lost; or stop with an error.",
        choices=("wait", "refetch", "stop"),
    )

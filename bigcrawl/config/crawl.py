"""Settings of the crawl as a whole: its name, its state, its pages."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bigcrawl.config.checks import to_ms
from bigcrawl.config.pages import drops_copy_links, read_warc_store_url, warc_indexes
from bigcrawl.config.shapes import CloseRateConfig, CrawlConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.text_files.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_crawl(value: Mapping[str, Any]) -> CrawlConfig:
    return CrawlConfig(
        name=_checked_name("BIGCRAWL_CRAWL", value["BIGCRAWL_CRAWL"]),
        node=_checked_name("BIGCRAWL_NODE", value["BIGCRAWL_NODE"] or f"{_host_name()}-{os.getpid()}"),
        machine=value["BIGCRAWL_NODE"] or _host_name(),
        capacity=value["BIGCRAWL_CAPACITY"],
        capacity_measured=value["BIGCRAWL_CAPACITY_MEASURED"],
        redis_url=_redis_url(value["BIGCRAWL_REDIS_URL"] or None, value["BIGCRAWL_REDIS_PASSWORD_FILE"] or None),
        state_dir=Path(value["BIGCRAWL_STATE_DIR"]).absolute(),
        warc_dir=Path(value["BIGCRAWL_WARC_DIR"]).expanduser().absolute() if value["BIGCRAWL_WARC_DIR"] else None,
        warc_mode=int(value["BIGCRAWL_WARC_MODE"], 8),
        warc_sync_s=value["BIGCRAWL_WARC_SYNC_SECONDS"],
        warc_copies=value["BIGCRAWL_WARC_COPIES"],
        drops_copy_links=drops_copy_links(value),
        warc_indexes=warc_indexes(value["BIGCRAWL_WARC_INDEX"]),
        warc_store_url=read_warc_store_url(value),
        warc_disk_percent_max=value["BIGCRAWL_WARC_DISK_PERCENT_MAX"],
        report_dir=Path(value["BIGCRAWL_REPORT_DIR"]).expanduser().absolute() if value["BIGCRAWL_REPORT_DIR"] else None,
        partitions=value["BIGCRAWL_PARTITIONS"],
        private_suffixes=value["BIGCRAWL_PRIVATE_SUFFIXES"],
        close_when_empty=value["BIGCRAWL_CLOSE"] == "until-empty",
        is_fresh=value["BIGCRAWL_FRESH"],
        pages_max=value["BIGCRAWL_MAX_PAGES"],
        close_rate=CloseRateConfig(value["BIGCRAWL_CLOSE_RATE"], to_ms(value["BIGCRAWL_CLOSE_RATE_SPAN"])),
    )


def _redis_url(url: str | None, password_file: str | None) -> str | None:
    if password_file is None:
        return url
    name = "BIGCRAWL_REDIS_PASSWORD_FILE"
    try:
        password = read_text(Path(password_file)).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} is {password_file!r}, a file that cannot be read: {error}") from None
    if not password:
        raise ConfigError(f"{name} is {password_file!r}, which is empty; must be a file with the password of Redis")
    scheme, separator, rest = (url or "").partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not separator:
        raise ConfigError(f"{name} needs a BIGCRAWL_REDIS_URL to add the password to")
    if at and ":" in user:
        raise ConfigError(f"BIGCRAWL_REDIS_URL has a password, and {name} another one; set one of them")
    return f"{scheme}://{user}:{quote(password, safe='')}@{host}{slash}{path}"


def _host_name() -> str:
    return (re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()).lstrip(".-") or "node")[:60]


def _checked_name(setting: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{setting} is {name!r}; must be 1 to 100 letters, digits, dots, dashes or underscores")
    return name

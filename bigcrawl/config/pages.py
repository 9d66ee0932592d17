"""Settings of stored pages: where WARC files are written and moved, and the files that a crawl reads pages from."""

from __future__ import annotations

import os.path
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from collections.abc import Sequence

# Packages that each kind of store needs besides fsspec.
_STORE_DRIVERS = {"s3": ("s3fs",), "s3a": ("s3fs",), "gs": ("gcsfs",), "gcs": ("gcsfs",), "file": ()}
WARC_INDEXES = ("cdxj", "parquet")
STAMP_DIGITS = 14  # digits of a time to the second


def warc_indexes(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in WARC_INDEXES:
            raise ConfigError(
                f"BIGCRAWL_WARC_INDEX has {kind!r}; it takes {' and '.join(WARC_INDEXES)}, or nothing for no index"
            )
    if "parquet" in kinds and find_spec("pyarrow") is None:
        raise ConfigError("Parquet files need pyarrow: pip install 'bigcrawl[parquet]'")
    return tuple(dict.fromkeys(kinds))


def check_warc_store(url: str | None, warc_dir: Path | None) -> None:
    """Raise ConfigError if complete WARC files cannot be moved to this store; None means that they are not moved."""
    if url is None:
        return
    if warc_dir is None:
        raise ConfigError(
            "BIGCRAWL_WARC_STORE_URL is set, but BIGCRAWL_WARC_DIR, the directory in which files are "
            "written first, is not"
        )
    scheme, separator, path = url.partition("://")
    if scheme not in _STORE_DRIVERS or not separator or not path.strip("/"):
        raise ConfigError(
            f"BIGCRAWL_WARC_STORE_URL is {url}; it takes s3://bucket/path, gs://bucket/path or file:///directory"
        )
    missing = [name for name in ("fsspec", *_STORE_DRIVERS[scheme]) if find_spec(name) is None]
    if missing:
        raise ConfigError(f"BIGCRAWL_WARC_STORE_URL is {url}: pip install {' '.join(missing)}")
    if scheme == "file" and _is_same_directory(Path(path).expanduser(), warc_dir):
        raise ConfigError(
            f"BIGCRAWL_WARC_STORE_URL is {url}, the same directory as BIGCRAWL_WARC_DIR, from which moved files are "
            f"removed; name another directory"
        )


def _is_same_directory(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one does not exist
        return os.path.realpath(first) == os.path.realpath(second)


def _parse_time(digits: str) -> str:
    if digits and not (digits.isascii() and digits.isdigit() and 4 <= len(digits) <= STAMP_DIGITS):
        raise ConfigError(
            f"BIGCRAWL_SOURCE_TIME is {digits!r}; it takes the digits of a time, as 2026, 20261125 or 20261125220512"
        )
    return digits


class SourceConfig(Group):
    """Stored pages that are read instead of fetching.

    Attributes:
        pattern: which WARC files to read; empty to fetch pages.
        until: the time up to which answers count, as leading digits; empty for no limit.
        has_all: whether the spider is given all pages, not only those it requests.
    """

    pattern: str = setting(
        "BIGCRAWL_SOURCE",
        None,
        "Pattern of WARC files, such as warc/*.warc.gz, or a directory of them. The spider then runs over the pages "
        "stored there, and nothing is fetched. Unset: pages are fetched. See docs/guide/stored-pages.md.",
        title="Stored pages as a source",
        read=lambda pattern: pattern or "",
    )
    until: str = setting(
        "BIGCRAWL_SOURCE_TIME",
        "",
        "Digits of a time (UTC), as 2026, 20261125 or 20261125220512: each URL's last answer until then is taken. "
        "Empty: the last one.",
        read=_parse_time,
    )
    has_all: bool = setting(
        "BIGCRAWL_SOURCE_PAGES",
        "asked",
        "Which stored pages the spider is given: those that it asks for, from its start requests on; or all, those "
        "that it has not asked for to its `parse`.",
        choices=("asked", "all"),
        read="all".__eq__,
    )
    concurrency: int = setting(
        "BIGCRAWL_SOURCE_CONCURRENCY",
        1,
        "How many stored pages the spider and its pipelines work on at a time. 1 keeps the order of the crawl; more is "
        "faster only if they wait for something.",
        (1, 1_000, "pages"),
    )

"""Settings of stored pages: where WARC files go, their indexes, and the files that pages are read from."""

from __future__ import annotations

import os.path
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.config.shapes import SourceConfig
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def read_warc_store_url(value: Mapping[str, Any]) -> str | None:
    """Return the URL of the store that full WARC files are moved to; None if they stay on disk."""
    url: str | None = value["BIGCRAWL_WARC_STORE_URL"] or None
    if url is None:
        return None
    if not value["BIGCRAWL_WARC_DIR"]:
        raise ConfigError("BIGCRAWL_WARC_STORE_URL needs BIGCRAWL_WARC_DIR, the directory in which files are written")
    scheme, separator, path = url.partition("://")
    if scheme not in _STORE_DRIVERS or not separator or not path.strip("/"):
        raise ConfigError(
            f"BIGCRAWL_WARC_STORE_URL is {url}; it takes s3://bucket/path, gs://bucket/path or file:///directory"
        )
    missing = [name for name in ("fsspec", *_STORE_DRIVERS[scheme]) if find_spec(name) is None]
    if missing:
        raise ConfigError(f"BIGCRAWL_WARC_STORE_URL is {url}: pip install {' '.join(missing)}")
    if scheme == "file" and _is_one_place(path, value["BIGCRAWL_WARC_DIR"]):
        raise ConfigError(
            f"BIGCRAWL_WARC_STORE_URL is {url}, which is BIGCRAWL_WARC_DIR: files would be removed there once they are "
            "there; name another directory"
        )
    return url


def _is_one_place(one: str, other: str) -> bool:
    first, second = Path(one).expanduser(), Path(other).expanduser()
    try:
        return first.samefile(second)
    except OSError:  # one does not exist
        return os.path.realpath(first) == os.path.realpath(second)


def read_source(value: Mapping[str, Any]) -> SourceConfig:
    until = value["BIGCRAWL_SOURCE_TIME"]
    if until and not (until.isascii() and until.isdigit() and 4 <= len(until) <= STAMP_DIGITS):
        raise ConfigError(
            f"BIGCRAWL_SOURCE_TIME is {until!r}; it takes the digits of a time, as 2026, 20261125 or 20261125220512"
        )
    return SourceConfig(
        value["BIGCRAWL_SOURCE"] or "",
        until,
        value["BIGCRAWL_SOURCE_PAGES"] == "all",
        value["BIGCRAWL_SOURCE_CONCURRENCY"],
    )


def drops_copy_links(value: Mapping[str, Any]) -> bool:
    if value["BIGCRAWL_COPY_LINKS"] != "drop":
        return False
    if value["BIGCRAWL_WARC_COPIES"] != "by-reference" or not value["BIGCRAWL_WARC_DIR"]:
        raise ConfigError(
            'BIGCRAWL_COPY_LINKS is "drop", and no copies are known; set BIGCRAWL_WARC_COPIES to "by-reference" and '
            "BIGCRAWL_WARC_DIR to a directory"
        )
    return True

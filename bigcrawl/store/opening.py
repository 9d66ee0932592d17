"""Opens the file system of a URL through fsspec, and says what is missing for it."""

from __future__ import annotations

from typing import Any, Final

from bigcrawl.exceptions import ConfigError

DRIVERS: Final = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}
"""The package that fsspec needs for a kind of URL, if it needs one."""


def open_file_system(url: str, setting: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it, without calling it yet.

    Args:
        url: such as s3://bucket/path.
        setting: the setting that has this URL, for messages.

    Raises:
        ConfigError: it is no URL, a package is missing, or fsspec does not know the URL's scheme.
    """
    scheme, separator, path = url.partition("://")
    if not separator or not path.strip("/") or (scheme == "file" and not path.startswith(("/", "~"))):
        # fsspec would take all of it for a directory below the present one.
        raise ConfigError(
            f"{setting} is {url}; it takes a URL such as s3://bucket/path, gs://bucket/path or file:///directory"
        )
    driver = DRIVERS.get(scheme, "")
    try:
        from fsspec.core import url_to_fs  # an extra, needed only with a store

        fs, root = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        also = f" {driver}" if driver else ""
        raise ConfigError(f"{setting} is {url}: pip install 'bigcrawl[store]'{also} ({error})") from None
    except ValueError as error:
        raise ConfigError(f"{setting} is {url}: {error}; give a URL such as s3://bucket/path") from None
    return fs, str(root).rstrip("/")

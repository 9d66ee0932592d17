from __future__ import annotations

from typing import Any, Final

from bigcrawl.exceptions import ConfigError

DRIVERS: Final = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}


def open_file_system(url: str, setting: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it, without making any request."""
    scheme, separator, path = url.partition("://")
    if not separator or not path.strip("/") or (scheme == "file" and not path.startswith(("/", "~"))):
        # fsspec would use it as a relative directory.
        raise ConfigError(
            f"{setting} is {url}; it takes a URL such as s3://bucket/path, gs://bucket/path or file:///directory"
        )
    driver = DRIVERS.get(scheme, "")
    try:
        from fsspec.core import url_to_fs  # an extra

        fs, root = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        also = f" {driver}" if driver else ""
        raise ConfigError(f"{setting} is {url}: pip install 'bigcrawl[store]'{also} ({error})") from None
    except ValueError as error:
        raise ConfigError(f"{setting} is {url}: {error}; give a URL such as s3://bucket/path") from None
    return fs, str(root).rstrip("/")

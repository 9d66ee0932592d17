"""A server of the S3 protocol for tests: moto's, on a free port of this machine, in a thread of this process."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import s3fs
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the server's URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(endpoint: str, patches: pytest.MonkeyPatch) -> str:
    """Make a bucket and return its URL; credentials and endpoint are in the environment, as a user has them."""
    patches.setenv("AWS_ENDPOINT_URL", endpoint)
    patches.setenv("AWS_ACCESS_KEY_ID", "test")
    patches.setenv("AWS_SECRET_ACCESS_KEY", "test")
    patches.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()  # those of the tests before know another server
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    return f"s3://{name}"

"""A server of Google Cloud Storage's protocol for tests: an emulator's, on a free port, in a thread of this process.

What is needed is imported by the test that starts one: a worker that only collects the tests needs none of it.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

from fsspec.config import conf

os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"  # it would ask by gRPC, which the emulator does not speak

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextmanager
def gs_server() -> Iterator[str]:
    """Yield the server's URL."""
    from gcp_storage_emulator.server import RequestHandler
    from gcp_storage_emulator.storage import Storage

    logging.getLogger("gcp_storage_emulator").setLevel(logging.ERROR)  # it logs every request
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(RequestHandler, Storage(use_memory_fs=True)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def new_gs_bucket(endpoint: str, patches: pytest.MonkeyPatch) -> str:
    """Make a bucket and return its URL; endpoint and credentials are in fsspec's configuration, as a user has them."""
    import gcsfs

    patches.setitem(conf, "gs", {"endpoint_url": endpoint, "token": "anon", "project": "test"})
    patches.setitem(conf, "gcs", conf["gs"])
    gcsfs.GCSFileSystem.clear_instance_cache()  # those of the tests before know another server
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    gcsfs.GCSFileSystem(**conf["gs"], skip_instance_cache=True).mkdir(name)
    return f"gs://{name}"

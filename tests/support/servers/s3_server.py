"""A server of the S3 protocol for tests: moto's, on a free port of this machine, in a thread of this process.

What is needed is imported by the test that starts one: a worker that only collects the tests needs none of it.
"""

from __future__ import annotations

import io
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pytest


SLOW_S = 2.0


def _read_models_once() -> None:
    """Have botocore parse each of its models once a process: for each new client that is a tenth of a second of CPU."""
    from botocore.loaders import JSONFileLoader  # type: ignore[import-untyped]

    if JSONFileLoader.load_file is _load_file:
        return
    _parsed[""] = JSONFileLoader.load_file
    JSONFileLoader.load_file = _load_file


_parsed: dict[str, Any] = {}


def _load_file(loader: Any, path: str) -> Any:
    if path not in _parsed:
        _parsed[path] = _parsed[""](loader, path)
    return _parsed[path]


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the server's URL."""
    from moto.server import ThreadedMotoServer

    _read_models_once()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class FaultyS3:
    """A server that stands behind a fault, which may be changed at any time.

    Attributes:
        url: of the server.
        fault: what befalls requests to objects: "": nothing; "500": they are refused; "hang": they get no answer until
            the fault is taken away; "slow": none for seconds; "cut": of what is sent only the first half is kept, and
            the answer is as always.
        on_request: called with method and path of each request to an object before it is answered.
        seen: method and path of each.
        under_way: how many are being answered, also to clients that are gone.
    """

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
        from werkzeug.serving import make_server

        self.fault = ""
        self.on_request: Callable[[str, str], object] | None = None
        self.seen: list[tuple[str, str]] = []
        self.under_way = 0
        self._changed = threading.Condition()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=MotoRequestHandler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.become("")
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def become(self, fault: str) -> None:
        """Change the fault."""
        with self._changed:
            self.fault = fault
            self._changed.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Answer no requests meanwhile."""
        self.become("hang")
        try:
            yield
        finally:
            self.become("")

    def wait_until_idle(self) -> None:
        """Wait until all requests that it has seen are answered: what a client sent before it was killed counts."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self.under_way, 300)

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self._record_under_way(1)
        try:
            return self._answered(environ, start_response)
        finally:
            self._record_under_way(-1)

    def _record_under_way(self, more: int) -> None:
        with self._changed:
            self.under_way += more
            self._changed.notify_all()

    def _answered(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if path.count("/") > 1 and path.strip("/").count("/"):  # an object's
            with self._changed:
                self._changed.wait_for(lambda: self.fault != "hang")
                self._changed.wait_for(lambda: self.fault != "slow", SLOW_S)
            self.seen.append((method, path))
            if self.on_request is not None:
                self.on_request(method, path)
            if self.fault == "500":
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start_response("500 Internal Server Error", [("Content-Length", "0")])
                return [b""]
            if self.fault == "cut" and method == "PUT":
                data = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
                half = data[: len(data) // 2]
                environ |= {"wsgi.input": io.BytesIO(half), "CONTENT_LENGTH": str(len(half))}
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer


def new_bucket(endpoint: str, patches: pytest.MonkeyPatch) -> str:
    """Make a bucket and return its URL; credentials and endpoint are in the environment, as a user has them."""
    import s3fs

    patches.setenv("AWS_ENDPOINT_URL", endpoint)
    patches.setenv("AWS_ACCESS_KEY_ID", "test")
    patches.setenv("AWS_SECRET_ACCESS_KEY", "test")
    patches.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()  # those of the tests before know another server
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    return f"s3://{name}"

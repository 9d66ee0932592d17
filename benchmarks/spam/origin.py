"""The web in a process of its own, with a resolver: `python -m benchmarks.spam.origin PLAN LOG DNS_ADDRESS`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks.spam.web import SlowWeb, WebPlan
from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.running import ServingOptions, serve_until_signal
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl_simweb.serve.running import ServedPorts

# resolv.conf knows no ports.
_DNS_PORT = 53


class Origin:
    """A server of a plan's web, started and stopped here; `log` is what it was asked for."""

    def __init__(self, plan: WebPlan, directory: Path, resolver: str, prefix: Sequence[str] = ()) -> None:
        directory.mkdir(parents=True)
        self.log = directory / "access.log"
        arguments = [plan.as_json(), str(self.log), resolver]
        command = [*prefix, sys.executable, "-m", "benchmarks.spam.origin", *arguments]
        self._process = spawn(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        if not told:
            raise RuntimeError("the origin does not start; its last words are above")
        self.port = int(told)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class LogTail:
    """Reads a log that is being written; each line once.

    The first line names the columns, behind the format's name and number.
    """

    def __init__(self, log: Path) -> None:
        self._file = log.open(encoding="utf-8")
        self._torn = ""
        columns = self._file.readline().rstrip("\n").split("\t")[1:]
        self._host, self._target, self._status = map(columns.index, ("host", "target", "status"))

    def answered(self) -> set[str]:
        """The URLs of the lines that are new, without the port, and without those that the crawler gave up."""
        *lines, self._torn = (self._torn + self._file.read()).split("\n")
        found = (line.split("\t") for line in lines)
        return {
            f"http://{fields[self._host]}{fields[self._target]}"
            for fields in found
            if fields[self._status] != str(ABORTED_STATUS)
        }

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def main(plan_json: str, log: str, resolver: str) -> None:
    """Serve until SIGTERM; a line on stdout tells the port."""
    plan = WebPlan.from_json(plan_json)
    web = plan.web()
    sockets = open_listeners(web.addresses(), 0)
    serving = ServingOptions(log=Path(log), dns=(resolver, _DNS_PORT))
    try:
        serve_until_signal(SlowWeb(web, plan.latency_ms), sockets, serving, _tell)
    except ConfigError as error:
        raise SystemExit(f"spam: {error}") from error


def _tell(ports: ServedPorts) -> None:
    print(ports.http, flush=True)  # noqa: T201 - the answer of this program


if __name__ == "__main__":
    main(*sys.argv[1:])

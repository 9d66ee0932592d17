"""A web that tells who serves it, as a program: running_origin PROCESSES LOG LOOKUP_LOG LOG_BYTES_MAX."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.running import ServingOptions, serve_until_signal
from tests.annexes.simweb.scripted import A, B, ScriptedWeb


class TellingWeb(ScriptedWeb):
    """Answers with the id of the process."""

    def answer(self, *_: object, **__: object) -> Answer:
        return Answer(200, (), str(os.getpid()).encode())


def main(processes: str, log: str, lookup_log: str, log_bytes_max: str) -> str | None:
    """Serve until told; the message of what went wrong."""
    serving = ServingOptions(log=Path(log), processes=int(processes), dns=("127.0.0.1", 0), lookup_log=Path(lookup_log))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(log_bytes_max), int(log_bytes_max)))
    web = TellingWeb({}, {"www.sim.example": A})
    sockets = open_listeners([A, B], 0, "no-such-device")
    try:
        serve_until_signal(web, sockets, serving, lambda ports: print(*ports, flush=True))  # noqa: T201 - for the test to read
    except ConfigError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

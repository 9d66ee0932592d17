"""A replica that lags and takes over, for tests of fail-overs."""

from __future__ import annotations

import socket
import threading

from tests.support.faults.replica import ADDRESS, Replica, Replicated
from tests.support.redis_servers.aof import commands_of
from tests.support.running.processes import wait_until


def rpushed(commands: list[list[bytes]]) -> list[bytes]:
    return [words[2] for words in commands if words[0] == b"RPUSH"]


def test_replica_that_takes_over_has_what_was_written_before_it_fell_behind() -> None:
    """And nothing of what came later; the size that was told divides the master's file there."""
    with Replicated() as master, Replica(master) as replica:
        for number in range(100):
            master.client.rpush("numbers", f"before{number}")
        kept_bytes = master.fall_behind(replica)
        master.client.rpush("numbers", "after")
        wait_until(lambda: master.client.info("persistence")["aof_buffer_length"] == 0, "the file has it")
        master.kill()
        assert rpushed(list(commands_of(master.aof, kept_bytes))) == [b"before%d" % number for number in range(100)]
        assert rpushed(master.commands())[100:] == [b"after"]
        replica.take_over()
        assert replica.client.llen("numbers") == 100
        replica.client.rpush("numbers", "anew")
        replica.kill()
        assert rpushed(replica.commands()) == [b"anew"]
        replica.start()
        assert replica.client.lrange("numbers", -2, -1) == [b"before99", b"anew"]


def test_replica_of_a_master_that_was_started_again_catches_up() -> None:
    """It has what the master has, before it falls behind."""
    with Replicated() as master, Replica(master) as replica:
        master.client.set("number", 1)
        master.kill()
        master.start()
        master.client.set("number", 2)
        master.fall_behind(replica)
        master.client.set("number", 3)
        replica.take_over()
        assert replica.client.get("number") == b"2"


def test_server_whose_port_is_still_taken_starts_when_it_is_free() -> None:
    """The child of a killed one holds it for a moment, if it was sending a copy."""
    with Replicated() as master:
        master.kill()
        with socket.create_server((ADDRESS, master.port)) as holder:
            free = threading.Timer(0.5, holder.close)
            free.start()
            master.start()
            free.join()
        assert master.client.ping()

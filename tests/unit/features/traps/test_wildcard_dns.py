"""Domains that answer for every name: when a made-up name is asked for, and what is told."""

from __future__ import annotations

import asyncio

import pytest

from bigcrawl.features.traps import page as module
from bigcrawl.features.traps.page import WildcardDns
from bigcrawl.features.traps.verdicts import WILDCARD
from bigcrawl.politeness.dns_cache import DnsError
from bigcrawl.scheduler.records.outcomes import unpack_outcomes
from tests.support.keys import pld_key

FARM = "farm.example"


class Dns:
    """Says the same of every name: an address, or why there is none."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        self.asked: list[str] = []

    async def lookup(self, host: str) -> list[str]:
        self.asked.append(host)
        if self.reason:
            raise DnsError(host, self.reason, 1_000)
        return ["192.0.2.1"]


def verdicts(dns: Dns, plds: list[str], hosts: int = 4) -> dict[str, int]:
    """Note look-ups of these PLDs one after another; what is told of each that something is told of."""

    async def scenario() -> dict[str, int]:
        wildcards = WildcardDns(hosts, dns.lookup, pld_key)
        for pld in plds:
            wildcards.count_host(pld)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        told = {pld: wildcards.take_verdict(pld) for pld in dict.fromkeys(plds)}
        assert not any(wildcards.take_verdict(pld) for pld in plds), "each is told once"
        assert not wildcards.verdicts
        await wildcards.close()
        return {pld: row(pld, remark) for pld, remark in told.items() if remark}

    return asyncio.run(scenario())


def row(pld: str, remark: bytes) -> int:
    [key], [value] = unpack_outcomes([("1-0", remark)])
    assert (int(key), int(value["code"])) == (pld_key(pld), WILDCARD)
    return int(value["detail"])


def test_domain_with_an_address_for_any_name_is_told() -> None:
    """When enough of its hosts were looked up; the name that is asked for is one of its own that nobody has."""
    dns = Dns()
    assert verdicts(dns, [FARM] * 3) == {}
    assert verdicts(dns, [FARM] * 4) == {FARM: 1}
    [name] = dns.asked
    label, _, rest = name.partition(".")
    assert (len(label), rest) == (16, FARM)


def test_domain_without_one_is_told_to_be_none() -> None:
    """So that one whose wildcard has gone gets its budget back."""
    assert verdicts(Dns("not-found"), [FARM] * 4) == {FARM: 0}


@pytest.mark.parametrize("reason", ["temporary", "timeout", "failed", "malformed-name"])
def test_dns_that_says_nothing_is_no_verdict(reason: str) -> None:
    """Name servers that fail make no domain a trap, nor clear one."""
    assert verdicts(Dns(reason), [FARM] * 4) == {}


def test_asked_again_whenever_there_are_twice_as_many() -> None:
    """A domain of a million hosts costs a dozen questions, with another name each."""
    dns = Dns()
    verdicts(dns, [FARM] * 40)
    assert len(dns.asked) == len(set(dns.asked)) == 4, "at 4, 8, 16 and 32"


def test_domains_count_apart_and_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one looked up longest ago goes first, and begins anew."""
    assert verdicts(Dns(), [FARM, "a.example"] * 3 + [FARM]) == {FARM: 1}
    monkeypatch.setattr(module, "PLDS_KEPT", 2)
    assert verdicts(Dns(), [FARM] * 3 + ["a.example", "b.example"] + [FARM]) == {}


def test_questions_under_way_are_given_up_at_the_end() -> None:
    """A name server that is silent does not keep a node from closing."""

    async def scenario() -> None:
        async def silent(_: str) -> list[str]:
            await asyncio.Event().wait()
            raise AssertionError("nothing sets it")

        wildcards = WildcardDns(2, silent, pld_key)
        for _ in range(2):
            wildcards.count_host(FARM)
        await asyncio.sleep(0)
        await asyncio.wait_for(wildcards.close(), 60)
        assert not wildcards.verdicts

    asyncio.run(scenario())

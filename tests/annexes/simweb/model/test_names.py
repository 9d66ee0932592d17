from __future__ import annotations

from collections import Counter

import pytest
import tldextract

from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.basics.features import ALL, PLAIN, Naming
from bigcrawl_simweb.basics.name_record import NameFault
from bigcrawl_simweb.model.names import FARM_HOST, HOMES_HOST, HostNames, spell_number, spelt_number
from bigcrawl_simweb.model.population import Population

HOSTS = 700
POPULATION = Population(2, HOSTS, 7_000)
PLD_OF = tldextract.TLDExtract(suffix_list_urls=(), include_psl_private_domains=True)


def names(naming: Naming = Naming.NAME, featured: bool = False) -> HostNames:
    return HostNames(2, POPULATION, naming, ALL if featured else PLAIN)


@pytest.mark.parametrize("naming", Naming)
def test_every_host_is_found_by_what_it_is_called(naming: Naming):
    """A host and its name or address determine each other."""
    called = [names(naming).name_of(host) for host in range(HOSTS)]
    assert len(set(called)) == HOSTS
    assert [names(naming).host_of(name) for name in called] == list(range(HOSTS))


def test_half_of_the_hosts_have_names_when_both_are_asked_for():
    """About half of the hosts have addresses of their own, at which nobody else is."""
    both = names(Naming.BOTH)
    named = [host for host in range(HOSTS) if both.is_named(host)]
    assert HOSTS * 0.4 < len(named) < HOSTS * 0.6
    addresses = list(both.addresses())
    assert len(set(addresses)) == len(addresses) == HOSTS - len(named) + POPULATION.servers
    own = {both.name_of(host) for host in range(HOSTS) if not both.is_named(host)}
    assert not own & {both.resolve(both.name_of(host)) for host in named}
    assert both.resolve(next(iter(own))) is None


def test_resolver_knows_the_names_alone():
    """Names have addresses that are listened on, many names one; nothing else resolves."""
    named = names()
    found = Counter(named.resolve(named.name_of(host)) for host in range(HOSTS))
    assert set(found) <= set(named.addresses()) == {address_of(server) for server in range(POPULATION.servers)}
    assert found.most_common(1)[0][1] > 2 * HOSTS / POPULATION.servers
    for name in ("example.com", "127.16.0.1", "com", "", ".", "x..com", "www." + named.name_of(3), "bada-offers0.biz"):
        assert named.resolve(name) is None
    assert names(Naming.ADDRESS).resolve(named.name_of(0)) is None


def test_domains_are_those_of_the_public_suffix_list():
    """What the web takes for a PLD, the list does too; multi-label and private suffixes are among them."""
    named = names()
    plds = set()
    for host in range(HOSTS):
        name = named.name_of(host)
        pld = named.pld_of(name)
        assert PLD_OF(name).top_domain_under_public_suffix == pld
        plds.add(pld)
    assert len(plds) == POPULATION.plds
    suffixes = {pld.partition(".")[2] for pld in plds}
    assert {"com", "co.uk", "com.au", "github.io", "blogspot.com"} <= suffixes


def test_farms_answer_to_any_subdomain():
    """Every subdomain of a farm is a host, at the address of its farm, whoever made it up; the PLD is the farm's."""
    farms = names(featured=True)
    assert farms.farms >= 1
    first, second = (farms.name_of(FARM_HOST + number) for number in (0, 123_456_789))
    assert farms.host_of(second) == FARM_HOST + 123_456_789
    assert farms.pld_of(first) == farms.pld_of(second) == PLD_OF(second).top_domain_under_public_suffix
    assert farms.resolve(first) == farms.resolve(second) is not None
    for made_up in ("x1.", "0123456789abcdef.", "a.b."):
        assert farms.resolve(made_up + farms.pld_of(first)) == farms.resolve(first)
        assert farms.pld_of(made_up + farms.pld_of(first)) == farms.pld_of(first)
    assert farms.host_of(farms.pld_of(first)) is None
    assert names().host_of(second) is None


def test_shared_domains_have_one_host_each():
    """It is their www, at an address of the web; no other name of theirs exists, nor any without the feature."""
    shared = names(featured=True)
    assert shared.homes >= 1
    name = shared.name_of(HOMES_HOST)
    assert shared.host_of(name) == HOMES_HOST
    assert shared.resolve(name) in set(shared.addresses())
    assert shared.pld_of(name) == PLD_OF(name).top_domain_under_public_suffix == name.removeprefix("www.")
    for other in (shared.pld_of(name), f"x1.{name}", f"blog.{shared.pld_of(name)}", shared.name_of(HOMES_HOST + 9_999)):
        assert shared.host_of(other) is None
        assert shared.resolve(other) is None
    assert names().host_of(name) is None


def test_some_names_do_not_resolve():
    """NXDOMAIN, SERVFAIL and silence all occur, on few hosts."""
    faulty = names(featured=True)
    outcomes = Counter(
        "ok" if isinstance(found := faulty.resolve(faulty.name_of(host)), str) else found for host in range(HOSTS)
    )
    assert set(outcomes) == {"ok", None, NameFault.SERVFAIL, NameFault.SILENT}
    assert outcomes["ok"] > HOSTS * 0.9
    assert all(faulty.resolves(host) == isinstance(faulty.resolve(faulty.name_of(host)), str) for host in range(HOSTS))


def test_numbers_are_spelt_one_way():
    """Words and numbers determine each other; what is no number's word is none."""
    for number in (*range(6_000), 10**9, 2**32 - 1):
        assert spelt_number(spell_number(number)) == number
    assert len(spell_number(0)) == 4
    for word in ("", "b", "ba", "bab", "babax", "baba", "www", "BEBE", "xexe"):
        assert spelt_number(word) is None, word

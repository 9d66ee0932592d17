"""Names of hosts, computed from numbers and back without a table.

A PLD's label spells a scattered number in syllables, which also determines its public suffix. A host's place in its PLD
gives its subdomain. Names of farms end in "-offers" and a number before the suffix, those of shared domains in "-homes"
and a number.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.addresses import address_of, index_of
from bigcrawl_simweb.basics.features import Feature, Naming
from bigcrawl_simweb.basics.name_record import NameFault
from bigcrawl_simweb.basics.power_law import ScatteredOrder, mix_bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl_simweb.model.population import Population

# Percentages, modelled on the larger suffixes of the public web. The last three are private suffixes of the
# public-suffix list.
_SUFFIXES: Final = (
    *(("com", 44), ("org", 9), ("net", 6), ("de", 7), ("co.uk", 5), ("ru", 4), ("nl", 3), ("info", 3), ("com.br", 3)),
    *(("com.au", 3), ("co.jp", 3), ("fr", 2), ("edu", 1), ("gov.uk", 1), ("ac.at", 1), ("k12.ca.us", 1)),
    *(("github.io", 2), ("blogspot.com", 1), ("s3.amazonaws.com", 1)),
)
_SUFFIX_TABLE: Final = tuple(suffix for suffix, percent in _SUFFIXES for _ in range(percent))
_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"
_SYLLABLES: Final = tuple(consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS)
_SYLLABLE_NUMBERS: Final = {syllable: number for number, syllable in enumerate(_SYLLABLES)}
# At least two syllables; single ones exist on the real web.
_LABEL_OFFSET: Final = len(_SYLLABLES)
_SUBDOMAINS: Final = ("", "www", "blog", "shop", "m", "news", "forum", "static", "wiki", "de", "en", "mail-archive")
_SUBDOMAIN_NUMBERS: Final = {label: number for number, label in enumerate(_SUBDOMAINS)}

FARM_MARK: Final = "-offers"
HOMES_MARK: Final = "-homes"
MARKED_SUFFIXES: Final = ("biz", "info", "com.co", "xyz")
HOMES_HOST: Final = 2**39  # hosts from here on are not ordinary: HOMES_HOST + number is a shared domain's
FARM_HOST: Final = 2**40  # hosts from here on are a farm's: farm number * FARM_HOST + subdomain number
FARMS_MAX: Final = 10**7  # and of shared domains
_PLDS_PER_FARM: Final = 200
_FARM_SUBDOMAINS_MAX: Final = 2**32
_MARKED: Final = re.compile(rf"(.+)\.([^.]+({FARM_MARK}|{HOMES_MARK})([0-9]{{1,7}})\..+)")

_FAULT_EVERY: Final = 64
_FAULTS: Final[dict[int, NameFault | None]] = {5: None, 25: NameFault.SERVFAIL, 45: NameFault.SILENT}


def spell_number(number: int) -> str:
    """Return a word of two or more syllables; distinct for distinct numbers >= 0."""
    number += _LABEL_OFFSET
    word = ""
    while number:
        number, syllable = divmod(number, len(_SYLLABLES))
        word = _SYLLABLES[syllable] + word
    return word


def spelt_number(word: str) -> int | None:
    number = 0
    for start in range(0, len(word), 2):
        syllable = _SYLLABLE_NUMBERS.get(word[start : start + 2])
        if syllable is None:
            return None
        number = number * len(_SYLLABLES) + syllable
    number -= _LABEL_OFFSET
    return number if number >= 0 and spell_number(number) == word else None


class HostNames:
    def __init__(
        self,
        seed: int,
        population: Population,
        naming: Naming,
        features: frozenset[Feature],
        farms: int | None = None,
        homes: int | None = None,
    ) -> None:
        self._seed = mix_bits(seed + 21)
        self._population = population
        self.naming = naming
        self._has_faults = Feature.NAMES in features and naming is not Naming.ADDRESS
        self._labels = ScatteredOrder(self._seed, population.plds)
        self._first_server = population.hosts if naming is Naming.BOTH else 0
        usual = max(1, population.plds // _PLDS_PER_FARM) if naming is not Naming.ADDRESS else 0
        self.farms = usual * (Feature.FARMS in features) if farms is None else farms
        self.homes = usual * (Feature.HOMES in features) if homes is None else homes

    def addresses(self) -> Iterator[str]:
        hosts = self._population.hosts
        if self.naming is Naming.ADDRESS:
            return map(address_of, range(hosts))
        own = (address_of(host) for host in range(hosts) if not self.is_named(host)) if self._first_server else ()
        servers = range(self._first_server, self._first_server + self._population.servers)
        return iter((*own, *map(address_of, servers)))

    def is_named(self, host: int) -> bool:
        if self.naming is Naming.BOTH:
            return host >= HOMES_HOST or mix_bits(self._seed ^ host) & 1 == 1
        return self.naming is Naming.NAME

    def name_of(self, host: int) -> str:
        if not self.is_named(host):
            return address_of(host)
        if host >= FARM_HOST:
            return f"{spell_number(host % FARM_HOST)}.{self._registered_name(host)}"
        if host >= HOMES_HOST:
            return f"www.{self._registered_name(host)}"
        pld = self._population.pld_of(host)
        place = host - self._population.first_host(pld)
        label = _SUBDOMAINS[place] if place < len(_SUBDOMAINS) else spell_number(place)
        return f"{label}.{self._pld_name(pld)}" if label else self._pld_name(pld)

    def host_of(self, name: str) -> int | None:
        if name[-1:].isdigit():
            host = index_of(name)
            return host if host is not None and host < self._population.hosts and not self.is_named(host) else None
        if self.naming is Naming.ADDRESS:
            return None
        is_marked = FARM_MARK in name or HOMES_MARK in name
        host = self._marked_host(name) if is_marked else self._ordinary_host(name)
        return host if host is not None and self.is_named(host) else None

    def pld_of(self, name: str) -> str:
        host = self.host_of(name)
        if host is None or not self.is_named(host):
            return name
        return self._registered_name(host)

    def resolve(self, name: str) -> str | NameFault | None:
        host = None if name[-1:].isdigit() else self.host_of(name)
        if host is None:
            return None
        if not self.resolves(host):
            return _FAULTS[host % _FAULT_EVERY]
        return address_of(self._first_server + self.server_of(host))

    def resolves(self, host: int) -> bool:
        return not (self._has_faults and host < HOMES_HOST and host % _FAULT_EVERY in _FAULTS and self.is_named(host))

    def server_of(self, host: int) -> int:
        if host >= FARM_HOST:
            return host // FARM_HOST % self._population.servers
        if host >= HOMES_HOST:
            return (host - HOMES_HOST) % self._population.servers
        return self._population.server_of(host)

    def _registered_name(self, host: int) -> str:
        if host >= FARM_HOST:
            return self._marked_name(FARM_MARK, host // FARM_HOST - 1)
        if host >= HOMES_HOST:
            return self._marked_name(HOMES_MARK, host - HOMES_HOST)
        return self._pld_name(self._population.pld_of(host))

    def _pld_name(self, pld: int) -> str:
        number = self._labels.place(pld)
        return f"{spell_number(number)}.{_SUFFIX_TABLE[mix_bits(self._seed ^ number) % len(_SUFFIX_TABLE)]}"

    def _ordinary_host(self, name: str) -> int | None:
        for part, after in _cut_labels(name):
            number = spelt_number(part)
            if number is None or number >= self._population.plds:
                continue
            pld = self._labels.number(number)
            registered = self._pld_name(pld)
            if registered == f"{part}.{after}":
                subdomain = name.removesuffix(registered).removesuffix(".")
                place = _SUBDOMAIN_NUMBERS.get(subdomain)
                if place is None:
                    place = spelt_number(subdomain)
                    if place is None or place < len(_SUBDOMAINS):
                        return None
                host = self._population.first_host(pld) + place
                return host if host < self._population.first_host(pld + 1) else None
        return None

    def _marked_name(self, mark: str, place: int) -> str:
        suffix = MARKED_SUFFIXES[place % len(MARKED_SUFFIXES)]
        return f"{spell_number(mix_bits(self._seed ^ place) % 10**6)}{mark}{place}.{suffix}"

    def _marked_host(self, name: str) -> int | None:
        """Return a shared domain's host, or that of any subdomain of a farm, because its DNS has a wildcard."""
        found = _MARKED.fullmatch(name)
        if found is None:
            return None
        subdomain, registered, mark, digits = found.groups()
        place = int(digits)
        is_farm = mark == FARM_MARK
        if place >= (self.farms if is_farm else self.homes) or self._marked_name(mark, place) != registered:
            return None
        if not is_farm:
            return HOMES_HOST + place if subdomain == "www" else None
        number = spelt_number(subdomain)
        if number is None or number >= _FARM_SUBDOMAINS_MAX:
            number = zlib.crc32(subdomain.encode())
        return (place + 1) * FARM_HOST + number


def _cut_labels(name: str) -> Iterator[tuple[str, str]]:
    rest = name
    while "." in rest:
        label, _, rest = rest.partition(".")
        yield label, rest

"""The real pages of the system checks: documentation packages laid out as one site per loopback address.

`scripts/fetch_corpora DIR` unpacks the packages; `lay_out_sites` makes a document root of each part of them,
with the robots.txt it serves. The roots are directories of symbolic links into the packages, so nothing is
copied. What the pages link to and the packages do not bring (other languages, files of other packages)
answers 404, as on the web.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

# Where `make check-system` has them unpacked; below build/, which is never committed.
CORPORA = Path(__file__).resolve().parents[2] / "build" / "corpora"

# The name the rules below are written for; the crawl has to send it first in its User-Agent.
ROBOTS_AGENT = "bigcrawl"

_PYTHON = "python3.11-doc/usr/share/doc/python3.11/html"
_SQLITE = "sqlite3-doc/usr/share/doc/sqlite3"
_POSTGRESQL = "postgresql-doc-15/usr/share/doc/postgresql-doc-15/html"
_APACHE = "apache2-doc/usr/share/doc/apache2-doc/manual"
_HANDBOOK = "debian-handbook/usr/share/doc/debian-handbook/html"

# One host each. A manual's pages name their translations, so three hosts redirect to each other and the
# languages that have no host are missing pages. All eleven would triple the crawl with more of the same.
_APACHE_LANGUAGES = ("en", "fr", "ko")

# 128 pages a language. These make the hosts more than twenty and show every script it is written in.
_HANDBOOK_LANGUAGES = (
    "ar-MA", "de-DE", "el-GR", "en-US", "es-ES", "fa-IR", "fr-FR", "it-IT", "ja-JP",
    "ko-KR", "nb-NO", "pl-PL", "pt-BR", "ru-RU", "tr-TR", "vi-VN", "zh-CN", "zh-TW",
)  # fmt: skip

# Real rules for directories and pages that exist and are linked. An Allow stands before the Disallow it is an
# exception of, and no rule has wildcards: a reader by first match and one by longest match (RFC 9309) agree.
_ROBOTS = {
    "python": "User-agent: *\nAllow: /library/xml.etree\nDisallow: /library/xml\nDisallow: /whatsnew/2\n",
    "sqlite": "User-agent: *\nDisallow: /c3ref/\nAllow: /releaselog/3_4\nDisallow: /releaselog/\n",
    "apache-en": f"User-agent: *\nDisallow: /\n\nUser-agent: {ROBOTS_AGENT}\nDisallow: /en/mod/mod_\n",
    "apache-fr": "User-agent: otherbot\nDisallow: /\n",
    "handbook-de-DE": "User-agent: *\nCrawl-delay: 1\n",
    "handbook-en-US": "User-agent: *\nDisallow: /sect.network\n",
    "handbook-fa-IR": "# nothing is forbidden here\nUser-agent: *\nDisallow:\n",
    "handbook-ja-JP": "User-agent: *\nDisallow: /\n",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """One host: where it listens and what it serves."""

    name: str
    address: str
    root: Path
    seeds: tuple[str, ...] = ("/",)
    # Body of /robots.txt; None: the file does not exist and is answered with 404.
    robots: str | None = None
    # Path prefix -> address of the site that has it: answered with 301 to the same path there.
    redirects: dict[str, str] = field(default_factory=dict)


def lay_out_sites(work: Path, corpora: Path = CORPORA) -> list[Site]:
    """Make the document roots below `work` and return the sites, one per loopback address from 127.30.0.1.

    Raises:
        FileNotFoundError: a part of the corpora is not there; run `scripts/fetch_corpora`.
    """
    parts: list[tuple[str, Path, tuple[str, ...]]] = [
        ("python", corpora / _PYTHON, ("/",)),
        ("sqlite", corpora / _SQLITE, ("/",)),
        ("postgresql", corpora / _POSTGRESQL, ("/",)),
    ]
    parts += [(f"apache-{lang}", corpora / _APACHE, (f"/{lang}/",)) for lang in _APACHE_LANGUAGES]
    parts += [(f"handbook-{lang}", corpora / _HANDBOOK / lang, ("/",)) for lang in _HANDBOOK_LANGUAGES]
    addresses = {name: f"127.30.0.{number}" for number, (name, _, _) in enumerate(parts, 1)}
    return [
        Site(
            name=name,
            address=addresses[name],
            root=_document_root(name, source, work / name),
            seeds=seeds,
            robots=_ROBOTS.get(name),
            redirects=_redirects(name, addresses),
        )
        for name, source, seeds in parts
    ]


def _document_root(name: str, source: Path, root: Path) -> Path:
    """Link the entries of `source` that belong to the site into `root`."""
    if not (source / "index.html").is_file():
        raise FileNotFoundError(f"{source}/index.html is missing; run scripts/fetch_corpora")
    root.mkdir(parents=True)
    for entry in source.iterdir():
        if _is_served(name, entry):
            (root / entry.name).symlink_to(entry.resolve())
    return root


def _is_served(name: str, entry: Path) -> bool:
    """Of the manual's languages, which are its directories with an index, a host serves its own."""
    if not name.startswith("apache-") or not (entry / "index.html").is_file():
        return True
    return entry.name == name.removeprefix("apache-")


def _redirects(name: str, addresses: dict[str, str]) -> dict[str, str]:
    if not name.startswith("apache-"):
        return {}
    others = (f"apache-{lang}" for lang in _APACHE_LANGUAGES)
    return {f"/{other.removeprefix('apache-')}/": addresses[other] for other in others if other != name}

"""Rules that drop links by their URL, before they are queued (docs/guide/filters.md).

Paths use the patterns of robots.txt rather than regular expressions, which a hostile URL can make slow.

Source: Nexplorer §2.2, §3.2.4; IRLbot §7.1 (known non-HTML extensions).
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import import_object
from bigcrawl.politeness.robots_match import ALLOW, DISALLOW, RobotsMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.config import FilterConfig

logger = logging.getLogger(__name__)

RULES: Final = ("scheme", "extension", "path", "directory-depth", "characters", "function")
NON_HTML: Final = "non-html"

# Without .com and .php, which end pages too, and .xml and .gz, which end sitemaps.
_NON_HTML: Final = (
    "7z aac aiff apk avi avif bin bmp bz2 css deb dmg doc docx eot epub exe flac flv gif ico iso jar jpeg jpg js "
    "m4a m4v mid mkv mov mp3 mp4 mpeg mpg msi odp ods odt ogg ogv otf pdf png pps ppt pptx ps psd rar rm rpm "
    "rtf svg swf tar tgz tif tiff ttf wav webm webp wma wmv woff woff2 xls xlsx xz zip zst"
)
NON_HTML_EXTENSIONS: Final = frozenset(_NON_HTML.split())
_SCHEMES: Final = ("http", "https")
_LINES_MAX: Final = 1_000
_read_line = re.compile(r"(allow|disallow)\s*:\s*([/*]\S*)", re.IGNORECASE).fullmatch
_is_extension = re.compile(r"[a-z0-9]{1,20}").fullmatch


class LinkRules:
    def __init__(self, config: FilterConfig) -> None:
        self._schemes = tuple(f"{scheme}://" for scheme in _parse_schemes(config.schemes))
        self._extensions = _parse_extensions(config.extensions)
        self._paths = RobotsMatcher(parse_paths(config.paths)) if config.paths else None
        self._directories_max = config.directories_max
        self._has_character = _character_search(config.characters)
        self._wants = filter_function(config.function)
        self._has_complained = False

    def __bool__(self) -> bool:
        rules = (self._schemes, self._extensions, self._paths, self._directories_max, self._has_character, self._wants)
        return any(rules)

    def dropping_rule(self, url: str) -> str:
        """Return the first rule that drops a canonical URL, or an empty string."""
        if self._schemes and not url.startswith(self._schemes):
            return "scheme"
        target = url[url.index("/", 8) :]
        path = target.partition("?")[0]
        if self._extensions and _extension_of(path) in self._extensions:
            return "extension"
        if self._paths is not None and not self._paths.is_allowed(target):
            return "path"
        if self._directories_max and path.count("/") - 1 > self._directories_max:
            return "directory-depth"
        if self._has_character is not None and self._has_character(target):
            return "characters"
        return "function" if self._wants is not None and not self._ask_function(url) else ""

    def _ask_function(self, url: str) -> bool:
        """Ask the project's function. URLs on which it fails are followed; the first failure is logged."""
        assert self._wants is not None
        try:
            return bool(self._wants(url))
        except Exception:
            if not self._has_complained:
                self._has_complained = True
                logger.exception("BIGCRAWL_FILTER failed for %(url)s, which is followed (reported once)", {"url": url})
            return True


def parse_paths(written: Iterable[str]) -> list[str]:
    lines = []
    for line in written:
        found = _read_line(line.strip())
        if found is None:
            raise ConfigError(
                f"BIGCRAWL_FILTER_PATHS has {line!r}; must be a line as in robots.txt, such as Disallow: /calendar/ or "
                "Allow: /*.html$"
            )
        lines.append((ALLOW if found[1].lower() == "allow" else DISALLOW) + found[2])
    if len(lines) > _LINES_MAX:
        raise ConfigError(f"BIGCRAWL_FILTER_PATHS has {len(lines):,} lines; at most {_LINES_MAX:,} are allowed")
    return lines


def filter_function(path: str | None) -> Callable[[str], bool] | None:
    """Return the function at an import path after a trial call."""
    if not path:
        return None
    function = import_object("BIGCRAWL_FILTER", path)
    try:
        found = function("http://www.example.com/")
    except Exception as error:
        raise ConfigError(f"BIGCRAWL_FILTER is {path!r}, which failed in a trial: {error!r}") from error
    if not isinstance(found, bool):
        raise ConfigError(f"BIGCRAWL_FILTER is {path!r}, which returned {found!r}; must return True to follow a URL")
    checked: Callable[[str], bool] = function
    return checked


def _parse_schemes(written: Iterable[str]) -> tuple[str, ...]:
    found = tuple(scheme.lower() for scheme in written)
    for scheme in found:
        if scheme not in _SCHEMES:
            raise ConfigError(f"BIGCRAWL_FILTER_SCHEMES has {scheme!r}; must be http or https")
    return found


def _parse_extensions(written: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for word in written:
        extension = word.lower().removeprefix(".")
        if extension == NON_HTML:
            found |= NON_HTML_EXTENSIONS
        elif _is_extension(extension):
            found.add(extension)
        else:
            raise ConfigError(
                f"BIGCRAWL_FILTER_EXTENSIONS has {word!r}; must be letters and digits, such as pdf, or {NON_HTML}, "
                "which stands for pictures, sound, video, fonts, archives, programs and documents"
            )
    return frozenset(found)


def _extension_of(path: str) -> str:
    dot = path.rfind(".")
    return path[dot + 1 :].lower() if dot > path.rfind("/") else ""


def _character_search(characters: str) -> Callable[[str], object] | None:
    if not characters:
        return None
    if any(not "!" <= character <= "~" for character in characters):
        raise ConfigError(
            f"BIGCRAWL_FILTER_CHARACTERS is {characters!r}; must be visible ASCII characters, such as ?;@, because "
            "others are escaped in a URL: % finds them"
        )
    return re.compile(f"[{re.escape(characters)}]").search

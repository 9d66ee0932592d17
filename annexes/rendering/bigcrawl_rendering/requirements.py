"""Checks the settings of rendering, and whether this machine has the necessary programs."""

from __future__ import annotations

from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.features.rendering.settings import RULES, SHIPPED
from bigcrawl_rendering.rules import PageChoice

if TYPE_CHECKING:
    from bigcrawl.features.rendering.settings import RenderConfig

CHROMIUMS: Final = ("chromium-headless-shell", "chromium", "google-chrome")
KINDS: Final = ("script", "stylesheet", "xhr", "fetch", "image", "font", "media", "frame", "post")


def check_requirements(config: RenderConfig) -> None:
    """Raise ConfigError if a setting is wrong, or a program or package is missing."""
    for kind in config.loads:
        if kind not in KINDS:
            raise ConfigError(f"BIGCRAWL_RENDER_LOADS has {kind!r}; it takes {', '.join(KINDS)}")
    if config.mode == RULES and not config.always:
        raise ConfigError(
            'BIGCRAWL_RENDER is "rules", but BIGCRAWL_RENDER_ALWAYS is empty, so nothing would be rendered; name '
            'patterns such as https://app.example/*, or set BIGCRAWL_RENDER to "auto"'
        )
    PageChoice(config.always, config.never, detects=False)
    if config.renderer != SHIPPED:
        return
    if find_spec("playwright") is None:
        raise ConfigError(
            'BIGCRAWL_RENDER needs the package playwright, which is missing: pip install "bigcrawl[render]"'
        )
    path = browser_path(config.chromium)
    if which(path) is None:
        raise ConfigError(
            f"BIGCRAWL_RENDER needs a browser, and {path} is no program; install Chromium (on Debian apt-get install "
            f"chromium-headless-shell), or name its path in BIGCRAWL_RENDER_CHROMIUM"
        )


def browser_path(named: str | None = None) -> str:
    """Return the path of the named browser, or of the first one found; its name if none is found."""
    names = (named,) if named else CHROMIUMS
    return next(filter(None, map(which, names)), names[0])

"""The settings of rendering; the annex checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from bigcrawl.config import Config

OFF, AUTO, RULES = "off", "auto", "rules"
SHIPPED: Final = "bigcrawl_rendering.chromium.ChromiumRenderer"


class RenderConfig(Group):
    """Which pages are rendered, by which renderer, and within which bounds."""

    mode: str = setting(
        "BIGCRAWL_RENDER",
        OFF,
        "Which pages a browser renders before the spider gets them: none; with `auto`, those whose text or links come "
        "from scripts, as their bytes show; with `rules`, only those of BIGCRAWL_RENDER_ALWAYS.",
        choices=(OFF, AUTO, RULES),
        alike=True,
        title="Rendering",
    )
    always: tuple[str, ...] = setting(
        "BIGCRAWL_RENDER_ALWAYS",
        [],
        "Patterns of URLs that are rendered, such as https://app.example/*, or the name of a file with one a line. `*` "
        "stands for any characters.",
        has_file=True,
    )
    never: tuple[str, ...] = setting(
        "BIGCRAWL_RENDER_NEVER",
        [],
        "Patterns of URLs that are not rendered. They go before BIGCRAWL_RENDER_ALWAYS.",
        has_file=True,
    )
    browsers: int = setting("BIGCRAWL_RENDER_BROWSERS", 1, "Browsers that a node runs at a time.", (1, 64, "browsers"))
    tabs: int = setting("BIGCRAWL_RENDER_TABS", 4, "Pages that a browser renders at a time.", (1, 64, "pages"))
    page_s: float = setting(
        "BIGCRAWL_RENDER_SECONDS", 20.0, "Time of a page in its browser, without waits for answers.", (1, 600, "s")
    )
    memory_mb: int = setting(
        "BIGCRAWL_RENDER_MEMORY", 2_000, "Memory above which a browser is killed.", (200, 1_000_000, "MB")
    )
    requests_max: int = setting(
        "BIGCRAWL_RENDER_REQUESTS", 20, "Requests of a page besides its own that are sent.", (0, 1_000, "requests")
    )
    steps_max: int = setting(
        "BIGCRAWL_RENDER_STEPS", 10, "How often a page is scrolled, and pressed for more.", (0, 1_000, "steps")
    )
    loads: tuple[str, ...] = setting(
        "BIGCRAWL_RENDER_LOADS",
        ["script", "stylesheet", "xhr", "fetch"],
        "What a page may load: script, stylesheet, xhr, fetch, image, font, media, frame; and post, for requests that "
        "are no GET. All else fails in the page.",
    )
    blocked: tuple[str, ...] = setting(
        "BIGCRAWL_RENDER_BLOCK",
        [],
        "Hosts that pages load nothing from, with their subdomains, such as those of advertisements and trackers; or "
        "the name of a file with one a line, also as a hosts file or in the form ||ads.example^.",
        has_file=True,
    )
    chromium: str | None = setting(
        "BIGCRAWL_RENDER_CHROMIUM",
        None,
        "Name or path of the browser. Unset: the first of chromium-headless-shell, which takes a fifth of the CPU, "
        "chromium and google-chrome.",
    )
    renderer: str = setting(
        "BIGCRAWL_RENDERER", SHIPPED, "Import path of a renderer, as `bigcrawl_rendering.interface.Renderer` says."
    )


CONFIG: Final = RenderConfig


def is_on(config: Config) -> bool:
    return config.feature_config(RenderConfig).mode != OFF

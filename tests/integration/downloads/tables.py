"""All rows, each once."""

from __future__ import annotations

from tests.integration.downloads import (
    table_bodies,
    table_flow,
    table_requests,
    table_routes,
    table_settings,
    table_watched,
)

CASES = (*table_flow.CASES, *table_requests.CASES, *table_bodies.CASES, *table_routes.CASES)
"""What every Scrapy project may do, with no component of its own."""

ALL = (*CASES, *table_watched.CASES)
"""With what needs the project's own middlewares and signal handlers."""

SURROUNDED = table_settings.SURROUNDED
"""For a project with other settings and in another environment."""

HANDLED = table_settings.HANDLED
"""For a project with download handlers of its own choice."""

DOCUMENTED = table_settings.DOCUMENTED
"""What docs/settings.md says is not as in Scrapy; run with bigcrawl alone."""

"""Rendering says what it lacks, and which setting is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.features.rendering.settings import RenderConfig
from bigcrawl_rendering import requirements
from bigcrawl_rendering.requirements import browser_path, check_requirements


def config_of(**given: Any) -> RenderConfig:
    return read_config({f"BIGCRAWL_{name}": value for name, value in given.items()}).feature_config(RenderConfig)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"RENDER": "rules"}, 'BIGCRAWL_RENDER is "rules", but BIGCRAWL_RENDER_ALWAYS is empty'),
        ({"RENDER": "auto", "RENDER_LOADS": ["images"]}, "BIGCRAWL_RENDER_LOADS has 'images'; it takes script"),
        (
            {"RENDER": "auto", "RENDER_NEVER": ["a.example"]},
            "BIGCRAWL_RENDER_NEVER has 'a.example'; a pattern is a URL",
        ),
        ({"RENDER": "auto", "RENDER_CHROMIUM": "/no/such"}, "/no/such is no program; install Chromium"),
    ],
)
def test_a_wrong_value_is_refused(given: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda name: name)
    with pytest.raises(ConfigError) as caught:
        check_requirements(config_of(**given))
    assert told in str(caught.value)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"which is missing: pip install \"bigcrawl\[render\]\""):
        check_requirements(config_of(RENDER="auto"))


def test_a_renderer_of_a_project_needs_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda _name: None)
    check_requirements(config_of(RENDER="auto", RENDERER="project.Renderer", RENDER_CHROMIUM="/no/such"))


def test_the_first_browser_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "CHROMIUMS", ("no-such-browser", "sh"))
    assert browser_path().endswith("/sh")
    assert browser_path("none-either") == "none-either"

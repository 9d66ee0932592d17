"""Rendering is off unless it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from bigcrawl.config import Config, read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.feature_list import modules_on
from bigcrawl.features.rendering import middlewares


def config_of(**given: Any) -> Config:
    return read_config({f"BIGCRAWL_{name}": value for name, value in given.items()})


def test_nothing_of_it_is_loaded_unless_it_is_on() -> None:
    names = {module.__name__ for module in modules_on("middlewares", config_of())}
    assert not any("rendering" in name for name in names)
    assert "bigcrawl.features.rendering.middlewares" in {
        module.__name__ for module in modules_on("middlewares", config_of(RENDER="auto"))
    }


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be one of off, auto, rules"):
        config_of(RENDER="on")


def test_an_annex_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middlewares, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match="needs bigcrawl_rendering, which is not installed: pip install bigcrawl"):
        middlewares.check(config_of(RENDER="auto"))

"""The engine is paused while there is a reason, and by whoever has paused it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from scrapy.core.engine import ExecutionEngine

from bigcrawl.pipelines.engine_pause import EnginePause


class Engine:
    """What a pause needs of Scrapy's engine."""

    paused: object = False

    def pause(self) -> None:
        self.paused = True

    def unpause(self) -> None:
        self.paused = False


def paused_by() -> tuple[Any, EnginePause]:
    engine: Any = Engine()
    crawler: Any = SimpleNamespace(engine=engine)
    return engine, EnginePause(crawler)


def test_it_goes_on_when_the_last_reason_is_gone() -> None:
    """Each counts once, however often it is named; one that was not there changes nothing."""
    engine, pause = paused_by()
    pause.resume_for("a")
    assert not engine.paused
    for reason in ("a", "b", "a"):
        pause.pause_for(reason)
    pause.resume_for("a")
    assert engine.paused
    pause.resume_for("b")
    assert not engine.paused
    pause.pause_for("a")
    assert engine.paused


def test_a_pause_by_the_operator_stays() -> None:
    """It began before, so it does not end with the reason."""
    engine, pause = paused_by()
    engine.pause()
    pause.pause_for("a")
    pause.resume_for("a")
    assert engine.paused
    engine.unpause()
    pause.pause_for("a")
    pause.resume_for("a")
    assert not engine.paused


def test_a_second_reason_pauses_an_engine_that_the_operator_let_go_on() -> None:
    """The first one is still there, but the operator has overruled that one only."""
    engine, pause = paused_by()
    pause.pause_for("a")
    engine.unpause()
    pause.pause_for("b")
    assert engine.paused
    pause.resume_for("b")
    assert engine.paused
    pause.resume_for("a")
    assert not engine.paused


def test_a_pause_by_the_operator_that_begins_during_ours_stays() -> None:
    """Whatever reasons come and go, until the operator ends it."""
    engine, pause = paused_by()
    pause.pause_for("a")
    engine.pause()
    pause.pause_for("b")
    pause.resume_for("a")
    pause.resume_for("b")
    assert engine.paused is True
    engine.unpause()
    pause.pause_for("a")
    assert engine.paused
    pause.resume_for("a")
    assert not engine.paused


def test_scrapys_engine_keeps_its_flag_as_it_is_set() -> None:
    """So that a pause of ours is told from one by somebody else."""
    engine: Any = ExecutionEngine.__new__(ExecutionEngine)
    engine.paused = False
    pause = EnginePause(cast("Any", SimpleNamespace(engine=engine)))
    pause.pause_for("a")
    assert engine.paused
    assert engine.paused is not True
    engine.pause()
    pause.resume_for("a")
    assert engine.paused is True

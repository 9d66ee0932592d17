"""The sampler accounts for the CPU of all threads, by the stacks they worked in."""

from __future__ import annotations

import gc
import threading
import time
import weakref

from benchmarks.crawl.profiler import Sampler

WORK_S = 0.15  # of CPU: some ten samples, at the slowest tick there is


def work(clock: int) -> int:
    """Use the calling thread's CPU for a while."""
    done = 0
    end_ns = time.clock_gettime_ns(clock) + int(WORK_S * 1e9)
    while time.clock_gettime_ns(clock) < end_ns:
        done += 1
    return done


def share_of(stacks: dict, name: str) -> float:
    return sum(ns for stack, ns in stacks.items() if any(code.co_name == name for code in stack)) / 1e9


def test_work_of_main_and_other_threads_is_accounted_to_its_stack() -> None:
    sampler = Sampler()
    sampler.start()
    other = threading.Thread(target=work, args=(time.CLOCK_THREAD_CPUTIME_ID,))
    other.start()
    work(time.CLOCK_THREAD_CPUTIME_ID)
    other.join()
    sampler.stop()
    told = sampler.as_profile(1)
    assert share_of(sampler.main, "work") >= WORK_S / 2
    assert share_of(sampler.others, "work") >= WORK_S / 4
    assert told["main_ns"] <= told["process_ns"]
    assert sum(ns for _, ns in told["main"]) + told["gc_ns"] <= told["main_ns"]


def test_samples_keep_no_object_of_the_sampled_code() -> None:
    kept: list[weakref.ref[threading.Event]] = []

    def work_with_object() -> None:
        held = threading.Event()
        kept.append(weakref.ref(held))
        work(time.CLOCK_THREAD_CPUTIME_ID)

    sampler = Sampler()
    gc.disable()
    try:
        sampler.start()
        work_with_object()
        sampler.stop()
        assert share_of(sampler.main, "work_with_object") > 0
        assert kept[0]() is None
    finally:
        gc.enable()


def test_the_collectors_time_is_apart() -> None:
    rings = [[number] for number in range(300_000)]
    for ring in rings:
        ring.append(ring)  # type: ignore[arg-type]
    sampler = Sampler()
    sampler.start()
    started_ns = time.thread_time_ns()
    gc.collect()
    collected_ns = time.thread_time_ns() - started_ns
    sampler.stop()
    assert collected_ns / 2 <= sampler.gc_ns <= collected_ns
    assert sampler._record_gc not in gc.callbacks

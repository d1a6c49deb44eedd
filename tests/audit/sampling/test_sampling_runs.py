"""What follows from the seed, on however many workers; progress; what the audit leaves alone."""

import multiprocessing
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from tests.audit.sampling.shared_generator import seed_shared, shared_uniform

import targetcharge as tc
from targetcharge.audit import black_box
from targetcharge.audit.sampling.runs import PredictableEntropy, collect
from targetcharge.audit.sampling.subject import Subject
from targetcharge.mechanisms import noisy_count

TEN, NINE = ["row"] * 10, ["row"] * 9
COUNT = noisy_count(len, 1.0)
SHARED = {
    "random": lambda rows: len(rows) + random.random(),
    "numpy": lambda rows: len(rows) + shared_uniform(),
}


def test_the_seed_decides_everything_whatever_the_workers():
    verdicts = [black_box(COUNT, TEN, NINE, runs=2_000, seed=3, workers=workers) for workers in (1, 2, 3)]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert black_box(COUNT, TEN, NINE, runs=2_000, seed=4, workers=1) != verdicts[0]


@pytest.mark.parametrize("name", SHARED)
def test_generators_that_code_shares_are_seeded_too(name):
    claim = tc.Budget(1.0, 0.0)
    one, other = (
        black_box(SHARED[name], TEN, NINE, claim, runs=400, seed=3, workers=workers) for workers in (1, 2)
    )
    assert one == other


@pytest.mark.parametrize("name", SHARED)
def test_the_callers_generators_are_left_as_they_were(name):
    random.seed(1)
    seed_shared(1)
    expected = SHARED[name]([])
    random.seed(1)
    seed_shared(1)
    black_box(COUNT, TEN, NINE, runs=400, workers=1)
    assert SHARED[name]([]) == expected


def test_every_run_is_counted_once():
    samples = collect(Subject.of(COUNT), (TEN, NINE), runs=1_003, seed=1, workers=2)
    assert [[samples[part][index].total() for part in range(3)] for index in (0, 1)] == [[250, 250, 503]] * 2


def test_progress_is_told():
    told = []
    black_box(COUNT, TEN, NINE, runs=1_000, workers=1, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2_000, 2_000)
    assert told == sorted(told)


SLOW_TO_CLOSE = """
import sys, time
from concurrent.futures import process
from targetcharge.audit import black_box
from targetcharge.mechanisms import noisy_count

close, wakeup = process._ThreadWakeup.close, process._ThreadWakeup.wakeup

def slow_close(self):
    time.sleep(0.3)
    close(self)

def slow_wakeup(self):
    if not self._closed:
        time.sleep(0.6 if process._global_shutdown else 0)
        self._writer.send_bytes(b"")

process._ThreadWakeup.close, process._ThreadWakeup.wakeup = slow_close, slow_wakeup
assert black_box(noisy_count(len, 1.0), ["a", "b"], ["a"], runs=200, workers=2).passed
"""


def test_no_pool_is_left_that_python_would_wake_while_it_closes():
    """Else, now and then: Exception ignored in ... OSError: [Errno 9] Bad file descriptor."""
    done = subprocess.run([sys.executable, "-c", SLOW_TO_CLOSE], capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert (done.returncode, done.stderr) == (0, "")


def test_an_audit_that_is_interrupted_leaves_no_worker_behind():
    def interrupt(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        black_box(COUNT, TEN, NINE, runs=2_000, workers=2, progress=interrupt)
    assert multiprocessing.active_children() == []


def test_workers_that_repeat_each_other_are_found_out():
    """A generator of the code's own is copied into every worker: half the runs would be copies of the others."""
    own = np.random.default_rng(7)

    def noisy(rows):
        return len(rows) + round(own.laplace() * 64)

    with pytest.raises(tc.InvalidParameter, match="workers is 2; it must be 1"):
        black_box(noisy, TEN, NINE, tc.Budget(1.0, 0.0), runs=4_000, workers=2)
    assert black_box(noisy, TEN, NINE, tc.Budget(1.0, 0.0), runs=4_000, workers=1).passed


def test_rare_outcomes_do_not_make_workers_look_alike():
    def rare(rows):
        return shared_uniform() < 0.001 * len(rows)

    assert black_box(rare, TEN, NINE, tc.Budget(1.0, 0.0), runs=2_000, workers=2).passed


def test_a_worker_that_dies_is_told():
    def dies(_rows):
        os._exit(1)

    with pytest.raises(tc.InvalidParameter, match="able to finish"):
        black_box(dies, TEN, NINE, tc.Budget(1.0, 0.0), runs=1_000, workers=2)


def test_predictable_entropy_repeats_itself_and_is_even():
    one, other = PredictableEntropy(5), PredictableEntropy(5)
    words = [one.word() for _ in range(2_000)]
    assert words == [other.word() for _ in range(2_000)]
    assert len(set(words)) == 2_000
    assert abs(sum(word >> 63 for word in words) - 1_000) < 200

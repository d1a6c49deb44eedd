import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.randomness.sources import SeededEntropy

from targetcharge.errors import NotAllowed
from targetcharge.randomness import SystemEntropy, below
from targetcharge.randomness.entropy import below_array


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 20, 100])
def test_below_is_uniform(bound):
    entropy = SeededEntropy(1)
    counts = np.bincount([below(entropy, bound) for _ in range(40_000)], minlength=bound)
    assert len(counts) == bound
    assert bound == 1 or chisquare(counts).pvalue > 1e-9


@pytest.mark.parametrize("bound", [2**63 + 1, 2**64, 2**64 + 1, 3 * 2**100, 2**200])
def test_below_large_bounds(bound):
    entropy = SeededEntropy(2)
    values = [below(entropy, bound) for _ in range(4000)]
    assert 0 <= min(values) < max(values) < bound
    counts = np.bincount([value * 10 // bound for value in values], minlength=10)
    assert chisquare(counts).pvalue > 1e-9
    assert len({value & 1 for value in values}) == 2


def test_below_array_is_uniform_for_each_bound():
    bounds = np.repeat(np.array([1, 2, 3, 5, 2**40 + 1], dtype=np.uint64), 30_000)
    values = below_array(SeededEntropy(3), bounds)
    assert (values < bounds).all()
    for bound in (2, 3, 5):
        assert chisquare(np.bincount(values[bounds == bound].astype(int), minlength=bound)).pvalue > 1e-9
    top = values[bounds > 100].astype(float) / 2**40
    assert chisquare(np.histogram(top, bins=16, range=(0, 1))[0]).pvalue > 1e-9


def test_power_a_biased_source_is_seen():
    """Without rejection `word % 3·2^62` favours small values by a third: the same test must fail."""
    entropy = SeededEntropy(4)
    counts = np.bincount([entropy.word() % (3 << 62) >> 62 for _ in range(40_000)], minlength=3)
    assert chisquare(counts).pvalue < 1e-9


FORK = """
import os
from targetcharge.randomness import SystemEntropy

entropy = SystemEntropy()
entropy.word()
child = os.fork()
words = [entropy.word() for _ in range(100)]
if child:
    os.waitpid(child, 0)
print(*words, flush=True)
"""


def test_a_fork_never_repeats_bits():
    """In a process of its own: the test runner has threads, which a fork would lose."""
    result = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    theirs, ours = (line.split() for line in result.stdout.splitlines())
    assert len(theirs) == len(ours) == 100
    assert not set(theirs) & set(ours)


def test_threads_never_share_bits():
    entropy = SystemEntropy()
    entropy.word()
    found = []

    def draw():
        words = [entropy.word() for _ in range(2000)]
        found.append(words)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [word for part in found for word in part]
    assert len(words) == len(set(words)) == 8000


def test_words_are_fresh():
    entropy = SystemEntropy()
    assert len(set(entropy.words(1000).tolist()) | set(entropy.words(1000).tolist())) == 2000
    assert entropy.words(0).shape == (0,)


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_source_cannot_be_duplicated(duplicate):
    with pytest.raises(NotAllowed, match="cannot be pickled or copied"):
        duplicate(SystemEntropy())


def test_a_fork_in_the_middle_of_a_refill_repeats_nothing(monkeypatch):
    source, urandom, pipe = SystemEntropy(), os.urandom, os.pipe()
    children = []

    def forking(size):
        words = urandom(size)
        monkeypatch.setattr(os, "urandom", urandom)
        children.append(os.fork())  # as a signal handler might, right after the bits were read
        return words

    monkeypatch.setattr(os, "urandom", forking)
    word = source.word()
    if not children[0]:
        os.write(pipe[1], word.to_bytes(8, "big"))
        os._exit(0)
    os.waitpid(children[0], 0)
    assert int.from_bytes(os.read(pipe[0], 8), "big") != word

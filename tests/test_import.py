"""Importing the library is quick and draws nothing; `reproducible` does what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import transformer_lib
from transformer_lib import reproducible

ROOT = Path(__file__).resolve().parents[1]


def python(code, *options):
    """Run code in a Python of its own, and give what it printed, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


NOT_SHOW = ", ".join(
    f"transformer_lib{module}"
    for module in ("", ".text", ".models", ".training", ".evaluation", ".decoding", ".parts.recurrent")
)


def test_only_show_loads_what_draws():
    out, _ = python(
        f"import sys, {NOT_SHOW}; print([m for m in ('matplotlib', 'ipywidgets', 'IPython') if m in sys.modules])"
    )
    assert out.strip() == "[]"


def test_show_does_load_what_draws():
    """Or the test above could not fail."""
    out, _ = python("import sys, transformer_lib.show; print('matplotlib' in sys.modules, 'ipywidgets' in sys.modules)")
    assert out.strip() == "True True"


def seconds_beyond_torch(module):
    """What an import adds once torch is loaded, in seconds of processor time."""
    code = f"import torch, time; begin = time.process_time(); import {module}; print(time.process_time() - begin)"
    return float(python(code)[0])


@pytest.mark.parametrize("module", ["transformer_lib", NOT_SHOW])
def test_the_library_adds_at_most_0_3_seconds_to_importing_torch(module):
    """One good measurement of three is enough: others may be at work beside us."""
    assert any(seconds_beyond_torch(module) < 0.3 for _ in range(3))


def test_reproducible_sets_one_thread_float64_and_both_seeds():
    threads = torch.get_num_threads()
    try:
        first = reproducible(3)
        assert torch.get_num_threads() == 1 and torch.get_default_dtype() == torch.float64
        assert isinstance(first, torch.Generator) and first is not torch.default_generator
        drawn, drawn_by_torch = torch.rand(3, generator=first), torch.rand(3)
        assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(3)))
        second = reproducible(3)
        assert torch.equal(torch.rand(3), drawn_by_torch) and torch.equal(torch.rand(3, generator=second), drawn)
        reproducible(4)
        assert not torch.equal(torch.rand(3), drawn_by_torch)
    finally:
        torch.set_num_threads(threads)


def test_the_environment_may_ask_for_more_threads(monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setenv("TRANSFORMER_LIB_THREADS", "2")
    try:
        reproducible(0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_the_top_level_names_are_the_promised_ones():
    assert transformer_lib.__all__ == ["reproducible"]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("text", "CharTokenizer WordTokenizer load_corpus"),
        ("protocols", "LanguageModel"),
        ("models", "NGramModel RecurrentLanguageModel load_trained"),
        ("parts.recurrent", "RNNCell LSTMCell GRUCell unroll"),
        ("training", "fit windows save_checkpoint load_checkpoint"),
        ("evaluation", "sentence_log_prob perplexity bits_per_token"),
        ("decoding", "generate"),
        ("show", "show heatmap explore listing quiz check verdict"),
    ],
)
def test_public_names_stay_where_readers_notebooks_look_for_them(module, names):
    import importlib

    found = importlib.import_module(f"transformer_lib.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_notebooks_find_the_library_and_the_recipes_wherever_they_are_run(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", "import transformer_lib, recipes.agreement_task"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

"""A model of limited context on a text of any length: the same however it is cut, and never more than the window.

Chapter 13.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.one_line import one_line_error
from tests.parts.pytorchs import shake
from transformer_lib.decoding import generate
from transformer_lib.evaluation import bits_per_token
from transformer_lib.models import GPT, NGramModel, RecurrentLanguageModel, Windowed
from transformer_lib.protocols import LanguageModel


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def gpt(longest=8, **named):
    torch.manual_seed(0)
    return shake(GPT(11, longest, 8, 2, 2, **named).double().eval())


class Noting(LanguageModel):
    """What was read before each token that it is asked about; its state is just that."""

    vocab_size = 1000

    def __init__(self):
        self.contexts = []

    def step(self, ids, state=()):
        read = [*(state or ()), *ids.tolist()]
        self.contexts.append((len(state or ()), read))
        return torch.zeros(len(ids), self.vocab_size), tuple(read)


def contexts_by_hand(n, window):
    """For each token of 0, 1, 2, ...: where what the model has read by then begins."""
    start, starts = 0, []
    for t in range(n):
        if t - start == window:
            start = t - window // 2
        starts.append(start)
    return starts


@settings(max_examples=20)
@given(
    window=st.integers(2, 8), cuts=st.lists(st.integers(1, 12), min_size=1, max_size=5), seed=st.integers(0, 2**31),
    batch=st.sampled_from([(), (1,), (3,)]),
)  # fmt: skip
def test_however_the_text_is_cut_it_is_the_direct_computation(window, cuts, seed, batch):
    model, n = gpt(), sum(cuts)
    windowed = Windowed(model, window)
    ids = torch.randint(11, (*batch, n), generator=torch.Generator().manual_seed(seed))
    expected = torch.stack(
        [model.log_probs(ids[..., start : t + 1])[..., -1, :] for t, start in enumerate(contexts_by_hand(n, window))],
        dim=-2,
    )
    torch.testing.assert_close(windowed.log_probs(ids), expected)
    state, parts = None, []
    for piece in ids.split(cuts, dim=-1):
        log_probs, after = windowed.step(piece, state)
        assert torch.equal(windowed.step(piece, state)[0], log_probs)  # the state it was given is as it was
        parts.append(log_probs)
        state = after
    torch.testing.assert_close(torch.cat(parts, dim=-2), expected)


@given(window=st.integers(2, 9), cuts=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_never_more_than_the_window_and_never_less_than_half_of_it(window, cuts):
    inner = Noting()
    windowed, state, n = Windowed(inner, window), None, sum(cuts)
    for piece in torch.arange(n).split(cuts):
        _, state = windowed.step(piece, state)
    begun = {}  # of each token, where the text begins that the model has read once it comes to that token
    for before, read in inner.contexts:
        assert read == list(range(read[0], read[-1] + 1)) and len(read) <= window
        for token in read[before:]:
            begun[token] = read[0] if token not in begun or before > 0 else begun[token]
    assert sorted(begun) == list(range(n))
    assert [begun[t] for t in range(n)] == contexts_by_hand(n, window)
    assert all(begun[t] == 0 or window // 2 <= t - begun[t] < window for t in range(n))


def test_by_hand():
    inner = Noting()
    Windowed(inner, 5).log_probs(torch.arange(9))
    assert inner.contexts == [
        (0, [0, 1, 2, 3, 4]),
        (0, [3, 4]), (2, [3, 4, 5, 6, 7]),
        (0, [6, 7]), (2, [6, 7, 8]),
    ]  # fmt: skip


@pytest.mark.parametrize("window", [7, 8])
def test_it_writes_beyond_the_models_longest_and_measures_what_is_longer(window):
    model = gpt()
    with one_line_error("positions: learned for 8 tokens, got 9"):
        generate(model, [1, 2], 30, temperature=0)
    ids = generate(Windowed(model, window), [1, 2], 30, temperature=0)
    assert len(ids) == 32
    starts = contexts_by_hand(31, window)
    for t in range(1, 31):
        assert ids[t + 1] == int(model.log_probs(torch.tensor(ids[starts[t] : t + 1]))[-1].argmax())
    log_probs = Windowed(model, window).log_probs(torch.tensor(ids))
    expected = -log_probs[:-1].gather(1, torch.tensor(ids[1:])[:, None]).mean() / torch.tensor(2.0).log()
    assert bits_per_token(Windowed(model, window), torch.tensor(ids)) == pytest.approx(float(expected.detach()))


def test_a_text_within_the_window_is_as_without_it():
    model, ids = gpt(), torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1]])
    assert torch.equal(Windowed(model, 8).log_probs(ids), model.log_probs(ids))
    assert Windowed(model, 8).vocab_size == 11
    assert not torch.allclose(Windowed(model, 6).log_probs(ids)[:, -1], model.log_probs(ids)[:, -1])


@pytest.mark.parametrize("kind", ["n-gram", "recurrent"])
def test_for_every_kind_of_model(kind):
    torch.manual_seed(0)
    ids = torch.randint(11, (30,))
    model = NGramModel(3, 11).fit(ids) if kind == "n-gram" else RecurrentLanguageModel(11, 4, 5).eval()
    whole, limited = model.log_probs(ids), Windowed(model, 4).log_probs(ids)
    assert torch.allclose(whole, limited) == (kind == "n-gram")  # which looks back two tokens and no further


@pytest.mark.parametrize("window", [1, 0, -3])
def test_a_window_of_less_than_two_is_refused(window):
    with one_line_error("window: expected at least 2 tokens", f"got {window}"):
        Windowed(gpt(), window)


def test_ids_and_windows_that_cannot_be_are_refused():
    model = Windowed(gpt(), 8)
    for ids, words in [
        ([], "ids: expected at least one token, got none"),
        ([[], []], "ids: expected at least one token, got none"),
        ([11], "ids: expected ids from 0 to 10, got 11"),
        ([[[1]]], "ids: expected shape (n,) or (batch, n)"),
    ]:
        with one_line_error(words):
            model.log_probs(torch.tensor(ids))
    with one_line_error("positions: learned for 8 tokens, got 9"):
        Windowed(gpt(), 9).log_probs(torch.ones(10).long())
    _, state = model.step(torch.tensor([[1, 2], [3, 4]]))
    with one_line_error("cache: expected more tokens for what is kept"):
        model.step(torch.tensor([[1]]), state)

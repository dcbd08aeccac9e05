"""The recurrent language model: distributions, states, causality, dropout.

Chapters 02 and 03.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.one_line import one_line_error
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell, unroll

CELLS = [RNNCell, LSTMCell, GRUCell]
each_cell = pytest.mark.parametrize("cell", CELLS)


def model_of(cell=LSTMCell, layers=1, dropout=0.0, vocab_size=7, d_x=3, d_h=5, seed=0):
    torch.manual_seed(seed)
    return RecurrentLanguageModel(vocab_size, d_x, d_h, cell, layers, dropout).double()


def tensors_of(state):
    return [t for layer in state for t in (layer if isinstance(layer, tuple) else (layer,))]


@given(st.sampled_from(CELLS), st.integers(1, 3), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.data())
def test_distributions_sum_to_one_and_pieces_equal_the_whole(cell, layers, vocab_size, d_x, d_h, data):
    model = model_of(cell, layers, vocab_size=vocab_size, d_x=d_x, d_h=d_h)
    n = data.draw(st.integers(2, 6))
    ids = torch.tensor(data.draw(st.lists(st.integers(0, vocab_size - 1), min_size=2 * n, max_size=2 * n))).view(2, n)
    log_probs = model.log_probs(ids)
    assert log_probs.shape == (2, n, vocab_size)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(2, n).double(), rtol=0, atol=1e-12)

    cut = data.draw(st.integers(1, n - 1))
    first, state = model.step(ids[:, :cut])
    second, end = model.step(ids[:, cut:], state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), log_probs, rtol=0, atol=1e-12)
    assert len(state) == len(end) == layers
    torch.testing.assert_close(model.next_token_log_probs(ids), log_probs[:, -1], rtol=0, atol=0)
    scores, after = model.score(ids[:, :-1], ids[:, 1:])
    torch.testing.assert_close(scores, log_probs[:, :-1].gather(-1, ids[:, 1:, None])[..., 0], rtol=0, atol=1e-12)
    going_on, _ = model.step(ids[:, -1:], after)
    torch.testing.assert_close(going_on[:, 0], log_probs[:, -1], rtol=0, atol=1e-12)


@each_cell
@pytest.mark.parametrize("layers", [1, 2])
def test_the_model_is_embedding_cells_linear_softmax(cell, layers):
    model = model_of(cell, layers)
    ids = torch.tensor([[0, 6, 3], [2, 2, 5]])
    H = model.embedding.weight[ids]
    for one in model.cells:
        H, _ = unroll(one, H)
    expected = torch.log_softmax(H @ model.output.weight.T + model.output.bias, dim=-1)
    torch.testing.assert_close(model.log_probs(ids), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.hidden_states(ids)[0], H, rtol=0, atol=1e-12)


@each_cell
def test_one_text_equals_a_batch_of_one(cell):
    model = model_of(cell, layers=2)
    ids = torch.tensor([1, 5, 0, 2])
    log_probs, state = model.step(ids)
    assert log_probs.shape == (4, 7)
    torch.testing.assert_close(log_probs, model.log_probs(ids[None])[0], rtol=0, atol=1e-12)
    assert all(t.shape == (5,) for t in tensors_of(state))


@each_cell
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_later_token_changes_no_earlier_output(cell, training, layers):
    model = model_of(cell, layers).train(training)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5], [6, 5, 4, 3, 2, 1]])
    before = model.log_probs(ids)
    for place in range(1, 6):
        changed = ids.clone()
        changed[:, place] = (changed[:, place] + 1) % 7
        after = model.log_probs(changed)
        assert torch.equal(after[:, :place], before[:, :place])
        assert (after[:, place:] != before[:, place:]).any(-1).all()


@each_cell
def test_rows_of_a_batch_do_not_touch_one_another(cell):
    model = model_of(cell, layers=2)
    ids = torch.tensor([[0, 1, 2, 3], [6, 5, 4, 3], [1, 1, 1, 1]])
    log_probs, state = model.step(ids)
    for row in range(3):
        alone, state_alone = model.step(ids[row])
        torch.testing.assert_close(log_probs[row], alone, rtol=0, atol=1e-12)
        for together, single in zip(tensors_of(state), tensors_of(state_alone), strict=True):
            torch.testing.assert_close(together[row], single, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_every_layer_is_a_cell_of_its_own(layers):
    model = model_of(GRUCell, layers)
    assert len(model.cells) == layers and len({id(cell) for cell in model.cells}) == layers
    assert [(cell.d_x, cell.d_h) for cell in model.cells] == [(3, 5), (5, 5), (5, 5)][:layers]
    ids = torch.tensor([0, 1])
    before = model.log_probs(ids)
    for cell in model.cells:
        with torch.no_grad():
            cell.b.add_(0.1)
        after = model.log_probs(ids)
        assert not torch.equal(after, before)
        before = after


@each_cell
def test_a_state_is_h_or_h_and_c(cell):
    _, state = model_of(cell, layers=2).step(torch.tensor([[0, 1], [2, 3]]))
    assert isinstance(state, list) and len(state) == 2
    assert len(tensors_of(state)) == (4 if cell is LSTMCell else 2)
    assert all(t.shape == (2, 5) for t in tensors_of(state))


@each_cell
def test_reading_leaves_the_given_state_as_it_was(cell):
    model = model_of(cell, layers=2)
    _, state = model.step(torch.tensor([0, 1, 2]))
    copies = [t.clone() for t in tensors_of(state)]
    ids = torch.tensor([3, 4])
    first = model.step(ids, state)[0]
    assert torch.equal(model.step(ids, state)[0], first)
    assert all(torch.equal(t, copy) for t, copy in zip(tensors_of(state), copies, strict=True))
    assert ids.tolist() == [3, 4] and len(state) == 2


def test_dropout_is_for_training_only():
    model = model_of(LSTMCell, layers=2, dropout=0.5)
    ids = torch.tensor([[0, 1, 2, 3]])
    model.train()
    assert not torch.equal(model.log_probs(ids), model.log_probs(ids))
    model.eval()
    assert torch.equal(model.log_probs(ids), model.log_probs(ids))
    assert torch.equal(model.log_probs(ids), model_of(LSTMCell, layers=2, dropout=0.0).log_probs(ids))


def test_dropout_sets_its_share_of_the_last_layers_output_to_0():
    model = model_of(GRUCell, dropout=0.25, d_h=50).train()
    H, _ = model.hidden_states(torch.zeros(20, 30, dtype=torch.long))
    assert abs(float((H == 0).double().mean()) - 0.25) < 0.01


def test_dropout_meets_the_embedding_too():
    torch.manual_seed(0)
    model = RecurrentLanguageModel(3, 40, 4, RNNCell, dropout=0.5).double().train()
    with torch.no_grad():
        model.embedding.weight.fill_(1.0)
    inputs = []
    model.cells[0].project = lambda X: inputs.append(X) or RNNCell.project(model.cells[0], X)
    model.log_probs(torch.zeros(5, 6, dtype=torch.long))
    assert sorted(set(inputs[0].detach().flatten().tolist())) == [0.0, 2.0]


def test_dropout_of_everything_leaves_the_bias():
    model = model_of(dropout=1.0).train()
    log_probs = model.log_probs(torch.tensor([[0, 1]]))
    expected = torch.log_softmax(model.output.bias, dim=-1)
    torch.testing.assert_close(log_probs[0], torch.stack([expected, expected]), rtol=0, atol=1e-12)


def test_gradients_reach_every_weight():
    model = model_of(LSTMCell, layers=2)
    ids = torch.arange(7)[None]
    model.score(ids[:, :-1], ids[:, 1:])[0].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_the_defaults_are_one_lstm_layer_without_dropout():
    model = RecurrentLanguageModel(7, 3, 5)
    assert len(model.cells) == 1 and isinstance(model.cells[0], LSTMCell)
    assert model.dropout.p == 0.0 and model.vocab_size == 7
    assert model.embedding.weight.shape == (7, 3) and model.output.weight.shape == (7, 5)


def test_the_number_of_weights_by_hand():
    """V d_x + 4 (d_h d_x + d_h d_h + d_h) + V d_h + V."""
    model = RecurrentLanguageModel(7, 3, 5)
    assert sum(p.numel() for p in model.parameters()) == 7 * 3 + 4 * (5 * 3 + 5 * 5 + 5) + 7 * 5 + 7


def test_a_cell_may_be_any_function_of_d_x_and_d_h():
    model = RecurrentLanguageModel(7, 3, 5, cell=lambda d_x, d_h: RNNCell(d_x, d_h, f=torch.relu))
    assert (model.hidden_states(torch.arange(7))[0] >= 0).all()


def test_an_untrained_model_is_nearly_uniform():
    log_probs = model_of(vocab_size=50, d_h=30, d_x=10).log_probs(torch.arange(50)[None])
    assert float(-log_probs.detach().mean()) == pytest.approx(math.log(50), abs=0.2)


# ---- bad input


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((0, 3, 5), "vocab_size: expected at least 1, got 0"),
        ((-2, 3, 5), "vocab_size: expected at least 1, got -2"),
        ((7, 0, 5), "d_x=0"),
        ((7, -1, 5), "d_x=-1"),
        ((7, 3, 0), "d_h=0"),
        ((7, 3, -4), "d_h=-4"),
    ],
)
def test_sizes_below_one_are_refused(sizes, words):
    with one_line_error(words):
        RecurrentLanguageModel(*sizes)


@pytest.mark.parametrize("layers", [0, -1])
def test_no_layers_are_refused(layers):
    with one_line_error("layers: expected at least 1", f"got {layers}"):
        RecurrentLanguageModel(7, 3, 5, layers=layers)


@pytest.mark.parametrize("dropout", [-0.1, 1.1])
def test_a_dropout_outside_0_and_1_is_refused(dropout):
    with one_line_error("between 0 and 1"):
        RecurrentLanguageModel(7, 3, 5, dropout=dropout)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([0, 7], "ids: expected ids from 0 to 6, got 7"),
        ([-1, 0], "ids: expected ids from 0 to 6, got -1"),
        ([0.0, 1.0], "ids: expected whole numbers"),
        ([[[0]]], "ids: expected shape (n,) or (batch, n), got (1, 1, 1)"),
        (3, "ids: expected shape (n,) or (batch, n), got ()"),
    ],
)
def test_what_are_no_ids_is_refused(ids, words):
    with one_line_error(words):
        model_of().step(torch.tensor(ids))


def test_an_empty_prefix_is_refused():
    for shape in ((0,), (2, 0)):
        with one_line_error("at least one token, got none"):
            model_of().step(torch.zeros(shape, dtype=torch.long))
        with one_line_error("at least one token, got none"):
            model_of().next_token_log_probs(torch.zeros(shape, dtype=torch.long))


@each_cell
def test_a_state_of_another_model_or_batch_is_refused(cell):
    model, ids = model_of(cell, layers=2), torch.tensor([[0, 1], [2, 3]])
    _, state = model.step(ids)
    with one_line_error("state: expected one for each of the 2 layers, got 1"):
        model.step(ids, state[:1])
    with one_line_error("state: expected one for each of the 2 layers, got 0"):
        model.step(ids, [])
    with one_line_error("state: expected shape", "(3, 5)", "(2, 5)"):
        model.step(torch.zeros(3, 2, dtype=torch.long), state)
    _, wider = model_of(cell, layers=2, d_h=6).step(ids)
    with one_line_error("state: expected shape", "(2, 5)", "(2, 6)"):
        model.step(ids, wider)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 4)])
def test_targets_of_another_shape_are_refused(shape):
    with one_line_error("targets: expected the shape of ids (2, 3)", f"got {shape}"):
        model_of().score(torch.zeros(2, 3, dtype=torch.long), torch.zeros(shape, dtype=torch.long))


@pytest.mark.parametrize("target", [7, -1])
def test_targets_outside_the_vocabulary_are_refused(target):
    with one_line_error("targets: expected ids from 0 to 6", f"got {target}"):
        model_of().score(torch.tensor([0]), torch.tensor([target]))


def test_the_model_is_a_module_and_a_language_model():
    from transformer_lib.protocols import LanguageModel

    assert isinstance(model_of(), nn.Module) and isinstance(model_of(), LanguageModel)

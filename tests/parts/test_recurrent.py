"""The recurrent cells against PyTorch's own, values and gradients, and `unroll` against its recurrent layers.

Chapters 02 and 03.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.one_line import SHAPES_CHECKED, one_line_error
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell, hidden, unroll

CELLS = {RNNCell: nn.RNNCell, LSTMCell: nn.LSTMCell, GRUCell: nn.GRUCell}
LAYERS = {RNNCell: nn.RNN, LSTMCell: nn.LSTM, GRUCell: nn.GRU}
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}

cells = st.sampled_from(list(CELLS))
dtypes = st.sampled_from(list(TOLERANCE))
widths = st.integers(1, 7)
seeds = st.integers(0, 2**31)
batches = st.one_of(st.just(()), st.tuples(st.integers(1, 4)))
each_cell = pytest.mark.parametrize("cell_class", list(CELLS))


def close(got: torch.Tensor, expected: torch.Tensor, tolerance: float | None = None) -> None:
    """Equal to the tolerance of the number format, relative to the largest value where that is above 1."""
    assert got.shape == expected.shape and got.dtype == expected.dtype
    tolerance = tolerance or TOLERANCE[got.dtype]
    got, expected = got.detach(), expected.detach()
    assert (got - expected).abs().max() <= tolerance * max(1.0, float(expected.abs().max()))


def copy_weights(cell: nn.Module, theirs: dict[str, torch.Tensor]) -> None:
    """PyTorch's weights into ours: its two biases are one here, but for the candidate of the GRU, inside the reset."""
    b_x, b_h = theirs["bias_ih"], theirs["bias_hh"]
    with torch.no_grad():
        cell.W_x.copy_(theirs["weight_ih"])
        cell.W_h.copy_(theirs["weight_hh"])
        if isinstance(cell, GRUCell):
            gates = 2 * cell.d_h
            cell.b.copy_(torch.cat([b_x[:gates] + b_h[:gates], b_x[gates:]]))
            cell.b_h.copy_(b_h[gates:])
        else:
            cell.b.copy_(b_x + b_h)


def same_gradients(cell: nn.Module, theirs: dict[str, torch.Tensor]) -> None:
    close(cell.W_x.grad, theirs["weight_ih"].grad)
    close(cell.W_h.grad, theirs["weight_hh"].grad)
    close(cell.b.grad, theirs["bias_ih"].grad)
    if isinstance(cell, GRUCell):
        close(cell.b_h.grad, theirs["bias_hh"].grad[2 * cell.d_h :])
    else:
        close(cell.b.grad, theirs["bias_hh"].grad)


def by_name(module: nn.Module) -> dict[str, torch.Tensor]:
    """A layer of PyTorch names its weights weight_ih_l0, a cell weight_ih."""
    return {name.removesuffix("_l0"): parameter for name, parameter in module.named_parameters()}


def random_state(cell_class: type, shape: tuple[int, ...], dtype: torch.dtype):
    parts = [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(2 if cell_class is LSTMCell else 1)]
    return tuple(parts) if cell_class is LSTMCell else parts[0]


def parts_of(state) -> list[torch.Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def twin(state):
    """The same numbers as new leaves, so that the two gradients do not mix."""
    copies = [part.detach().clone().requires_grad_() for part in parts_of(state)]
    return tuple(copies) if isinstance(state, tuple) else copies[0]


@given(cells, dtypes, widths, widths, batches, st.booleans(), seeds)
def test_a_step_equals_pytorchs_in_values_and_gradients(cell_class, dtype, d_x, d_h, batch, with_state, seed):
    torch.manual_seed(seed)
    theirs = CELLS[cell_class](d_x, d_h, dtype=dtype)
    ours = cell_class(d_x, d_h).to(dtype)
    copy_weights(ours, by_name(theirs))
    x = torch.randn(*batch, d_x, dtype=dtype, requires_grad=True)
    x_too = x.detach().clone().requires_grad_()
    state = random_state(cell_class, (*batch, d_h), dtype) if with_state else None
    state_too = twin(state) if with_state else None

    got, expected = parts_of(ours(x, state)), parts_of(theirs(x_too, state_too))
    assert len(got) == len(expected)
    weights = [torch.randn_like(part) for part in expected]
    for our_part, their_part in zip(got, expected):
        close(our_part, their_part)
    sum((w * part).sum() for w, part in zip(weights, got)).backward()
    sum((w * part).sum() for w, part in zip(weights, expected)).backward()

    close(x.grad, x_too.grad)
    same_gradients(ours, by_name(theirs))
    if with_state:
        for our_part, their_part in zip(parts_of(state), parts_of(state_too)):
            close(our_part.grad, their_part.grad)


@given(cells, dtypes, widths, widths, batches, st.integers(1, 6), st.booleans(), seeds)
def test_unroll_equals_pytorchs_layer_in_values_and_gradients(cell_class, dtype, d_x, d_h, batch, n, with_state, seed):
    torch.manual_seed(seed)
    theirs = LAYERS[cell_class](d_x, d_h, batch_first=True, dtype=dtype)
    ours = cell_class(d_x, d_h).to(dtype)
    copy_weights(ours, by_name(theirs))
    X = torch.randn(*batch, n, d_x, dtype=dtype, requires_grad=True)
    X_too = X.detach().clone().requires_grad_()
    state = random_state(cell_class, (*batch, d_h), dtype) if with_state else None
    layered = None  # a layer of PyTorch wants one state more: that of each layer
    if with_state:
        copies = twin(state)
        layered = tuple(c.unsqueeze(0) for c in copies) if isinstance(copies, tuple) else copies.unsqueeze(0)

    H, last = unroll(ours, X, state)
    H_too, last_too = theirs(X_too, layered)
    close(H, H_too)
    for our_part, their_part in zip(parts_of(last), parts_of(last_too), strict=True):
        close(our_part, their_part.squeeze(0))
    assert torch.equal(hidden(last), H[..., -1, :])

    weights = torch.randn_like(H)
    (weights * H).sum().backward()
    (weights * H_too).sum().backward()
    close(X.grad, X_too.grad)
    same_gradients(ours, by_name(theirs))
    if with_state:
        for our_part, their_part in zip(parts_of(state), parts_of(copies)):
            close(our_part.grad, their_part.grad)


@given(cells, widths, st.integers(2, 7), st.data())
def test_a_sequence_in_two_halves_equals_the_whole(cell_class, d_h, n, data):
    torch.manual_seed(0)
    cell = cell_class(3, d_h).double()
    X = torch.randn(2, n, 3).double()
    cut = data.draw(st.integers(1, n - 1))
    H, last = unroll(cell, X)
    first, between = unroll(cell, X[:, :cut])
    second, end = unroll(cell, X[:, cut:], between)
    close(torch.cat([first, second], dim=1), H)
    for our_part, whole_part in zip(parts_of(end), parts_of(last), strict=True):
        close(our_part, whole_part)


@each_cell
def test_any_number_of_batch_axes_gives_the_same_as_one(cell_class):
    torch.manual_seed(1)
    cell = cell_class(3, 4).double()
    x = torch.randn(2, 5, 3).double()
    close(hidden(cell(x)), hidden(cell(x.flatten(0, 1))).reshape(2, 5, 4))
    X = torch.randn(2, 5, 6, 3).double()
    close(unroll(cell, X)[0], unroll(cell, X.flatten(0, 1))[0].reshape(2, 5, 6, 4))


@each_cell
def test_rows_of_a_batch_do_not_touch_one_another(cell_class):
    torch.manual_seed(2)
    cell = cell_class(3, 4).double()
    X = torch.randn(3, 5, 3).double()
    H = unroll(cell, X)[0]
    for row in range(3):
        close(H[row], unroll(cell, X[row])[0])


@each_cell
def test_a_later_step_changes_no_earlier_one(cell_class):
    torch.manual_seed(3)
    cell = cell_class(3, 4).double()
    X = torch.randn(2, 6, 3).double()
    before = unroll(cell, X)[0]
    X[:, 4] += 1
    after = unroll(cell, X)[0]
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.isclose(before[:, 4:], after[:, 4:]).any()


@each_cell
@pytest.mark.parametrize("batch", [(), (3,)])
def test_what_goes_in_is_not_modified(cell_class, batch):
    torch.manual_seed(4)
    cell = cell_class(2, 5)
    x, X = torch.randn(*batch, 2), torch.randn(*batch, 4, 2)
    state = random_state(cell_class, (*batch, 5), torch.float32)
    copies = [t.detach().clone() for t in (x, X, *parts_of(state), *cell.parameters())]
    with torch.no_grad():
        cell(x, state)
        unroll(cell, X, state)
    for tensor, copy in zip((x, X, *parts_of(state), *cell.parameters()), copies, strict=True):
        assert torch.equal(tensor, copy)


@given(widths, widths)
def test_weight_matrices_are_as_4_to_3_to_1(d_x, d_h):
    numbers = {
        c: sum(p.numel() for p in c(d_x, d_h).parameters() if p.dim() == 2) for c in (LSTMCell, GRUCell, RNNCell)
    }
    assert numbers[RNNCell] == d_h * (d_x + d_h)
    assert numbers[LSTMCell] == 4 * numbers[RNNCell]
    assert numbers[GRUCell] == 3 * numbers[RNNCell]


@pytest.mark.parametrize(("cell_class", "biases"), [(RNNCell, 7), (LSTMCell, 28), (GRUCell, 21 + 7)])
def test_biases_have_one_entry_for_each_row(cell_class, biases):
    assert sum(p.numel() for p in cell_class(3, 7).parameters() if p.dim() == 1) == biases


@each_cell
@pytest.mark.parametrize("d_h", [4, 100])
def test_start_values_are_uniform_within_one_over_the_root_of_d_h(cell_class, d_h):
    torch.manual_seed(5)
    bound = 1 / math.sqrt(d_h)
    cell = cell_class(200, d_h)
    for name, parameter in cell.named_parameters():
        assert parameter.requires_grad
        assert parameter.abs().max() <= bound, name
        if parameter.numel() >= 100:
            assert parameter.max() > 0.9 * bound and parameter.min() < -0.9 * bound, name
            assert abs(parameter.mean()) < 0.3 * bound, name
    assert len({tuple(p.flatten()[:2].tolist()) for p in cell.parameters()}) == len(list(cell.parameters()))


def test_start_values_follow_the_seed():
    torch.manual_seed(6)
    first = LSTMCell(3, 4)
    torch.manual_seed(6)
    second = LSTMCell(3, 4)
    for one, other in zip(first.parameters(), second.parameters()):
        assert torch.equal(one, other)


@each_cell
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_a_blank_state_is_zero_in_the_cells_number_format(cell_class, batch):
    cell = cell_class(2, 5).double()
    parts = parts_of(cell.initial_state(batch))
    assert len(parts) == (2 if cell_class is LSTMCell else 1)
    for part in parts:
        assert part.shape == (*batch, 5) and part.dtype == torch.float64 and (part == 0).all()


@each_cell
def test_no_state_means_a_blank_one(cell_class):
    torch.manual_seed(7)
    cell = cell_class(3, 4)
    x = torch.randn(2, 3)
    blank = cell.initial_state((2,))
    for got, expected in zip(parts_of(cell(x)), parts_of(cell(x, blank)), strict=True):
        assert torch.equal(got, expected)
    X = torch.randn(2, 5, 3)
    assert torch.equal(unroll(cell, X)[0], unroll(cell, X, blank)[0])


@each_cell
def test_sizes_are_kept(cell_class):
    cell = cell_class(2, 5)
    assert (cell.d_x, cell.d_h) == (2, 5)
    smallest = cell_class(1, 1)
    assert hidden(smallest(torch.ones(1))).shape == (1,)


def test_a_step_by_hand():
    """One token, one number each: h = tanh(0.5 * 1 + 2 * 0.25 + 0.1)."""
    cell = RNNCell(1, 1).double()
    with torch.no_grad():
        cell.W_x.fill_(2.0), cell.W_h.fill_(0.5), cell.b.fill_(0.1)
    h = cell(torch.tensor([0.25]).double(), torch.tensor([1.0]).double())
    assert float(h.detach()) == pytest.approx(math.tanh(1.1), abs=1e-15)


def test_the_activation_of_an_rnn_can_be_chosen():
    torch.manual_seed(8)
    theirs = nn.RNNCell(3, 4, nonlinearity="relu").double()
    ours = RNNCell(3, 4, f=torch.relu).double()
    copy_weights(ours, by_name(theirs))
    x, h = torch.randn(2, 3).double(), torch.randn(2, 4).double()
    close(ours(x, h), theirs(x, h))
    assert RNNCell(3, 4).f is torch.tanh


def test_project_and_step_make_up_a_step():
    torch.manual_seed(9)
    for cell_class, rows in ((RNNCell, 1), (LSTMCell, 4), (GRUCell, 3)):
        cell = cell_class(3, 4).double()
        x, state = torch.randn(2, 3).double(), random_state(cell_class, (2, 4), torch.float64)
        projected = cell.project(x)
        close(projected, nn.functional.linear(x, cell.W_x, cell.b))
        assert projected.shape == (2, 4 * rows)
        for got, expected in zip(parts_of(cell.step(projected, state)), parts_of(cell(x, state)), strict=True):
            close(got, expected)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_the_gates_of_an_lstm_come_in_the_order_i_f_candidate_o():
    cell = LSTMCell(1, 1).double()
    with torch.no_grad():
        cell.W_x.zero_(), cell.b.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        cell.W_h.copy_(torch.tensor([[10.0], [-20.0], [25.0], [-40.0]]))
    h, c = torch.tensor([-0.1], dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64)
    x = torch.ones(1, dtype=torch.float64)
    i, f, candidate, o = (float(gate.detach()) for gate in cell.gates(cell.project(x), h))
    assert i == pytest.approx(sigmoid(1 - 1), abs=1e-15) and f == pytest.approx(sigmoid(2 + 2), abs=1e-15)
    assert candidate == pytest.approx(math.tanh(3 - 2.5), abs=1e-15) and o == pytest.approx(sigmoid(4 + 4), abs=1e-15)
    new_h, new_c = cell(x, (h, c))
    assert float(new_c.detach()) == pytest.approx(f * 0.7 + i * candidate, abs=1e-15)
    assert float(new_h.detach()) == pytest.approx(o * math.tanh(f * 0.7 + i * candidate), abs=1e-15)


def test_the_gates_of_a_gru_come_in_the_order_r_z_candidate():
    cell = GRUCell(1, 1).double()
    with torch.no_grad():
        cell.W_x.fill_(1.0), cell.b.copy_(torch.tensor([0.5, -0.25, 2.0])), cell.b_h.fill_(0.3)
        cell.W_h.copy_(torch.tensor([[1.0], [2.0], [3.0]]))
    x, h = torch.tensor([0.2]).double(), torch.tensor([-0.4]).double()
    r, z, candidate = (float(gate.detach()) for gate in cell.gates(cell.project(x), h))
    assert r == pytest.approx(sigmoid(0.2 + 0.5 - 0.4))
    assert z == pytest.approx(sigmoid(0.2 - 0.25 - 0.8))
    assert candidate == pytest.approx(math.tanh(0.2 + 2.0 + r * (-1.2 + 0.3)))
    assert float(cell(x, h).detach()) == pytest.approx((1 - z) * candidate + z * -0.4)


def test_an_open_update_gate_keeps_the_old_memo_whole():
    cell = GRUCell(2, 3).double()
    with torch.no_grad():
        cell.b[3:6] = 1e3  # z = 1
    h = torch.randn(4, 3).double()
    assert torch.equal(cell(torch.randn(4, 2).double(), h), h)


def test_hidden_is_h_of_either_kind_of_state():
    h, c = torch.zeros(2), torch.ones(2)
    assert hidden(h) is h
    assert hidden((h, c)) is h


# ---- bad input


@each_cell
@pytest.mark.parametrize(("d_x", "d_h"), [(0, 3), (3, 0), (-1, 3), (3, -2)])
def test_sizes_below_one_are_refused(cell_class, d_x, d_h):
    with one_line_error(f"d_x={d_x}", f"d_h={d_h}", "at least 1"):
        cell_class(d_x, d_h)


@each_cell
@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 2), ()])
def test_a_wrong_width_of_x_is_refused(cell_class, shape):
    with one_line_error("x:", "last axis of 3", str(shape)):
        cell_class(3, 5)(torch.zeros(shape))


@each_cell
@pytest.mark.parametrize("shape", [(2, 6), (3, 5), (5,), (1, 5), (4, 2, 5), (10,)])
def test_a_state_of_another_shape_is_refused(cell_class, shape):
    state = random_state(cell_class, shape, torch.float32)
    with one_line_error("state: expected shape", "(2, 5)", str(shape), cell_class.__name__):
        cell_class(3, 5)(torch.zeros(2, 3), state)
    with one_line_error("state: expected shape", "(2, 5)", str(shape), cell_class.__name__):
        unroll(cell_class(3, 5), torch.zeros(2, 4, 3), state)


def test_a_cell_state_of_another_shape_is_refused():
    with one_line_error("state: expected shape ((2, 5), (2, 5))", "got ((2, 5), (2, 4))"):
        LSTMCell(3, 5)(torch.zeros(2, 3), (torch.zeros(2, 5), torch.zeros(2, 4)))


def test_h_alone_is_no_state_of_an_lstm():
    """A batch of two rows would otherwise be unpacked as (h, c)."""
    with one_line_error("state: expected shape ((2, 5), (2, 5))", "got (2, 5)"):
        LSTMCell(3, 5)(torch.zeros(2, 3), torch.zeros(2, 5))
    with one_line_error("state: expected shape ((2, 5), (2, 5))", "got (2, 5)"):
        unroll(LSTMCell(3, 5), torch.zeros(2, 4, 3), torch.zeros(2, 5))


@pytest.mark.parametrize("cell_class", [RNNCell, GRUCell])
def test_a_pair_is_no_state_of_a_cell_without_cell_state(cell_class):
    with one_line_error("state: expected shape (2, 5)", "got ((2, 5), (2, 5))"):
        cell_class(3, 5)(torch.zeros(2, 3), (torch.zeros(2, 5), torch.zeros(2, 5)))


@each_cell
def test_unroll_refuses_what_is_no_sequence_of_x(cell_class):
    cell = cell_class(3, 5)
    with one_line_error("X: expected shape (..., n, 3)", "got (3,)"):
        unroll(cell, torch.zeros(3))
    with one_line_error() as caught:
        unroll(cell, torch.zeros(2, 4, 6))
    if not SHAPES_CHECKED:
        assert str(caught.value) == "X: expected a last axis of 3, got shape (2, 4, 6)"
    with one_line_error("X: expected at least one step", "got shape (2, 0, 3)"):
        unroll(cell, torch.zeros(2, 0, 3))

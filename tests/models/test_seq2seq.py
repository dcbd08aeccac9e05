"""Sequence to sequence: padding changes nothing, pieces equal the whole, and only attention sees the whole source.

Chapters 04 and 05.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.one_line import one_line_error
from tests.translators import PAIR_LENGTHS, same_loss_alone_and_together
from transformer_lib.models import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from transformer_lib.parts.attention import AdditiveAttention
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell, hidden, unroll, unroll_masked

DECODERS = [Decoder, ContextDecoder, AttentionDecoder]
CELLS = [RNNCell, GRUCell, LSTMCell]


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def model_of(decoder=AttentionDecoder, cell=GRUCell, **options):
    torch.manual_seed(0)
    return Seq2Seq(12, 5, 6, decoder, cell, **options)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("cell", [RNNCell, GRUCell, LSTMCell])
def test_a_sentence_does_not_depend_on_its_batch_or_its_padding(decoder, cell):
    model = model_of(decoder, cell)
    short, long, target = torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8, 9, 10, 11]]), torch.tensor([[1, 3, 4]])
    batch = torch.cat([torch.nn.functional.pad(short, (0, 2)), long])
    together = model.log_probs(batch, target.expand(2, -1))
    torch.testing.assert_close(together[:1], model.log_probs(short, target))
    torch.testing.assert_close(together[1:], model.log_probs(long, target))
    torch.testing.assert_close(together.exp().sum(-1), torch.ones(2, 3))


@settings(max_examples=40)
@given(
    decoder=st.sampled_from(DECODERS),
    cell=st.sampled_from(CELLS),
    lengths=PAIR_LENGTHS,
    more=st.integers(0, 3),
    seed=st.integers(0, 2**31),
)
def test_loss_and_gradients_do_not_depend_on_batch_or_padding(decoder, cell, lengths, more, seed):
    same_loss_alone_and_together(model_of(decoder, cell), lengths, more, seed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_the_last_real_token_ends_the_source_and_not_the_padding(cell):
    model = model_of(Decoder, cell)
    alone, more = model.encode(torch.tensor([[4, 5, 6]])), model.encode(torch.tensor([[4, 5, 6, 0, 0], [7] * 5]))
    torch.testing.assert_close(hidden(more.c)[:1], hidden(alone.c))
    torch.testing.assert_close(more.H[:1, :3], alone.H)
    torch.testing.assert_close(hidden(more.c)[0, :3], more.H[0, 2, :3])  # forwards: the memo at 6
    torch.testing.assert_close(hidden(more.c)[0, 3:], more.H[0, 0, 3:])  # backwards: the memo at 4
    if cell is LSTMCell:  # the cell state too
        torch.testing.assert_close(more.c[1][:1], alone.c[1])
    assert not torch.allclose(hidden(more.c)[0], hidden(model.encode(torch.tensor([[4, 5]])).c)[0])


@pytest.mark.parametrize("cell", CELLS)
def test_the_attention_decoder_by_hand(cell):
    """c_t from s_{t-1}, s_t from [y_t; c_t] and the whole old state, and tanh of a linear layer over [s_t; c_t]."""
    model = model_of(AttentionDecoder, cell)
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[1, 3, 7]])
    memory, decoder = model.encode(source), model.decoder
    state, weights, read = memory.c, [], []
    for t in range(3):
        e = torch.tanh(hidden(state) @ decoder.attention.W.T + memory.H[0] @ decoder.attention.U.T)
        a = torch.softmax(e @ decoder.attention.v, dim=-1)
        c = (a @ memory.H[0])[None]
        state = decoder.cell(torch.cat([model.embedding(target[:, t]), c], dim=-1), state)
        read.append(torch.tanh(decoder.readout(torch.cat([hidden(state), c], dim=-1))))
        weights.append(a)
    log_probs, last = model.step(target, memory)
    torch.testing.assert_close(log_probs, torch.log_softmax(model.output(torch.stack(read, dim=1)), dim=-1))
    torch.testing.assert_close(hidden(last), hidden(state))
    torch.testing.assert_close(model.weights(source, target)[0], torch.stack(weights))


@pytest.mark.parametrize("cell", CELLS)
def test_the_variant_by_hand(cell):
    model = model_of(ContextDecoder, cell)
    memory, target = model.encode(torch.tensor([[4, 5, 6]])), torch.tensor([[1, 3]])
    state, S = memory.c, []
    for t in range(2):
        state = model.decoder.cell(torch.cat([model.embedding(target[:, t]), hidden(memory.c)], dim=-1), state)
        S.append(hidden(state))
    log_probs = model.step(target, memory)[0]
    torch.testing.assert_close(log_probs, torch.log_softmax(model.output(torch.stack(S, dim=1)), dim=-1))


@pytest.mark.parametrize("cell", CELLS)
def test_a_permuted_memory_is_looked_at_as_before(cell):
    """The weights go with their places, the translation stays: attention knows no order of its own."""
    model = model_of(AttentionDecoder, cell)
    memory, target = model.encode(torch.tensor([[4, 5, 6, 7, 0]])), torch.tensor([[1, 3, 5]])
    order = torch.tensor([3, 4, 0, 2, 1])
    other = type(memory)(memory.H[:, order], memory.mask[:, order], memory.c, memory.keys[:, order])
    Y = model.embedding(target)
    (S, A, _), (S_too, A_too, _) = model.decoder(Y, memory, None), model.decoder(Y, other, None)
    torch.testing.assert_close(A_too, A[:, :, order])
    torch.testing.assert_close(S_too, S)
    assert not torch.allclose(A_too, A)


def test_another_memory_gives_another_context():
    model = model_of()
    memory = model.encode(torch.tensor([[4, 5, 6]]))
    H = memory.H.clone()
    H[0, 1] += 0.1
    other = model.decoder.prepare(type(memory)(H, memory.mask, memory.c))
    assert not torch.allclose(model.step(torch.tensor([[1]]), memory)[0], model.step(torch.tensor([[1]]), other)[0])


def test_the_keys_are_computed_once_for_a_whole_source(monkeypatch):
    """Also where beam search goes on with some of the rows."""
    computed = []
    keys = AdditiveAttention.keys
    monkeypatch.setattr(AdditiveAttention, "keys", lambda self, H: computed.append(len(H)) or keys(self, H))
    model = model_of()
    memory = model.encode(torch.tensor([[4, 5, 0], [7, 8, 9]]))
    _, state = model.step(torch.tensor([[1, 3], [1, 6]]), memory)
    chosen, state = model.choose(torch.tensor([1, 1, 0]), memory, state)
    model.step(torch.tensor([[5], [5], [5]]), chosen, state)
    assert computed == [2]
    torch.testing.assert_close(chosen.keys, memory.keys[[1, 1, 0]])


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("cell", [GRUCell, LSTMCell])
def test_pieces_equal_the_whole_and_no_later_token_is_seen(decoder, cell):
    model = model_of(decoder, cell)
    source, target = torch.tensor([[4, 5, 6, 0], [7, 8, 9, 10]]), torch.tensor([[1, 3, 4, 5], [1, 6, 7, 8]])
    whole = model.log_probs(source, target)
    memory = model.encode(source)
    first, state = model.step(target[:, :1], memory)
    rest, _ = model.step(target[:, 1:], memory, state)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), whole)
    changed = target.clone()
    changed[:, 2:] = 9
    torch.testing.assert_close(model.log_probs(source, changed)[:, :2], whole[:, :2])
    assert not torch.allclose(model.log_probs(source, changed)[:, 2:], whole[:, 2:])


@pytest.mark.parametrize("cell", [GRUCell, LSTMCell])
def test_c_is_the_last_memo_of_both_directions_and_the_decoders_initial_state(cell):
    model = model_of(Decoder, cell)
    source = torch.tensor([[4, 5, 6]])
    X = model.embedding(source)
    right, left = unroll(model.encoder.forwards, X)[1], unroll(model.encoder.backwards, X.flip(1))[1]
    memory = model.encode(source)
    torch.testing.assert_close(hidden(memory.c), torch.cat([hidden(right), hidden(left)], dim=-1))
    torch.testing.assert_close(hidden(memory.c)[0, :3], memory.H[0, 2, :3])
    torch.testing.assert_close(hidden(memory.c)[0, 3:], memory.H[0, 0, 3:])
    target = torch.tensor([[1, 3]])
    S, _ = unroll(model.decoder.cell, model.embedding(target), memory.c)
    torch.testing.assert_close(model.log_probs(source, target), torch.log_softmax(model.output(S), dim=-1))


def test_without_attention_only_c_counts_and_with_it_the_memory_does():
    for decoder in DECODERS:
        model = model_of(decoder)
        memory = model.encode(torch.tensor([[4, 5, 6]]))
        other = type(memory)(memory.H + 1, memory.mask, memory.c, None)
        target = torch.tensor([[1, 3]])
        same = torch.allclose(model.step(target, memory)[0], model.step(target, model.decoder.prepare(other))[0])
        assert same == (decoder is not AttentionDecoder)


def test_the_variant_hears_c_at_every_step():
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[1, 3]])
    for decoder in (Decoder, ContextDecoder):
        model = model_of(decoder)
        memory = model.encode(source)
        _, state = model.step(target, memory)
        other = type(memory)(memory.H, memory.mask, -memory.c)
        same = torch.allclose(model.step(target, memory, state)[0], model.step(target, other, state)[0])
        assert same == (decoder is Decoder)


def test_weights_sum_to_one_and_leave_padding_out():
    A = model_of().weights(torch.tensor([[4, 5, 0], [7, 8, 9]]), torch.tensor([[1, 3, 4, 5], [1, 6, 7, 8]]))
    assert A.shape == (2, 4, 3) and (A[0, :, 2] == 0).all()
    torch.testing.assert_close(A.sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("cell", CELLS)
def test_rows_of_memory_and_state_go_together(decoder, cell):
    model = model_of(decoder, cell)
    source, target = torch.tensor([[4, 5, 0], [7, 8, 9]]), torch.tensor([[1, 3], [1, 6]])
    memory = model.encode(source)
    log_probs, state = model.step(target, memory)
    memory, state = model.choose(torch.tensor([1, 1, 0]), memory, state)
    again = model.step(torch.tensor([[5], [5], [5]]), memory, state)[0]
    torch.testing.assert_close(again[0], again[1])
    whole = model.log_probs(source, torch.tensor([[1, 3, 5], [1, 6, 5]]))[:, -1:]
    torch.testing.assert_close(again[[2, 0]], whole)
    anew = model.step(torch.tensor([[1], [1], [1]]), memory)[0]  # c is that of the rows as well
    torch.testing.assert_close(anew[[2, 0]], log_probs[:, :1])


def test_the_embedding_is_one_matrix_and_stands_once_among_the_weights():
    names = [name for name in model_of().state_dict() if "embedding" in name]
    assert names == ["embedding.weight"]


def test_dropout_works_in_training_only():
    model = model_of(dropout=0.5)
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[1, 3]])
    assert not torch.allclose(model.log_probs(source, target), model.log_probs(source, target))
    model.eval()
    torch.testing.assert_close(model.log_probs(source, target), model.log_probs(source, target), rtol=0, atol=0)


def test_a_mask_leaves_the_state_as_it_was():
    for cell in (RNNCell(3, 4), GRUCell(3, 4), LSTMCell(3, 4)):
        X = torch.randn(2, 5, 3)
        mask = torch.tensor([[True, True, False, False, True], [True] * 5])
        H, state = unroll_masked(cell, X, mask)
        kept, last = unroll(cell, X[:1, [0, 1, 4]])
        torch.testing.assert_close(H[:1, [0, 1, 4]], kept)
        torch.testing.assert_close(H[0, 2], H[0, 1]), torch.testing.assert_close(H[0, 3], H[0, 1])
        torch.testing.assert_close(hidden(state)[:1], hidden(last))
        torch.testing.assert_close(H[1:], unroll(cell, X[1:])[0])
    with one_line_error("mask: expected shape (2, 5), got (2, 4)"):
        unroll_masked(RNNCell(3, 4), torch.zeros(2, 5, 3), mask[:, :4])


def test_bad_input_is_refused():
    model = model_of(Decoder)
    with one_line_error("source: expected at least one token in every row"):
        model.encode(torch.tensor([[4, 5], [0, 0]]))
    with one_line_error("source: expected ids from 0 to 11, got 12"):
        model.encode(torch.tensor([[12]]))
    for odd in (3, 5):
        with one_line_error("d_h: expected an even width", f"got {odd}"):
            Seq2Seq(12, 5, odd)
    assert Seq2Seq(12, 5, 4).encode(torch.tensor([[4]])).H.shape == (1, 1, 4)
    with one_line_error("model: expected one with attention, got a Decoder"):
        model.weights(torch.tensor([[4]]), torch.tensor([[1]]))


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_is_no_batch_is_refused_before_it_is_broadcast(decoder):
    model = model_of(decoder)
    memory = model.encode(torch.tensor([[4, 5], [6, 7]]))
    with one_line_error("source: expected a batch (batch, n), got shape (2,)"):
        model.encode(torch.tensor([4, 5]))
    with one_line_error("source: expected at least one token in every row"):
        model.encode(torch.zeros(1, 0, dtype=torch.long))
    with one_line_error("ids: expected a batch (batch, n), got shape (2,)"):
        model.step(torch.tensor([1, 3]), memory)
    for rows in (1, 3):
        with one_line_error("ids: expected a row for each of 2 sources", f"got {rows}"):
            model.step(torch.ones(rows, 1, dtype=torch.long), memory)
    with one_line_error("ids: expected at least one token in each row, got none"):
        model.step(torch.zeros(2, 0, dtype=torch.long), memory)
    with one_line_error("ids: expected ids from 0 to 11, got 12"):
        model.step(torch.tensor([[12], [1]]), memory)


def test_weights_are_asked_of_one_target_for_each_source():
    model, source = model_of(), torch.tensor([[4, 5], [6, 7]])
    with one_line_error("target: expected a row for each of 2 sources, got 1"):
        model.weights(source, torch.tensor([[1, 3]]))
    with one_line_error("target: expected a batch (batch, n), got shape (2,)"):
        model.weights(source, torch.tensor([1, 3]))
    with one_line_error("target: expected ids from 0 to 11, got 12"):
        model.weights(source, torch.tensor([[1], [12]]))


@pytest.mark.parametrize("specials", [(0, 1, 9), (0, 1, 0), (0, 0, 0), (-1, 1, 2), (0, 1)])
def test_padding_start_and_end_are_three_ids(specials):
    with one_line_error("specials: expected three different ids below 9", str(specials)):
        Seq2Seq(9, 2, 2, specials=specials)

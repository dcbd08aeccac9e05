"""Sequence to sequence: padding changes nothing, pieces equal the whole, and only attention sees the whole source.

Chapters 04 and 05.
"""

import pytest
import torch

from tests.one_line import one_line_error
from transformer_lib.models import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell, hidden, unroll, unroll_masked

DECODERS = [Decoder, ContextDecoder, AttentionDecoder]


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


def test_rows_of_memory_and_state_go_together():
    for cell in (GRUCell, LSTMCell):
        model = model_of(cell=cell)
        source, target = torch.tensor([[4, 5, 0], [7, 8, 9]]), torch.tensor([[1, 3], [1, 6]])
        memory = model.encode(source)
        log_probs, state = model.step(target, memory)
        memory, state = model.choose(torch.tensor([1, 1, 0]), memory, state)
        again = model.step(torch.tensor([[5], [5], [5]]), memory, state)[0]
        torch.testing.assert_close(again[0], again[1])
        whole = model.log_probs(source, torch.tensor([[1, 3, 5], [1, 6, 5]]))[:, -1:]
        torch.testing.assert_close(again[[2, 0]], whole)


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
    with one_line_error("d_h: expected an even width", "got 5"):
        Seq2Seq(12, 5, 5)
    with one_line_error("model: expected one with attention, got a Decoder"):
        model.weights(torch.tensor([[4]]), torch.tensor([[1]]))

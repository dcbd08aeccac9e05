"""The Transformer: PyTorch's and Hugging Face's stacks, padding, looking back only, with and without a cache.

Chapters 09 and 10.
"""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.one_line import one_line_error
from tests.parts.pytorchs import as_pytorchs, shake
from tests.translators import PAIR_LENGTHS, same_loss_alone_and_together
from transformer_lib.decoding import beam_search, greedy, greedy_all
from transformer_lib.models import Transformer
from transformer_lib.models.trained import load_trained, save_trained
from transformer_lib.parts.attention import MultiHeadAttention, record_attention
from transformer_lib.parts.layers import LayerNorm, PostNorm, PreNorm
from transformer_lib.parts.positions import LearnedPositions, SinusoidalPositions
from transformer_lib.text import CharTokenizer
from transformer_lib.training import fit, padded, translation_loss

WRAPS = [PostNorm, PreNorm]
SOURCE, TARGET = torch.tensor([[4, 5, 6, 7, 0], [8, 9, 10, 11, 3]]), torch.tensor([[1, 3, 4, 5], [1, 6, 7, 8]])


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def small(wrap=PostNorm, dropout=0.0, **named):
    torch.manual_seed(0)
    return Transformer(12, 8, 2, 2, 16, dropout, wrap=wrap, **named)


@pytest.mark.parametrize("wrap", WRAPS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31))
def test_it_is_pytorchs_in_values_and_gradients(wrap, seed):
    ours = shake(small(wrap), seed)
    theirs = as_pytorchs(ours)
    padding = SOURCE == 0
    E = ours.source_embedding.weight
    X, Y = (E[ids] * 8**0.5 + SinusoidalPositions(9, 8)(ids.shape[1]) for ids in (SOURCE, TARGET))
    Z = theirs(
        X,
        Y,
        tgt_mask=torch.ones(4, 4).triu(1).bool(),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    expected, found = torch.log_softmax(Z @ E.T, dim=-1), ours.log_probs(SOURCE, TARGET)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    weights = torch.linspace(-1, 1, expected.numel()).view_as(expected)
    (one,), (other,) = (torch.autograd.grad((x * weights).sum(), [E], retain_graph=True) for x in (found, expected))
    torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)
    inner = [p for layer in theirs.decoder.layers for p in (layer.linear1.weight, layer.multihead_attn.out_proj.weight)]
    mine = [
        p
        for layer in ours.decoder
        for p in (layer.feed_forward.sublayer.W_1.weight, layer.source_attention.sublayer.W_O.weight)
    ]
    for one, other in zip(
        torch.autograd.grad((found * weights).sum(), mine),
        torch.autograd.grad((expected * weights).sum(), inner),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


class InHalves(SinusoidalPositions):
    """Marian's order: all sines, then all cosines."""

    def forward(self, n, start=0):
        rows = super().forward(n, start)
        return torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=-1)


def test_it_is_marians_with_copied_weights():
    """Post-LN, sinusoids, one matrix three times: a translation model of Hugging Face with this very architecture."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=12, d_model=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, activation_function="relu", dropout=0.0,
        attention_dropout=0.0, activation_dropout=0.0, scale_embedding=True, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=1, max_position_embeddings=16, forced_eos_token_id=None,
    )  # fmt: skip
    marian = MarianMTModel(config).double().eval()
    ours = shake(small(positions=InHalves)).eval()

    def norm(theirs, mine):
        theirs.weight.copy_(mine.gamma), theirs.bias.copy_(mine.beta)

    def attention(theirs, mine):
        for name, W in (("q", mine.W_Q), ("k", mine.W_K), ("v", mine.W_V), ("out", mine.W_O)):
            getattr(theirs, f"{name}_proj").load_state_dict(W.state_dict())

    with torch.no_grad():
        marian.model.shared.weight.copy_(ours.source_embedding.weight)
        for theirs, mine in [
            *zip(marian.model.encoder.layers, ours.encoder, strict=True),
            *zip(marian.model.decoder.layers, ours.decoder, strict=True),
        ]:
            attention(theirs.self_attn, mine.attention.sublayer)
            norm(theirs.self_attn_layer_norm, mine.attention.norm)
            theirs.fc1.load_state_dict(mine.feed_forward.sublayer.W_1.state_dict())
            theirs.fc2.load_state_dict(mine.feed_forward.sublayer.W_2.state_dict())
            norm(theirs.final_layer_norm, mine.feed_forward.norm)
            if hasattr(theirs, "encoder_attn"):
                attention(theirs.encoder_attn, mine.source_attention.sublayer)
                norm(theirs.encoder_attn_layer_norm, mine.source_attention.norm)
    logits = marian(input_ids=SOURCE, attention_mask=(SOURCE != 0).long(), decoder_input_ids=TARGET).logits
    expected = torch.log_softmax(logits, dim=-1)
    torch.testing.assert_close(ours.log_probs(SOURCE, TARGET), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("positions", [SinusoidalPositions, LearnedPositions])
def test_a_sentence_does_not_depend_on_its_batch_or_its_padding(wrap, positions):
    model = shake(small(wrap, positions=positions))
    together = model.log_probs(SOURCE, TARGET)
    torch.testing.assert_close(together.exp().sum(-1), torch.ones(2, 4))
    torch.testing.assert_close(together[:1], model.log_probs(SOURCE[:1, :4], TARGET[:1]))
    torch.testing.assert_close(together[1:], model.log_probs(SOURCE[1:], TARGET[1:]))
    longer = nn.functional.pad(SOURCE, (0, 3))
    torch.testing.assert_close(model.log_probs(longer, TARGET), together)


@pytest.mark.parametrize("wrap", WRAPS)
@settings(max_examples=20)
@given(lengths=PAIR_LENGTHS, more=st.integers(0, 3), seed=st.integers(0, 2**31))
def test_loss_and_gradients_do_not_depend_on_batch_or_padding(wrap, lengths, more, seed):
    same_loss_alone_and_together(small(wrap), lengths, more, seed, rtol=1e-8, atol=1e-10)


def test_the_padding_of_the_source_may_be_another_id_than_the_targets():
    """Renaming the source's padding changes nothing; the target's padding id is then a token like any other."""
    model, other = shake(small()), shake(small(source_pad_id=11))
    source = torch.tensor([[4, 5, 6], [7, 8, 0]])
    renamed = source.masked_fill(source == 0, 11)
    torch.testing.assert_close(model.log_probs(source, TARGET), other.log_probs(renamed, TARGET))
    assert not torch.allclose(other.log_probs(source, TARGET)[1], other.log_probs(renamed, TARGET)[1])
    assert (small().source_pad_id, other.pad_id, other.source_pad_id) == (0, 0, 11)
    sources = [[4, 5, 6], [7, 8]]
    alone = [greedy(other, torch.tensor([ids]), 6)[0] for ids in sources]
    assert greedy_all(other, sources, 6) == alone == greedy(other, padded(sources, 11), 6)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("wrap", WRAPS)
def test_no_later_token_is_seen(wrap, training):
    model = shake(small(wrap)).train(training)
    changed = TARGET.clone()
    changed[:, 2:] = 9
    before, after = model.log_probs(SOURCE, TARGET), model.log_probs(SOURCE, changed)
    assert torch.equal(after[:, :2], before[:, :2]) and not torch.allclose(after[:, 2:], before[:, 2:])
    other = SOURCE.clone()
    other[:, 3] = 3
    assert not torch.isclose(model.log_probs(other, TARGET), before).all(-1).any()  # the source is seen from everywhere


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("positions", [SinusoidalPositions, LearnedPositions])
@given(cut=st.integers(1, 3), seed=st.integers(0, 2**31))
def test_on_from_a_state_as_in_one_pass(wrap, positions, cut, seed):
    model = shake(small(wrap, positions=positions), seed)
    whole, memory = model.log_probs(SOURCE, TARGET), model.encode(SOURCE)
    first, state = model.step(TARGET[:, :cut], memory)
    rest, _ = model.step(TARGET[:, cut:], memory, state)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), whole)
    torch.testing.assert_close(model.step(TARGET[:, cut:], memory, state)[0], rest)  # the state is as it was
    memory, state = model.choose(torch.tensor([1, 1, 0]), memory, state)
    again, _ = model.step(TARGET[[1, 1, 0], cut:], memory, state)
    torch.testing.assert_close(again, rest[[1, 1, 0]])


@given(seed=st.integers(0, 1000))
def test_beam_1_is_greedy_and_greedy_does_not_depend_on_the_batch(seed):
    model = shake(small(), seed).eval()
    for source, ids in zip(SOURCE, greedy(model, SOURCE, 7), strict=True):
        kept = source[source != 0]
        assert greedy(model, kept[None], 7) == [ids]
        best = beam_search(model, kept, 1, 7)[0].ids
        assert [i for i in best if i != model.end_id] == ids


def test_keys_and_values_of_the_source_are_projected_once(monkeypatch):
    calls = []
    project = MultiHeadAttention.keys_values
    monkeypatch.setattr(
        MultiHeadAttention, "keys_values", lambda self, memory: calls.append(memory.shape[1]) or project(self, memory)
    )
    model = small().eval()
    greedy(model, SOURCE, 3)
    assert calls.count(5) == 4 and set(calls) == {5, 1}  # two encoder layers, two decoder layers; then one token a step


def test_one_matrix_three_times():
    model = small()
    assert model.target_embedding is model.source_embedding and model.output.weight is model.source_embedding.weight
    attention, ffn = 4 * (8 * 8 + 8), (8 * 16 + 16) + (16 * 8 + 8)
    count = 12 * 8 + 2 * (attention + ffn + 2 * 16) + 2 * (2 * attention + ffn + 3 * 16)
    assert sum(p.numel() for p in model.parameters()) == count
    assert sum(p.numel() for p in small(PreNorm).parameters()) == count + 2 * 16
    norms = [module for module in model.modules() if isinstance(module, LayerNorm)]
    assert len({id(norm) for norm in norms}) == 2 * 2 + 2 * 3


def test_the_papers_size_by_its_matrices():
    with torch.device("meta"):
        model = Transformer(37_000)
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    layers = [sum(p.numel() for p in stack[0].parameters() if p.dim() == 2) for stack in (model.encoder, model.decoder)]
    assert (layers, matrices) == ([3_145_728, 4_194_304], 62_984_192)


def test_dropout_stands_where_the_paper_puts_it():
    """On both embeddings with their positions and on each sub-layer's output; not on A, nor inside the FFN."""
    model = small(dropout=0.25)
    on = [name for name, module in model.named_modules() if isinstance(module, nn.Dropout) and module.p == 0.25]
    expected = ["dropout"]
    expected += [f"encoder.{i}.{part}.dropout" for i in range(2) for part in ("attention", "feed_forward")]
    for i in range(2):
        expected += [f"decoder.{i}.{part}.dropout" for part in ("attention", "feed_forward", "source_attention")]
    assert sorted(on) == sorted(expected)
    assert all(module.dropout == 0 for module in model.modules() if isinstance(module, MultiHeadAttention))
    torch.manual_seed(0)
    X = model.embed(model.source_embedding, torch.full((500, 1), 3))
    assert 0.2 < (X == 0).double().mean() < 0.3
    model.eval()
    assert torch.equal(model.log_probs(SOURCE, TARGET), model.log_probs(SOURCE, TARGET))


def test_embeddings_come_times_the_root_of_d_model_plus_positions():
    model = small()
    X = model.embed(model.source_embedding, torch.tensor([[3, 4]]), start=5)
    E = model.source_embedding.weight
    torch.testing.assert_close(X[0], 8**0.5 * E[[3, 4]] + SinusoidalPositions(1, 8)(2, 5))
    wide = Transformer(2000, 64, 4, 1, 64)
    scaled = wide.source_embedding.weight * 64**0.5
    assert 0.97 < scaled.std() < 1.03
    for layer in (wide.encoder[0], wide.decoder[0]):  # Xavier: fan in and fan out alike
        assert 0.9 < layer.attention.sublayer.W_Q.weight.std() * 64**0.5 < 1.1
        assert (layer.feed_forward.sublayer.W_1.bias == 0).all() and (layer.attention.sublayer.W_O.bias == 0).all()


def test_the_maps_are_the_weights_used():
    model = shake(small()).eval()
    with record_attention(model) as maps:
        recorded = model.log_probs(SOURCE, TARGET)
    torch.testing.assert_close(recorded, model.log_probs(SOURCE, TARGET))
    assert [tuple(layer[0].shape) for layer in maps] == [(2, 2, 5, 5)] * 2 + [(2, 2, 4, 4), (2, 2, 4, 5)] * 2
    for A in (layer[0] for layer in maps):
        torch.testing.assert_close(A.sum(-1), torch.ones(A.shape[:-1]))
    for layer in (0, 1, 3, 5):
        assert (maps[layer][0][0, :, :, 4] == 0).all()  # padding of the first source
    for layer in (2, 4):
        assert (maps[layer][0].triu(1) == 0).all()


@pytest.mark.parametrize("wrap", WRAPS)
def test_it_learns_to_copy_and_comes_back_from_disk(tmp_path, wrap):
    torch.manual_seed(0)
    model = Transformer(8, 16, 2, 1, 32, 0.0, wrap=wrap)
    chance = torch.Generator().manual_seed(0)
    rows = torch.randint(3, 8, (64, 4), generator=chance)
    target = torch.cat([torch.ones(64, 1, dtype=torch.long), rows, torch.full((64, 1), 2)], dim=1)
    history = fit(
        model, lambda step: (rows, target), 150, torch.optim.Adam(model.parameters(), 3e-3), loss=translation_loss
    )
    assert history.loss[0] > 1.5 and history.loss[-1] < 0.15
    right = sum(ids == row for ids, row in zip(greedy(model, rows, 5), rows.tolist(), strict=True))
    assert right > 56
    tokenizer = CharTokenizer.train("abcdefgh")
    arguments = {"vocab_size": 8, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32, "dropout": 0.0}
    arguments |= {"wrap": wrap.__name__, "positions": "SinusoidalPositions"}
    save_trained("copies", model, tokenizer, {"arguments": arguments}, tmp_path, torch.float64)
    again, _, _ = load_trained("copies", tmp_path)
    assert torch.equal(again.log_probs(rows, target), model.log_probs(rows, target))
    assert again.output.weight is again.source_embedding.weight  # still one matrix
    size = (tmp_path / "copies.safetensors").stat().st_size
    assert size < 8 * sum(p.numel() for p in model.parameters()) + 8000


def test_embeddings_can_be_parted():
    model = shake(small())
    model.target_embedding = copy.deepcopy(model.target_embedding)
    model.output.weight = nn.Parameter(model.output.weight.detach().clone())
    before = model.log_probs(SOURCE, TARGET)
    with torch.no_grad():
        model.target_embedding.weight[3] += 1.0
    after = model.log_probs(SOURCE, TARGET)
    torch.testing.assert_close(after[0, 0], before[0, 0])  # 3 is not yet read there
    assert not torch.allclose(after[0, 1:], before[0, 1:])
    whole = small()
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in whole.parameters()) + 2 * 12 * 8


def test_what_cannot_be():
    model = small()
    memory = model.encode(SOURCE)
    with one_line_error("source: expected at least one token in every row"):
        model.encode(torch.tensor([[4, 5], [0, 0]]))
    with one_line_error("source: expected ids from 0 to 11, got 12"):
        model.encode(torch.tensor([[12]]))
    with one_line_error("source: expected a batch (batch, n), got shape (2,)"):
        model.encode(torch.tensor([4, 5]))
    with one_line_error("ids: expected a row for each of 2 sources, got 1"):
        model.step(TARGET[:1], memory)
    with one_line_error("ids: expected at least one token in each row"):
        model.step(TARGET[:, :0], memory)
    with one_line_error("state: expected 2 caches, one a layer"):
        model.step(TARGET, memory, model.step(TARGET, memory)[1][:1])
    with one_line_error("d_model: expected a multiple of heads=3, got 8"):
        Transformer(12, 8, 3)
    with one_line_error("d_model: expected an even width"):
        Transformer(12, 9, 3)
    with one_line_error("layers: expected at least 1, got 0"):
        Transformer(12, 8, 2, 0)
    with one_line_error("positions: learned for 4 tokens, got 5"):
        small(positions=LearnedPositions, longest=4).encode(SOURCE)
    for specials in [(0, 1, 12), (0, 1, 0), (-1, 1, 2)]:
        with one_line_error("specials: expected three different ids below 12"):
            small(specials=specials)

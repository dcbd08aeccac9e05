"""Translation: our Seq2Seq against the same model on PyTorch's GRU; batched greedy decoding; learning byte pairs."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.measure import Row, ratio
from transformer_lib.decoding import greedy_all
from transformer_lib.models import Seq2Seq
from transformer_lib.models.seq2seq import AttentionDecoder, Decoder
from transformer_lib.parts.attention import AdditiveAttention
from transformer_lib.parts.recurrent import GRUCell
from transformer_lib.text import END, PAD, START, BytePairTokenizer, load_corpus
from transformer_lib.training import batches_by_length, translation_loss

SPECIALS = (PAD, START, END)


class OnTorch(nn.Module):
    """The same model as `ours`, its weights copied: nn.GRU both ways over packed sources, nn.GRU or nn.GRUCell after.

    Attention is our own: PyTorch has none of this kind. Where the decoder's input depends on the step before, PyTorch
    offers its cell alone.
    """

    def __init__(self, ours: Seq2Seq):
        super().__init__()
        d_x, d_h = ours.embedding.embedding_dim, ours.output.in_features
        self.pad_id, attends = ours.pad_id, isinstance(ours.decoder, AttentionDecoder)
        self.embedding = nn.Embedding(ours.vocab_size, d_x)
        self.encoder = nn.GRU(d_x, d_h // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRUCell(d_x + d_h, d_h) if attends else nn.GRU(d_x, d_h, batch_first=True)
        self.attention = AdditiveAttention(d_h, d_h, d_h) if attends else None
        self.readout = nn.Linear(2 * d_h, d_h) if attends else None
        self.output = nn.Linear(d_h, ours.vocab_size)
        for name in ("embedding", "output"):
            getattr(self, name).load_state_dict(getattr(ours, name).state_dict())
        if attends:
            self.attention.load_state_dict(ours.decoder.attention.state_dict())
            self.readout.load_state_dict(ours.decoder.readout.state_dict())
        copy(ours.encoder.forwards, self.encoder, "_l0")
        copy(ours.encoder.backwards, self.encoder, "_l0_reverse")
        copy(ours.decoder.cell, self.decoder, "" if attends else "_l0")

    def log_probs(self, source: Tensor, target: Tensor) -> Tensor:
        """As Seq2Seq's."""
        mask = source != self.pad_id
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(source), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        H, last = self.encoder(packed)
        c, Y = torch.cat([last[0], last[1]], dim=-1), self.embedding(target)
        if self.attention is None:
            S = self.decoder(Y, c.unsqueeze(0))[0]
        else:
            H = nn.utils.rnn.pad_packed_sequence(H, batch_first=True)[0]
            S, s, keys = [], c, self.attention.keys(H)
            for y in Y.unbind(dim=1):
                c, _ = self.attention(s, H, mask, keys)
                s = self.decoder(torch.cat([y, c], dim=-1), s)
                S.append(torch.cat([s, c], dim=-1))
            S = torch.tanh(self.readout(torch.stack(S, dim=1)))
        return torch.log_softmax(self.output(S), dim=-1)


@torch.no_grad()
def copy(cell: GRUCell, layer: nn.Module, suffix: str) -> None:
    """Our cell's weights into PyTorch's: of its two biases the second holds only what stands inside the reset."""
    getattr(layer, f"weight_ih{suffix}").copy_(cell.W_x)
    getattr(layer, f"weight_hh{suffix}").copy_(cell.W_h)
    getattr(layer, f"bias_ih{suffix}").copy_(cell.b)
    getattr(layer, f"bias_hh{suffix}").zero_()[-cell.d_h :] = cell.b_h


def _tatoeba(vocab_size: int, count: int) -> tuple[BytePairTokenizer, list]:
    """A joint tokenizer and the training pairs as ids."""
    pairs = load_corpus("tatoeba").train[:count]
    texts = [text for pair in pairs for text in (pair.japanese, pair.english)]
    tokenizer = BytePairTokenizer.train(texts, vocab_size, specials=SPECIALS)
    return tokenizer, [
        (tokenizer.encode(pair.japanese), tokenizer.encode(pair.english, start=True, end=True)) for pair in pairs
    ]


def against_pytorch(
    vocab_size: int = 4000, d_x: int = 192, d_h: int = 256, count: int = 4000, batch: int = 64, rounds: int = 7
) -> list[Row]:
    """One training step, loss to gradients, on Japanese and English; both give the same loss, which is asserted."""
    tokenizer, pairs = _tatoeba(vocab_size, count)
    batches = batches_by_length(pairs, batch, pad_id=0)
    rows = []
    for decoder in (Decoder, AttentionDecoder):
        torch.manual_seed(0)
        ours = Seq2Seq(tokenizer.vocab_size, d_x, d_h, decoder)
        theirs = OnTorch(ours)
        assert torch.allclose(translation_loss(ours, batches(0)), translation_loss(theirs, batches(0)), atol=1e-5)

        def step(model: nn.Module) -> Callable[[], None]:
            def work() -> None:
                for i in range(4):
                    model.zero_grad()
                    translation_loss(model, batches(i)).backward()

            return work

        times, seconds, seconds_theirs = ratio(step(ours), step(theirs), rounds)
        name = "nn.GRU" if decoder is Decoder else "nn.GRU and nn.GRUCell"
        details = f"batch {batch}, d_x {d_x}, d_h {d_h}, vocabulary {vocab_size}; "
        details += f"{250 * seconds:.3g} ms and {250 * seconds_theirs:.3g} ms a step"
        rows.append(Row(f"Seq2Seq, {decoder.__name__} / on {name}", times, 1.3, False, "times", details))
    return rows


def batched_greedy(count: int = 200, d_h: int = 256, vocab_size: int = 4000, rounds: int = 3) -> list[Row]:
    """Greedy decoding of test sentences, a hundred at a time or one after another: the same words, less work."""
    tokenizer, _ = _tatoeba(vocab_size, 4000)
    torch.manual_seed(0)
    model = Seq2Seq(tokenizer.vocab_size, 192, d_h).eval()
    sources = [tokenizer.encode(pair.japanese) for pair in load_corpus("tatoeba").test[:count]]

    def decode(batch_size: int) -> list[list[int]]:
        return greedy_all(model, sources, 20, batch_size)

    assert decode(100) == decode(1)
    times, seconds, seconds_batched = ratio(lambda: decode(1), lambda: decode(100), rounds)
    details = f"{count} sentences, 20 tokens each; {1e3 * seconds / count:.3g} ms and "
    details += f"{1e3 * seconds_batched / count:.3g} ms a sentence"
    return [Row("Greedy decoding, one at a time / 100 at a time", times, 5, True, "times", details)]


def byte_pairs(characters: int = 1_000_000, vocab_size: int = 4000, rounds: int = 3) -> list[Row]:
    """Learning a text's merges, beside the tokenizers library: the same vocabulary, which is asserted."""
    import tokenizers

    text = load_corpus("shakespeare").train[:characters]
    lines = text.splitlines(keepends=True)

    def theirs() -> dict[str, int]:
        other = tokenizers.Tokenizer(tokenizers.models.BPE())
        other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
        other.train_from_iterator(lines, trainer)
        return other.get_vocab()

    def ours() -> BytePairTokenizer:
        return BytePairTokenizer.train(lines, vocab_size)

    assert ours().vocab_size == len(theirs()) == vocab_size
    times, seconds, seconds_theirs = ratio(ours, theirs, rounds)
    details = f"{characters:,} characters, {vocab_size:,} tokens; {seconds:.3g} s and {seconds_theirs:.3g} s"
    return [Row("Learning byte pairs: our time / tokenizers'", times, 10, False, "times", details)]

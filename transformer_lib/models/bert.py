"""BERT: an encoder that sees both sides, and the heads that learn from it.

Chapter 11 pre-trains it, chapter 12 puts a head for each kind of task on top.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..checks import as_batch, require
from ..parts.attention import MultiHeadAttention
from ..parts.layers import EncoderLayer, FeedForward, LayerNorm
from ..parts.masks import padding_mask
from ..parts.positions import LearnedPositions
from .starts import start_small


class Bert(nn.Module):
    r"""$H_0 = \text{LayerNorm}(E_{token} + E_{segment} + E_{position})$, then Post-LN encoder layers with GELU: H, one
    row for each token, each of which saw all the others; pooled: $\tanh(W h_{[CLS]} + b)$.

    vocab_size; d_model, heads, layers, d_ff: width, heads, depth, inner width (BASE as they stand); longest: so many
    tokens at most; dropout: of the sums, the sub-layers and A; pad_id: what fills up shorter rows and is not looked at.
    Source: Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers (2019).
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 768,
        heads: int = 12,
        layers: int = 12,
        d_ff: int = 3072,
        longest: int = 512,
        dropout: float = 0.1,
        pad_id: int = 0,
        f: Callable[[Tensor], Tensor] = nn.functional.gelu,
    ):
        super().__init__()
        require(layers >= 1, f"layers: expected at least 1, got {layers}")
        require(0 <= pad_id < vocab_size, f"pad_id: expected an id below {vocab_size}, got {pad_id}")
        self.vocab_size, self.d_model, self.pad_id = vocab_size, d_model, pad_id
        self.embedding, self.segments = nn.Embedding(vocab_size, d_model), nn.Embedding(2, d_model)
        self.positions = LearnedPositions(longest, d_model)
        self.norm, self.dropout = LayerNorm(d_model), nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(
                MultiHeadAttention(d_model, heads, dropout=dropout), FeedForward(d_model, d_ff, f), dropout=dropout
            )
            for _ in range(layers)
        )
        self.pooler = nn.Linear(d_model, d_model)
        self.apply(start_as_bert)

    def forward(self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """H (batch, n, d_model) of the ids (batch, n).

        segments: 0 or 1 for each token, None: all 0; mask: what besides padding limits who looks where, for instance
        a causal mask (n, n): a model that reads from left to right only.
        """
        ids = as_batch(ids, self.vocab_size, "ids")
        segments = torch.zeros_like(ids) if segments is None else as_batch(segments, 2, "segments", len(ids))
        require(
            segments.shape == ids.shape,
            f"segments: expected one for each of the ids {tuple(ids.shape)}, got {tuple(segments.shape)}",
        )
        X = self.embedding(ids) + self.segments(segments) + self.positions(ids.shape[1])
        X, real = self.dropout(self.norm(X)), padding_mask(ids, self.pad_id)[:, None]
        for layer in self.layers:
            X = layer(X, real if mask is None else real & mask)
        return X

    def pooled(self, H: Tensor) -> Tensor:
        """One vector for the whole text (batch, d_model), from the row of [CLS]."""
        return torch.tanh(self.pooler(H[:, 0]))


class PretrainingHeads(nn.Module):
    """What BERT learns from: which token was masked, and whether B follows A.

    words: log probabilities over the vocabulary at every place, its matrix that of the embedding; follows: over 0 (B
    follows A) and 1 (it does not), from the pooled vector.
    """

    def __init__(self, bert: Bert):
        super().__init__()
        self.bert = bert
        self.transform, self.norm = nn.Linear(bert.d_model, bert.d_model), LayerNorm(bert.d_model)
        self.bias, self.next = nn.Parameter(torch.zeros(bert.vocab_size)), nn.Linear(bert.d_model, 2)
        for new in (self.transform, self.norm, self.next):  # the encoder may have learned already
            start_as_bert(new)

    @property
    def vocab_size(self) -> int:
        """The encoder's."""
        return self.bert.vocab_size

    def words(self, H: Tensor) -> Tensor:
        """Log probabilities (..., vocab_size) of the token at each place."""
        X = self.norm(nn.functional.gelu(self.transform(H)))
        return torch.log_softmax(X @ self.bert.embedding.weight.T + self.bias, dim=-1)

    def follows(self, H: Tensor) -> Tensor:
        """Log probabilities (batch, 2): B follows A, or does not."""
        return torch.log_softmax(self.next(self.bert.pooled(H)), dim=-1)

    def forward(self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Both: words (batch, n, vocab_size) and follows (batch, 2)."""
        H = self.bert(ids, segments, mask)
        return self.words(H), self.follows(H)


class Classifier(nn.Module):
    """One label for a text or a pair of texts: a linear layer over the pooled vector, with dropout before it."""

    def __init__(self, bert: Bert, classes: int, dropout: float = 0.1):
        super().__init__()
        require(classes >= 1, f"classes: expected at least 1, got {classes}")
        self.bert, self.dropout, self.output = bert, nn.Dropout(dropout), nn.Linear(bert.d_model, classes)
        start_as_bert(self.output)

    def scores(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """(batch, classes), before any softmax."""
        return self.output(self.dropout(self.bert.pooled(self.bert(ids, segments))))

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Log probabilities (batch, classes)."""
        return torch.log_softmax(self.scores(ids, segments), dim=-1)


class Chooser(Classifier):
    """Which of several texts goes on best (SWAG): each is scored on its own, softmax over the scores."""

    def __init__(self, bert: Bert, dropout: float = 0.1):
        super().__init__(bert, 1, dropout)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Log probabilities (batch, choices) of ids (batch, choices, n), each row the question and one choice."""
        require(ids.dim() == 3, f"ids: expected (batch, choices, n), got shape {tuple(ids.shape)}")
        scores = self.scores(ids.flatten(0, 1), None if segments is None else segments.flatten(0, 1))
        return torch.log_softmax(scores.view(ids.shape[:2]), dim=-1)


class SpanFinder(nn.Module):
    """Where an answer starts and ends in the text (SQuAD): two scores for each token; [CLS] stands for no answer."""

    def __init__(self, bert: Bert):
        super().__init__()
        self.bert, self.output = bert, nn.Linear(bert.d_model, 2)
        start_as_bert(self.output)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Scores of the start and of the end, each (batch, n)."""
        return self.output(self.bert(ids, segments)).unbind(dim=-1)


def best_span(
    start: Tensor, end: Tensor, allowed: Tensor, longest: int = 30, threshold: float = 0.0
) -> tuple[int, int] | None:
    r"""The span $i \le j$ with the largest $S_i + E_j$ within the passage, or None: no answer.

    start, end: scores S, E (n,) of one text; allowed (n,): True on the passage's tokens; longest: tokens an answer may
    have. SQuAD 2's rule: no answer where $S_0 + E_0$, those of [CLS], exceed the best span's by more than `threshold`.
    """
    require(
        start.dim() == 1 and start.shape == end.shape == allowed.shape,
        f"expected scores and passage of one text (n,), got {tuple(start.shape)}, {tuple(end.shape)}, "
        f"{tuple(allowed.shape)}",
    )
    n = len(start)
    both = allowed[:, None] & allowed & torch.ones(n, n, dtype=torch.bool).triu().tril(longest - 1)
    require(bool(both.any()), "allowed: expected at least one token of the passage, got none")
    total = (start[:, None] + end).masked_fill(~both, -torch.inf)
    i, j = divmod(int(total.argmax()), n)
    return None if start[0] + end[0] - total[i, j] > threshold else (i, j)


def start_as_bert(part: nn.Module) -> None:
    """`start_small`, and BERT's epsilon in every norm."""
    start_small(part)
    if isinstance(part, LayerNorm):
        part.epsilon = 1e-12

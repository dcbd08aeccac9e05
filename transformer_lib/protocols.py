"""What a language model answers, so that one `generate` and one `perplexity` serve them all.

Chapter 01 defines it; n-gram, RNN, LSTM, GRU and later GPT keep it.
"""

from typing import Any

from torch import Tensor

from .checks import as_ids, require


class LanguageModel:
    r"""A function from the words so far to a distribution over the next one, $P(w_t \mid w_1, \dots, w_{t-1})$.

    A subclass sets `vocab_size` and defines `step`; the rest follows. What the *state* is tells the models apart:
    the last n - 1 tokens for an n-gram, h for an RNN, (h, c) for an LSTM, a cache that grows for a Transformer.
    """

    vocab_size: int

    def step(self, ids: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Read ids, (n,) or (batch, n), on from a state; return log probabilities (..., n, vocab_size), new state.

        Row t of the result is the distribution over the token that follows ids[..., t]. State None: nothing read yet.
        """
        raise NotImplementedError

    def log_probs(self, ids: Tensor) -> Tensor:
        """The distributions after each of the ids in one pass: (..., n) -> (..., n, vocab_size), natural logarithms."""
        return self.step(ids)[0]

    def next_token_log_probs(self, prefix: Tensor) -> Tensor:
        """The distribution over the token that follows the prefix: (..., n) -> (..., vocab_size)."""
        require(len(prefix) > 0, "prefix: expected at least one token, got none; begin with the start token")
        return self.log_probs(prefix)[..., -1, :]

    def score(self, ids: Tensor, targets: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Log probability of each target, targets[..., t] following ids[..., t]: (..., n), and the new state."""
        targets = as_ids(targets, self.vocab_size, "targets")
        log_probs, state = self.step(ids, state)
        require(
            targets.shape == log_probs.shape[:-1],
            f"targets: expected the shape of ids {tuple(log_probs.shape[:-1])}, got {tuple(targets.shape)}",
        )
        return log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1), state


class SequenceToSequenceModel:
    r"""A conditional language model: $P(y_t \mid y_1, \dots, y_{t-1}, x_1, \dots, x_m)$, the source x read beforehand.

    A subclass defines `encode` and `step`. The memory carries the source's mask; everything is batched.
    """

    vocab_size: int
    pad_id: int  # of the target; the source's may be another
    source_pad_id: int
    start_id: int
    end_id: int

    def encode(self, source: Tensor) -> Any:
        """Read source ids (batch, m), padded with source_pad_id: the memory that every later step looks into."""
        raise NotImplementedError

    def step(self, ids: Tensor, memory: Any, state: Any = None) -> tuple[Tensor, Any]:
        """Read target ids (batch, n) on from a state: log probabilities (batch, n, vocab_size) and the new state."""
        raise NotImplementedError

    def choose(self, rows: Tensor, memory: Any, state: Any) -> tuple[Any, Any]:
        """The memory and the state of these rows of the batch, in this order: beam search goes on with them."""
        raise NotImplementedError

    def log_probs(self, source: Tensor, target: Tensor) -> Tensor:
        """The distributions after each of the target's ids, in one pass: (batch, n, vocab_size)."""
        return self.step(target, self.encode(source))[0]

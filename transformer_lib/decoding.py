"""From distributions to text: the generation loop, for anything that predicts a next token.

Chapter 01 defines `generate`; beam search joins it in chapter 10, the rules of what may be drawn in chapter 13.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .checks import as_ids, require
from .protocols import LanguageModel, SequenceToSequenceModel
from .training.translation import padded


@torch.no_grad()
def generate(
    model: LanguageModel,
    prefix: Tensor | Sequence[int],
    length: int,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    stop: int | None = None,
    keep: Callable[[Tensor], Tensor] | None = None,
) -> list[int]:
    r"""Predict a token, append it, predict again: the prefix and up to `length` tokens more.

    temperature T: the token is drawn from $P(w)^{1/T} / \sum_v P(v)^{1/T}$; 1 leaves the distribution as it is,
    0 always takes the most likely token.
    generator: makes the draw repeatable. stop: end after this token. keep: which tokens may be drawn at all, from log
    probabilities to the same with -inf for the others, such as `top_k_filter` with its k. The model reads every token
    once, its state is carried along. Source: the textbook's 7.1.3.
    """
    require(length >= 0, f"length: expected 0 or more tokens, got {length}")
    new = as_ids(prefix, model.vocab_size, "prefix")
    require(
        new.dim() == 1 and len(new) > 0,
        f"prefix: expected one text of at least one token, got shape {tuple(new.shape)}",
    )
    ids, state = new.tolist(), None
    for _ in range(length):
        log_probs, state = model.step(new, state)
        new = draw_token(log_probs[-1], temperature, generator, keep)
        ids.append(int(new))
        if ids[-1] == stop:
            break
    return ids


def draw_token(
    log_probs: Tensor,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    keep: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    r"""One token from each distribution, (v,) -> (1,) or (batch, v) -> (batch, 1): filtered first, then tempered.

    The arguments are those of `generate`.
    """
    require(0 <= temperature < math.inf, f"temperature: expected a number from 0, got {temperature}")
    log_probs = log_probs if keep is None else keep(log_probs)
    largest = _no_nan(log_probs).amax(dim=-1, keepdim=True)
    require(
        bool((largest > -torch.inf).all()),
        "model: expected a distribution over the next token, got 0 for every token (a context never seen, "
        "without smoothing); choose a smoothing",
    )
    if temperature == 0:
        return log_probs.argmax(dim=-1, keepdim=True)
    # The largest is 0 before it is divided: so it stays, however small the temperature.
    p = torch.softmax((log_probs.double() - largest) / temperature, dim=-1)
    return torch.multinomial(p, 1, generator=generator)


@torch.no_grad()
def generate_all(
    model: LanguageModel,
    prefixes: Sequence[Sequence[int]],
    length: int,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    stop: int | None = None,
    keep: Callable[[Tensor], Tensor] | None = None,
) -> list[list[int]]:
    """`generate` for several prefixes at once, of any lengths: each and up to `length` tokens more, in their order.

    All rows go forward together, without padding: the shortest prefix is read, and from there on a row whose prefix
    goes on takes its own next token, another one the token drawn; a row that has ended repeats its last token, and
    nobody looks. At temperature 0 the results are those of `generate`.
    """
    require(length >= 0, f"length: expected 0 or more tokens, got {length}")
    rows = [as_ids(prefix, model.vocab_size, "prefixes").tolist() for prefix in prefixes]
    require(len(rows) > 0 and all(rows), "prefixes: expected some, each of at least one token")
    ends, place, state = [len(row) + length for row in rows], min(map(len, rows)), None
    new = [row[:place] for row in rows]
    while any(len(row) < end for row, end in zip(rows, ends)):
        log_probs, state = model.step(torch.tensor(new), state)
        going = [i for i, row in enumerate(rows) if place == len(row) < ends[i]]
        for i, token in zip(going, draw_token(log_probs[going, -1], temperature, generator, keep)[:, 0].tolist()):
            rows[i].append(token)
            ends[i] = len(rows[i]) if token == stop else ends[i]
        new = [[row[min(place, len(row) - 1)]] for row in rows]
        place += 1
    return rows


def top_k_filter(log_probs: Float[Tensor, "*batch v"], k: int) -> Float[Tensor, "*batch v"]:
    """The k most likely tokens stay as they are, all others become -inf (tied with the k-th: they stay, too).

    Equal to transformers' TopKLogitsWarper. Source: Fan, Lewis and Dauphin, Hierarchical Neural Story Generation
    (2018).
    """
    require(k >= 1, f"k: expected at least 1, got {k}")
    smallest = log_probs.topk(min(k, log_probs.shape[-1]), dim=-1).values[..., -1:]
    return log_probs.masked_fill(log_probs < smallest, -torch.inf)


def top_p_filter(log_probs: Float[Tensor, "*batch v"], p: float) -> Float[Tensor, "*batch v"]:
    """The smallest set of most likely tokens whose probabilities reach p stays, never empty; others become -inf.

    Of equally likely tokens the first ones stay; p = 1 keeps all that are possible. What another filter left is
    taken as the whole. Equal to transformers' TopPLogitsWarper, but that one keeps the last of equally likely ones, and
    adds up in the scores' own number format. Source: Holtzman et al., The Curious Case of Neural Text Degeneration
    (2020).
    """
    require(0 < p <= 1, f"p: expected above 0 and at most 1, got {p}")
    ranked, order = log_probs.sort(dim=-1, descending=True, stable=True)
    reached = (ranked.double().softmax(dim=-1).cumsum(dim=-1) >= p) & (p < 1)
    beyond = torch.zeros_like(reached).scatter(-1, order[..., 1:], reached[..., :-1])
    return log_probs.masked_fill(beyond, -torch.inf)


@torch.no_grad()
def greedy(model: SequenceToSequenceModel, source: Tensor, length: int) -> list[list[int]]:
    """The most likely token at each step, until the end token or `length` tokens; one list of ids a source row.

    source: (batch, m), padded with the model's pad_id. The lists hold neither the start nor the end token.
    """
    require(length >= 1, f"length: expected at least 1 token, got {length}")
    memory, state = model.encode(source), None
    new = torch.full((len(source), 1), model.start_id)
    rows, ended = [], torch.zeros(len(source), dtype=torch.bool)
    for _ in range(length):
        log_probs, state = model.step(new, memory, state)
        new = _no_nan(log_probs[:, -1]).argmax(dim=-1, keepdim=True)
        rows.append(new[:, 0])
        ended |= new[:, 0] == model.end_id
        if ended.all():
            break
    return [_until(row, model.end_id) for row in torch.stack(rows, dim=1).tolist()]


def greedy_all(
    model: SequenceToSequenceModel, sources: Sequence[Sequence[int]], length: int, batch_size: int = 200
) -> list[list[int]]:
    """`greedy` for any number of sources of any lengths: one list of ids for each, in their order.

    Sources of similar length are read together, so that there is little padding; the results do not depend on it.
    """
    return _by_length(model, sources, batch_size, lambda batch: greedy(model, batch, length))


@dataclass(frozen=True)
class Hypothesis:
    """A translation, or the beginning of one: its ids after the start token, and log P of them all."""

    ids: list[int]
    log_prob: float

    def score(self, alpha: float) -> float:
        r"""$\log P / n^\alpha$, n tokens with the end token: without it short hypotheses win for being short."""
        return self.log_prob / len(self.ids) ** alpha


@torch.no_grad()
def beam_search(
    model: SequenceToSequenceModel,
    source: Tensor | Sequence[int],
    beam: int,
    length: int,
    alpha: float = 1.0,
    record: list[list[Hypothesis]] | None = None,
) -> list[Hypothesis]:
    r"""The best `beam` finished hypotheses for one source (m,), best first by $\log P / n^\alpha$.

    At each step every open hypothesis is continued by every token and the `beam` best continuations are kept; one that
    ends is set aside. The search stops when no open hypothesis can win any more (its log P only falls, so its best
    possible score is log P now over `length` tokens), or at `length` tokens; then what is open counts as it stands, if
    fewer than `beam` have ended. beam 1 finds what `greedy` finds, unless two tokens are exactly
    equally likely. record: a list that gets what each step kept.
    Source: Wu et al. (2016), section 7, for the length normalisation.
    """
    source = as_ids(source, 2**62, "source")  # the model says which ids there are
    require(source.dim() == 1, f"source: expected one text (m,), got shape {tuple(source.shape)}")
    return _search(model, source.unsqueeze(0), beam, length, alpha, record)[0]


@torch.no_grad()
def beam_search_all(
    model: SequenceToSequenceModel,
    sources: Sequence[Sequence[int]],
    beam: int,
    length: int,
    alpha: float = 1.0,
    batch_size: int = 50,
) -> list[list[Hypothesis]]:
    """`beam_search` for any number of sources of any lengths, many at a time: the hypotheses of each, in their order.

    Sources of similar length are read together; the results do not depend on it.
    """
    return _by_length(model, sources, batch_size, lambda batch: _search(model, batch, beam, length, alpha))


def _by_length(
    model: SequenceToSequenceModel,
    sources: Sequence[Sequence[int]],
    batch_size: int,
    translate: Callable[[Tensor], list[Any]],
) -> list[Any]:
    """What `translate` makes of each source, in their order; those of similar length go together."""
    require(batch_size >= 1, f"batch_size: expected at least 1, got {batch_size}")
    order, written = sorted(range(len(sources)), key=lambda i: len(sources[i])), {}
    for rows in (order[start : start + batch_size] for start in range(0, len(order), batch_size)):
        batch = padded([sources[i] for i in rows], model.source_pad_id)
        written |= zip(rows, translate(batch), strict=True)
    return [written[i] for i in range(len(sources))]


class _Beam:
    """One source's search: the hypotheses that are open (none: it is over), and the best that have ended."""

    def __init__(self, beam: int, length: int, alpha: float):
        self.beam, self.length, self.alpha = beam, length, alpha
        self.opened, self.done = [Hypothesis([], 0.0)], []

    def advance(self, log_probs: Tensor, end_id: int) -> tuple[list[int], list[Hypothesis]]:
        """Continue by every token, log_probs (open, v): the row that each hypothesis kept open grew from; all kept."""
        total = _no_nan(log_probs).double() + torch.tensor([[h.log_prob] for h in self.opened], dtype=torch.float64)
        values, places = total.flatten().topk(min(self.beam, total.numel()))
        grown = zip((places // total.shape[1]).tolist(), (places % total.shape[1]).tolist(), values.tolist())
        found = [(row, Hypothesis([*self.opened[row].ids, token], value)) for row, token, value in grown]
        ended = [h for _, h in found if h.ids[-1] == end_id]
        going = [(row, h) for row, h in found if h.ids[-1] != end_id]
        self.done = sorted([*self.done, *ended], key=lambda h: -h.score(self.alpha))[: self.beam]
        worst = self.done[-1].score(self.alpha) if len(self.done) == self.beam else -math.inf
        if all(h.log_prob / self.length**self.alpha <= worst for _, h in going):
            going = []
        self.opened = [h for _, h in going]
        return [row for row, _ in going], [h for _, h in found]

    def best(self) -> list[Hypothesis]:
        """What is left open at the end counts as it stands, if too few have ended."""
        candidates = self.done + (self.opened if len(self.done) < self.beam else [])
        return sorted(candidates, key=lambda h: -h.score(self.alpha))[: self.beam]


def _search(
    model: SequenceToSequenceModel,
    source: Tensor,
    beam: int,
    length: int,
    alpha: float,
    record: list[list[Hypothesis]] | None = None,
) -> list[list[Hypothesis]]:
    """Beam search for each row of source (batch, m), all of them in one step of the model at a time."""
    require(beam >= 1, f"beam: expected at least 1, got {beam}")
    require(length >= 1, f"length: expected at least 1 token, got {length}")
    require(0 <= alpha <= 10, f"alpha: expected from 0 (no normalisation) to 10, got {alpha}")
    beams = running = [_Beam(beam, length, alpha) for _ in source]
    memory, state = model.encode(source), None
    for _ in range(length):
        last = torch.tensor([[h.ids[-1] if h.ids else model.start_id] for one in running for h in one.opened])
        log_probs, state = model.step(last, memory, state)
        rows, first = [], 0
        for one in running:
            count = len(one.opened)
            kept, found = one.advance(log_probs[first : first + count, -1], model.end_id)
            rows += [first + row for row in kept]
            first += count
            if record is not None:
                record.append(found)
        running = [one for one in running if one.opened]
        if not running:
            break
        memory, state = model.choose(torch.tensor(rows), memory, state)
    return [one.best() for one in beams]


def _no_nan(log_probs: Tensor) -> Tensor:
    require(not bool(log_probs.isnan().any()), "model: expected log probabilities, got NaN; did its training diverge?")
    return log_probs


def _until(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids

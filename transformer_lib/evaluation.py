"""How good is a language model: the probability of a sentence, perplexity, bits per token.

Chapter 01 defines them; every later chapter measures with them.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .checks import are_several, as_ids, require
from .protocols import LanguageModel


@torch.no_grad()
def sentence_log_prob(model: LanguageModel, ids: Tensor | Sequence[int]) -> Tensor:
    r"""$\log P(w_1, \dots, w_n \mid w_0) = \sum_t \log P(w_t \mid w_0, \dots, w_{t-1})$, natural logarithm.

    ids: (n + 1,) or (batch, n + 1), beginning with what is given, usually the start token; its own probability is not
    counted. Returns a scalar or (batch,). Source: the textbook's 7.1.2.
    """
    ids = as_ids(ids, model.vocab_size)
    require(ids.shape[-1] >= 2, f"ids: expected a first token and at least one after it, got {ids.shape[-1]} in all")
    return model.score(ids[..., :-1], ids[..., 1:])[0].sum(-1)


@torch.no_grad()
def mean_log_prob(
    model: LanguageModel, ids: Tensor | Sequence[int] | Sequence[Sequence[int]], chunk: int = 4096
) -> float:
    """The mean of log P over every token but the first of each text, in nats: one sum over all, divided once.

    ids: one text (n,), read from start to end with the state carried on from chunk to chunk, so that the result does
    not depend on `chunk` (that only bounds memory); or several texts, each read from a fresh start.
    """
    require(chunk >= 1, f"chunk: expected at least 1 token at a time, got {chunk}")
    if are_several(ids):
        by_length = defaultdict(list)  # texts of one length go through together: no padding
        for text in ids:
            require(len(text) >= 2, f"ids: expected at least 2 tokens in each text, got {len(text)}")
            by_length[len(text)].append(text.tolist() if hasattr(text, "tolist") else text)
        batches = []
        for length, group in by_length.items():
            size = max(1, chunk // length)
            batches += [group[i : i + size] for i in range(0, len(group), size)]
        total = math.fsum(float(sentence_log_prob(model, batch).sum()) for batch in batches)
        return total / sum(len(text) - 1 for text in ids)
    ids = as_ids(ids, model.vocab_size)
    require(
        ids.dim() == 1 and len(ids) >= 2, f"ids: expected a text of at least 2 tokens, got shape {tuple(ids.shape)}"
    )
    sums, state = [], None
    for start in range(0, len(ids) - 1, chunk):
        end = min(start + chunk, len(ids) - 1)
        log_prob, state = model.score(ids[start:end], ids[start + 1 : end + 1], state)
        sums.append(float(log_prob.sum()))
    return math.fsum(sums) / (len(ids) - 1)


def perplexity(model: LanguageModel, ids: Tensor | Sequence[int] | Sequence[Sequence[int]], chunk: int = 4096) -> float:
    r"""$\exp\bigl(-\frac{1}{n} \sum_t \log P(w_t \mid w_{<t})\bigr)$: how many equal choices the model is left with.

    Infinite where the model gives some token probability 0. ids and chunk as in `mean_log_prob`.
    """
    try:
        return math.exp(-mean_log_prob(model, ids, chunk))
    except OverflowError:  # beyond what a float can hold, though no probability is 0
        return math.inf


def bits_per_token(
    model: LanguageModel, ids: Tensor | Sequence[int] | Sequence[Sequence[int]], chunk: int = 4096
) -> float:
    r"""$-\frac{1}{n} \sum_t \log_2 P(w_t \mid w_{<t})$: bits per character where tokens are characters."""
    return -mean_log_prob(model, ids, chunk) / math.log(2)


def bleu(*, hypotheses: Sequence[str], references: Sequence[str], samples: int = 0) -> dict[str, Any]:
    r"""BLEU and chrF of translations against one reference each, by sacrebleu.

    $\text{BLEU} = \text{BP} \cdot \exp\bigl(\frac{1}{4} \sum_{n=1}^{4} \ln p_n\bigr)$, p_n the share of n-grams that
    the reference has too, BP the penalty for being too short. Both are given by name, since BLEU is another number with
    the two exchanged. An empty hypothesis is a translation without any right n-gram; an empty reference is refused.
    samples: how many bootstrap samples of the sentences give the 95 % intervals; 0 gives none. Returns bleu, chrf,
    their signatures and, if asked for, bleu_interval and chrf_interval. BLEU cuts words as Western languages do (13a in
    the signature): for Japanese, which has no blanks, read chrF.
    Source: Papineni et al. (2002); Post, A Call for Clarity in Reporting BLEU Scores (2018).
    """
    from sacrebleu.metrics import BLEU, CHRF  # here: it takes a while to load, and few chapters need it

    require(samples == 0 or samples >= 2, f"samples: expected 0 (no intervals) or at least 2, got {samples}")
    _require_pairs("hypotheses", hypotheses, references)
    result = {}
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        score = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=max(samples, 1))
        result[name] = float(score.score)
        result[f"{name}_signature"] = str(metric.get_signature())
        if samples:
            result[f"{name}_interval"] = (float(score._mean - score._ci), float(score._mean + score._ci))
    return result


def paired_bootstrap(
    *, hypotheses: Sequence[str], baseline: Sequence[str], references: Sequence[str], samples: int = 1000, seed: int = 0
) -> dict[str, Any]:
    r"""By how much BLEU of the hypotheses is above BLEU of the baseline, and a 95 % interval of that difference.

    Both translate the same sentences, and what is hard for the one is often hard for the other. So the sentences are
    drawn, with replacement, and both translations of each go together. BLEU is a ratio of sums over sentences: each
    one's counts are taken once and added up anew for every draw.
    Returns gain, interval and share_better, the share of the draws in which the hypotheses have more. The interval is
    about the choice of sentences; what another training run would give it does not say.
    Source: Koehn, Statistical Significance Tests for Machine Translation Evaluation (2004).
    """
    from sacrebleu.metrics import BLEU

    require(samples >= 2, f"samples: expected at least 2, got {samples}")
    metric, sides = BLEU(), []
    for name, texts in (("hypotheses", hypotheses), ("baseline", baseline)):
        _require_pairs(name, texts, references)
        each = [metric.corpus_score([text], [[reference]]) for text, reference in zip(texts, references, strict=True)]
        sides.append(np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in each]))

    def gain(times: np.ndarray) -> float:
        new, old = ((times @ counts).tolist() for counts in sides)
        of = [metric.compute_bleu(s[:4], s[4:8], s[8], s[9], smooth_method="exp").score for s in (new, old)]
        return of[0] - of[1]

    n = len(references)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=samples)
    gains = np.array([gain(times) for times in draws])
    low, high = np.quantile(gains, (0.025, 0.975)).tolist()
    return {
        "gain": gain(np.ones(n, dtype=int)),
        "interval": (low, high),
        "share_better": float((gains > 0).mean()),
    }


def _require_pairs(name: str, texts: Sequence[str], references: Sequence[str]) -> None:
    """A text for each reference, and none of those without any text."""
    _require_texts(name, texts)
    _require_texts("references", references)
    empty = [i for i, reference in enumerate(references) if not reference.strip()]
    require(len(empty) == 0, f"references: expected some text in each, got none in those numbered {empty[:5]}")
    require(
        len(texts) == len(references) > 0,
        f"{name}: expected one for each reference, got {len(texts)} for {len(references)}",
    )


def _require_texts(name: str, texts: Sequence[str]) -> None:
    """A single text would count as a list of its characters."""
    odd = ["one text"] if isinstance(texts, str) else [f"a {type(t).__name__}" for t in texts if not isinstance(t, str)]
    require(len(odd) == 0, f"{name}: expected a list of texts, got {' and '.join(odd[:1])}")

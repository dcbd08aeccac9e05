"""The n-gram model against a plain one made of dictionaries, straight from the formulas, and against NLTK's.

Chapter 01.
"""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.lm import MLE, KneserNeyInterpolated, Lidstone
from nltk.lm.smoothing import KneserNey
from nltk.util import everygrams

from tests.one_line import one_line_error
from transformer_lib.models import NGramModel
from transformer_lib.models.ngram import SMOOTHINGS, discounts
from transformer_lib.models.ngram_counts import NOT_YET, UNSEEN, NGramCounts


class PlainNGram:
    """Chen and Goodman (1999), sections 2 and 3, word for word: slow, and easy to check by eye."""

    def __init__(self, texts, n, vocab_size, smoothing, k=1.0, discount=None):
        self.n, self.V, self.smoothing, self.k, self.discount = n, vocab_size, smoothing, k, discount
        raw = [Counter() for _ in range(n + 1)]
        before = [defaultdict(set) for _ in range(n + 1)]  # which tokens came before a run
        opening = [Counter() for _ in range(n + 1)]  # runs at a text's start: nothing came before
        for text in texts:
            for j in range(1, n + 1):
                for i in range(len(text) - j + 1):
                    run = tuple(text[i : i + j])
                    raw[j][run] += 1
                    if i > 0:
                        before[j][run].add(text[i - 1])
                    elif j > 1:  # a text's first token is given: no context predicts it
                        opening[j][run] += 1
        self.tables = [None]
        for j in range(1, n + 1):
            if smoothing.endswith("kneser-ney") and j < n:
                self.tables.append({run: len(before[j][run]) + opening[j][run] for run in raw[j]})
            else:
                self.tables.append(dict(raw[j]))

    def discount_of(self, order, count):
        many = Counter(self.tables[order].values())
        n1, n2, n3, n4 = (many[j] for j in (1, 2, 3, 4))
        if self.discount is not None:
            return self.discount
        if self.smoothing == "kneser-ney":
            return n1 / (n1 + 2 * n2) if n1 and n2 else 0.5
        fallback = {1: 0.5, 2: 1.0, 3: 1.5}
        if not (n1 and n2 and n3 and n4):
            return fallback[min(count, 3)]
        y = n1 / (n1 + 2 * n2)
        estimate = {1: 1 - 2 * y * n2 / n1, 2: 2 - 3 * y * n3 / n2, 3: 3 - 4 * y * n4 / n3}
        return (estimate if min(estimate.values()) > 0 else fallback)[min(count, 3)]

    def p(self, w, context):
        """P(w | context), the context already cut."""
        followers = {v: self.tables[len(context) + 1].get((*context, v), 0) for v in range(self.V)}
        total = sum(followers.values())
        if self.smoothing == "none":
            return followers[w] / total if total else 0.0
        if self.smoothing == "add-k":
            return (followers[w] + self.k) / (total + self.k * self.V)
        lower = self.p(w, context[1:]) if context else 1 / self.V
        if total == 0:
            return lower
        order = len(context) + 1
        taken = {v: self.discount_of(order, count) for v, count in followers.items() if count}
        return (followers[w] - taken.get(w, 0)) / total + sum(taken.values()) / total * lower

    def distribution(self, prefix):
        context = tuple(prefix[-(self.n - 1) :]) if self.n > 1 else ()
        return torch.tensor([self.p(w, context) for w in range(self.V)], dtype=torch.float64)

    def followed(self, prefix):
        context = tuple(prefix[-(self.n - 1) :]) if self.n > 1 else ()
        return any((*context, v) in self.tables[len(context) + 1] for v in range(self.V))


@st.composite
def situations(draw, smoothings=SMOOTHINGS):
    """A vocabulary, texts, a model's settings, and a text to read with it."""
    V = draw(st.integers(1, 4))
    token = st.integers(0, V - 1)
    texts = draw(st.lists(st.lists(token, max_size=25), min_size=1, max_size=3).filter(any))
    settings = {
        "n": draw(st.integers(1, 5)),
        "vocab_size": V,
        "smoothing": draw(st.sampled_from(smoothings)),
        "k": draw(st.sampled_from([0.01, 0.5, 1.0, 3.0])),
        "discount": draw(st.sampled_from([None, None, 0.25, 0.9])),
    }
    return texts, settings, draw(st.lists(token, min_size=1, max_size=12))


def fitted(texts, settings):
    """A single text goes in as one text, several as several."""
    return NGramModel(**settings).fit(texts[0] if len(texts) == 1 else texts)


@settings(max_examples=200)
@given(situations())
def test_every_distribution_equals_the_plain_models(situation):
    texts, setting, reading = situation
    plain, model = PlainNGram(texts, **setting), fitted(texts, setting)
    for text in [*[t for t in texts if t], reading]:
        p = model.log_probs(torch.tensor(text)).exp()
        expected = torch.stack([plain.distribution(text[: t + 1]) for t in range(len(text))])
        torch.testing.assert_close(p, expected, rtol=1e-12, atol=1e-15)


@given(situations())
def test_probabilities_sum_to_one_after_every_context(situation):
    """Seen, never seen, too short, too long: all contexts of up to n tokens."""
    texts, setting, _ = situation
    plain, model = PlainNGram(texts, **setting), fitted(texts, setting)
    for length in range(1, min(setting["n"], 3) + 1):
        contexts = list(itertools.product(range(setting["vocab_size"]), repeat=length))
        sums = model.next_token_log_probs(torch.tensor(contexts)).exp().sum(-1)
        if setting["smoothing"] == "none":
            expected = torch.tensor([float(plain.followed(context)) for context in contexts], dtype=torch.float64)
        else:
            expected = torch.ones(len(contexts), dtype=torch.float64)
        torch.testing.assert_close(sums, expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=100)
@given(situations([s for s in SMOOTHINGS if s != "none"]))
def test_smoothing_leaves_no_token_without_probability(situation):
    texts, setting, reading = situation
    assert fitted(texts, setting).log_probs(torch.tensor(reading)).min() > -math.inf


def test_an_estimate_of_no_discount_is_no_reason_for_probability_zero():
    """In such texts the formula for the modified discounts gives 0 or less: a context would keep nothing back."""
    generator = torch.Generator().manual_seed(1)
    least = min(
        float(NGramModel(3, 5).fit(torch.randint(0, 4, (60,), generator=generator)).log_probs(contexts)[:, -1].min())
        for contexts in [torch.tensor(list(itertools.product(range(5), repeat=2)))]
        for _ in range(100)
    )
    assert least > -10


@given(situations())
def test_score_is_the_entry_of_step(situation):
    texts, setting, reading = situation
    model = fitted(texts, setting)
    ids, targets = torch.tensor(reading), torch.tensor(reading[1:] + reading[:1])
    log_probs, state = model.step(ids)
    scores, state_too = model.score(ids, targets)
    torch.testing.assert_close(scores, log_probs.gather(-1, targets[:, None])[:, 0], rtol=1e-12, atol=0)
    assert torch.equal(state, state_too)


@given(situations(), st.data())
def test_reading_in_pieces_equals_reading_at_once(situation, data):
    texts, setting, reading = situation
    model = fitted(texts, setting)
    whole, end = model.step(torch.tensor(reading))
    pieces, state, rest = [], None, reading
    while rest:
        length = data.draw(st.integers(1, len(rest)))
        log_probs, state = model.step(torch.tensor(rest[:length]), state)
        pieces.append(log_probs)
        rest = rest[length:]
    assert torch.equal(torch.cat(pieces), whole)
    assert torch.equal(state, end)
    assert state.tolist() == [reading[max(0, len(reading) - setting["n"] + 1) :]]


@given(situations(), st.integers(1, 4))
def test_a_batch_equals_its_rows_one_by_one(situation, rows):
    texts, setting, reading = situation
    model = fitted(texts, setting)
    batch = torch.stack([torch.tensor(reading).roll(row) for row in range(rows)])
    log_probs, state = model.step(batch)
    scores, _ = model.score(batch, batch.roll(1, dims=-1), state)
    assert log_probs.shape == (rows, len(reading), setting["vocab_size"]) and scores.shape == batch.shape
    for row in range(rows):
        alone, state_alone = model.step(batch[row])
        assert torch.equal(log_probs[row], alone)
        assert torch.equal(scores[row], model.score(batch[row], batch[row].roll(1), state_alone)[0])


@given(situations(), st.integers(1, 5), st.sampled_from(SMOOTHINGS))
def test_the_same_counts_serve_another_smoothing_and_a_smaller_n(situation, n, smoothing):
    texts, setting, reading = situation
    model = fitted(texts, setting)
    n = min(n, setting["n"])
    changed = setting | {"n": n, "smoothing": smoothing, "k": 2.0, "discount": 0.4}
    before = model.log_probs(torch.tensor(reading))
    other = model.using(n=n, smoothing=smoothing, k=2.0, discount=0.4)
    assert torch.equal(other.log_probs(torch.tensor(reading)), fitted(texts, changed).log_probs(torch.tensor(reading)))
    assert torch.equal(model.log_probs(torch.tensor(reading)), before)  # the first is as it was
    assert other.counts is model.counts


def test_using_keeps_what_is_not_named():
    model = NGramModel(3, 4, smoothing="add-k", k=0.25, discount=0.5).fit([0, 1, 2, 3])
    for other in (model.using(), model.using(n=2)):
        assert (other.smoothing, other.k, other.discount, other.vocab_size) == ("add-k", 0.25, 0.5, 4)
    assert model.using().n == 3 and model.using(n=2).n == 2
    assert model.using(n=1).using(n=3).n == 3  # the counts are still there


@given(situations())
def test_rows_of_a_tensor_are_texts(situation):
    texts, setting, reading = situation
    rows = [text[:3] for text in texts if len(text) >= 3] or [reading]
    as_rows = NGramModel(**setting).fit(torch.tensor(rows))
    as_lists = NGramModel(**setting).fit(rows)
    as_tensors = NGramModel(**setting).fit([torch.tensor(row) for row in rows])
    for other in (as_lists, as_tensors):
        assert torch.equal(as_rows.log_probs(torch.tensor(reading)), other.log_probs(torch.tensor(reading)))


def test_no_run_reaches_across_the_border_of_two_texts():
    model = NGramModel(2, 3).fit([[0, 1], [2, 0]])
    assert model.count([0, 1]) == 1 and model.count([2, 0]) == 1
    assert model.count([1, 2]) == 0
    assert NGramModel(2, 3).fit([0, 1, 2, 0]).count([1, 2]) == 1


@given(situations(), st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_count_is_the_number_of_places(situation, run):
    texts, setting, _ = situation
    run = [token % setting["vocab_size"] for token in run[: setting["n"]]]
    places = sum(text[i : i + len(run)] == run for text in texts for i in range(len(text)))
    assert fitted(texts, setting).count(run) == places


@given(situations(), st.lists(st.lists(st.integers(0, 3), max_size=8), min_size=1, max_size=3).filter(any))
def test_unseen_shares_are_those_of_plain_lists_of_runs(situation, held_out):
    texts, setting, _ = situation
    held_out = [[token % setting["vocab_size"] for token in text] for text in held_out]
    shares = fitted(texts, setting).unseen_shares(held_out)
    assert len(shares) == setting["n"]
    for j, share in enumerate(shares, start=1):
        seen = {tuple(text[i : i + j]) for text in texts for i in range(len(text) - j + 1)}
        runs = [tuple(text[i : i + j]) for text in held_out for i in range(len(text) - j + 1)]
        expected = sum(run not in seen for run in runs) / len(runs) if runs else math.nan
        assert share == pytest.approx(expected, nan_ok=True)


def test_unseen_shares_of_one_text_by_hand():
    """Runs of [0, 2, 0, 1]: the 2 is new, so are 0 2 and 2 0, and every run of three."""
    assert NGramModel(3, 3).fit([0, 1, 0, 1]).unseen_shares([0, 2, 0, 1]) == pytest.approx([1 / 4, 2 / 3, 1])


def test_thirty_of_a_hundred_are_three_tenths():
    """The context (0, 1) a hundred times, thirty times followed by 2."""
    texts = [[0, 1, 2]] * 30 + [[0, 1, 3]] * 70
    model = NGramModel(3, 5, smoothing="none").fit(texts)
    assert model.count([0, 1]) == 100 and model.count([0, 1, 2]) == 30 and model.count([0, 1, 4]) == 0
    p = model.next_token_log_probs(torch.tensor([0, 1])).exp()
    assert p.tolist() == pytest.approx([0, 0, 0.3, 0.7, 0], abs=1e-15)
    p = model.using(smoothing="add-k", k=2.0).next_token_log_probs(torch.tensor([0, 1])).exp()
    assert p.tolist() == pytest.approx([2 / 110, 2 / 110, 32 / 110, 72 / 110, 2 / 110], abs=1e-15)
    p = model.using(smoothing="kneser-ney", n=3, discount=0.5).next_token_log_probs(torch.tensor([0, 1])).exp()
    # Below, (1, 2) and (1, 3) came after one token each: 0.25 and 0.25 of order 2, and order 1 has what those leave.
    # Order 1: 0 opened every text and came after nothing; 1, 2, 3 came after one token each; three discounts are left.
    p_1 = [0, 0.5 / 3, 0.5 / 3, 0.5 / 3, 0]
    p_1 = [x + 3 * 0.5 / 3 / 5 for x in p_1]
    p_2 = [x + 0.5 * lower for x, lower in zip([0, 0, 0.25, 0.25, 0], p_1)]
    p_3 = [x + 0.01 * lower for x, lower in zip([0, 0, 0.295, 0.695, 0], p_2)]
    assert p.tolist() == pytest.approx(p_3, abs=1e-15)


@given(situations(), st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_a_prefix_is_cut_to_its_last_n_minus_1_tokens(situation, longer):
    texts, setting, reading = situation
    model = fitted(texts, setting)
    prefix = [t % setting["vocab_size"] for t in longer] + reading + reading * 4
    kept = prefix[len(prefix) - max(1, setting["n"] - 1) :]
    assert torch.equal(model.next_token_log_probs(torch.tensor(prefix)), model.next_token_log_probs(torch.tensor(kept)))


@given(situations(), st.integers(1, 5))
def test_scoring_in_pieces_equals_scoring_at_once(situation, cut):
    """Also where the second piece begins in the middle of what the model looks back at."""
    texts, setting, reading = situation
    model, ids = fitted(texts, setting), torch.tensor(reading * 2)
    whole, _ = model.score(ids[:-1], ids[1:])
    cut = min(cut, len(ids) - 1)
    first, state = model.score(ids[:cut], ids[1 : cut + 1])
    if cut < len(ids) - 1:
        rest, _ = model.score(ids[cut:-1], ids[cut + 1 :], state)
        assert torch.equal(torch.cat([first, rest]), whole)


def test_settings_have_the_documented_defaults():
    model = NGramModel(2, 7)
    assert (model.n, model.vocab_size, model.smoothing) == (2, 7, "modified-kneser-ney")
    assert (model.k, model.discount, model.counts) == (1.0, None, None)
    assert SMOOTHINGS == ("none", "add-k", "kneser-ney", "modified-kneser-ney")


def test_fit_returns_the_model_and_counts_anew():
    model = NGramModel(2, 3)
    assert model.fit([0, 1, 0, 1]) is model
    assert model.fit([2, 2]).count([0, 1]) == 0


def test_log_probabilities_are_float64_natural_logarithms():
    log_probs, _ = NGramModel(1, 4, smoothing="none").fit([0, 0, 1, 3]).step(torch.tensor([2]))
    assert log_probs.dtype == torch.float64 and log_probs.shape == (1, 4)
    assert log_probs[0].tolist() == [math.log(0.5), math.log(0.25), -math.inf, math.log(0.25)]


# ---- discounts by hand


def test_one_discount_by_hand():
    """Four counts of 1, three of 2: Y = 4 / (4 + 6)."""
    assert discounts(np.array([1, 1, 1, 1, 2, 2, 2, 5, 9]), modified=False).tolist() == [0, 0.4, 0.4, 0.4]


def test_three_discounts_by_hand():
    """n1, n2, n3, n4 = 4, 2, 1, 1: Y = 1/2; 1 - 2 Y 2/4 = 0.5; 2 - 3 Y 1/2 = 1.25; 3 - 4 Y 1/1 = 1."""
    assert discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4, 7, 7]), modified=True).tolist() == [0, 0.5, 1.25, 1.0]


@pytest.mark.parametrize("counts", [[], [1, 1, 3], [2, 2], [3, 4, 5]])
def test_one_discount_of_a_text_too_small_for_the_estimate(counts):
    assert discounts(np.array(counts, dtype=int), modified=False).tolist() == [0, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("counts", [[], [2, 3, 4], [1, 3, 4], [1, 2, 4], [1, 2, 3], [1, 2, 3, 5]])
def test_three_discounts_of_a_text_too_small_for_the_estimate(counts):
    assert discounts(np.array(counts, dtype=int), modified=True).tolist() == [0, 0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    "counts",
    [
        [1] * 4 + [2] * 2 + [3] * 2 + [4] * 3,  # 3 - 4 Y 3/2 = 0
        [1] * 4 + [2] * 2 + [3] * 1 + [4] * 9,  # below 0
        [1] * 4 + [2] * 2 + [3] * 3 + [4] * 1,  # 2 - 3 Y 3/2 = -0.25
    ],
)
def test_a_discount_of_0_or_less_is_no_estimate(counts):
    assert discounts(np.array(counts), modified=True).tolist() == [0, 0.5, 1.0, 1.5]


# ---- against NLTK


class WithUniformBelow(KneserNey):
    """NLTK's Kneser-Ney but for one thing: NLTK does not discount unigrams; here what is taken off is spread evenly.

    Chen and Goodman end the recursion so; without it a token never seen has probability 0.
    """

    def __init__(self, vocabulary, counter, order, discount, size):
        super().__init__(vocabulary, counter, order, discount)
        self.size = size

    def unigram_score(self, word):
        count, total = self._continuation_counts(word)
        types = len({w for (_,), followers in self.counts[2].items() for w in followers})
        return max(count - self.discount, 0) / total + self.discount * types / total / self.size


WORDS = "a rose is a rose is a rose and a nose is not a rose but a nose , is it not ?".split()
V = len(set(WORDS)) + 1  # NLTK's vocabulary has one entry more, for words never seen
NUMBER = {word: i for i, word in enumerate(sorted(set(WORDS)))}
IDS = [NUMBER[word] for word in WORDS]


def nltk_model(model, n, words):
    model.fit([list(everygrams(words, max_len=n))], words)
    return model


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("smoothing", ["none", "add-k"])
def test_equal_to_nltk(n, smoothing):
    theirs = nltk_model(MLE(n) if smoothing == "none" else Lidstone(0.3, n), n, WORDS)
    assert len(theirs.vocab) == V
    ours = NGramModel(n, V, smoothing=smoothing, k=0.3).fit(IDS)
    contexts = list(itertools.product(NUMBER, repeat=n - 1))[:: max(1, len(NUMBER) ** (n - 1) // 150)]
    contexts += [tuple(WORDS[i : i + n - 1]) for i in range(len(WORDS) - n + 2)]
    for context in contexts:
        ids = torch.tensor([NUMBER[w] for w in context] or [0])
        p = ours.next_token_log_probs(ids).exp().tolist()
        for word, number in NUMBER.items():
            assert p[number] == pytest.approx(theirs.unmasked_score(word, context), abs=1e-12)
        if smoothing == "add-k":
            assert p[V - 1] == pytest.approx(theirs.unmasked_score("never", context), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("discount", [0.1, 0.75])
def test_equal_to_nltks_kneser_ney(n, discount):
    """NLTK ignores a run that opens a text; we count it. A start token before the text makes the two the same."""
    theirs = KneserNeyInterpolated(n, discount)
    theirs = nltk_model(theirs, n, ["(opening)", *WORDS])
    theirs.estimator = WithUniformBelow(theirs.vocab, theirs.counts, n, discount, V + 1)
    ours = NGramModel(n, V + 1, smoothing="kneser-ney", discount=discount).fit([V, *IDS])
    contexts = list(itertools.product(NUMBER, repeat=n - 1))[:: max(1, len(NUMBER) ** (n - 1) // 40)]
    contexts += [tuple(WORDS[i : i + n - 1]) for i in range(len(WORDS) - n + 2)]
    for context in contexts:
        p = ours.next_token_log_probs(torch.tensor([NUMBER[w] for w in context])).exp().tolist()
        for word, number in NUMBER.items():
            assert p[number] == pytest.approx(theirs.unmasked_score(word, context), abs=1e-12)
        assert p[V - 1] == pytest.approx(theirs.unmasked_score("never", context), abs=1e-12)


def test_a_start_token_is_never_likelier_than_a_token_never_seen():
    """It opens every sentence and follows nothing: after a context never seen it has what the uniform order leaves."""
    start, never = 5, 6
    generator = torch.Generator().manual_seed(0)
    texts = [[start, *torch.randint(0, 5, (4,), generator=generator).tolist()] for _ in range(200)]
    for smoothing in ("kneser-ney", "modified-kneser-ney"):
        p = NGramModel(3, 7, smoothing=smoothing).fit(texts).next_token_log_probs(torch.tensor([never, never])).exp()
        assert p[start] == p[never] < p[:5].min()


# ---- the counts themselves


def test_the_counts_by_hand():
    counts = NGramCounts([np.array([0, 1, 0, 1]), np.array([1, 1])], 2, 2)
    assert sorted(counts.key) == [1, 2]  # no longer run than will be asked for
    assert counts.key[1].tolist() == [0, 1] and counts.counts[1].tolist() == [2, 4]
    assert counts.begins[1].tolist() == [1, 1]
    assert counts.key[2].tolist() == [1, 2, 3] and counts.counts[2].tolist() == [2, 1, 1]  # (0, 1), (1, 0), (1, 1)
    assert counts.context[2].tolist() == [0, 1, 1] and counts.last[2].tolist() == [1, 0, 1]
    assert counts.suffix[2].tolist() == [1, 0, 1] and counts.begins[2].tolist() == [1, 0, 1]
    assert counts.continuation_counts(1).tolist() == [1, 2]
    assert counts.contexts(1) == 1 and counts.contexts(2) == 2
    assert [counts.of(np.array(run)) for run in ([0], [1], [0, 1], [1, 0], [1, 1], [0, 0])] == [2, 4, 2, 1, 1, 0]


def test_places_without_a_run_are_told_apart():
    counts = NGramCounts([np.array([0, 1, 2])], 3, 4)
    nodes = counts.walk(np.array([[0, 1, 3, 1]]), 2)
    assert nodes[0].tolist() == [[0, 0, 0, 0]]
    assert nodes[1].tolist() == [[0, 1, UNSEEN, 1]]
    assert nodes[2].tolist() == [[NOT_YET, 0, UNSEEN, UNSEEN]]
    assert UNSEEN != NOT_YET and UNSEEN < 0 and NOT_YET < 0


def test_an_order_longer_than_every_text_is_no_error():
    model = NGramModel(5, 3).fit([0, 1])
    assert model.count([0, 1, 2, 0, 1]) == 0
    assert float(model.log_probs(torch.tensor([0, 1, 2, 0, 1, 2, 2])).exp().sum()) == pytest.approx(7)


# ---- bad input


@pytest.mark.parametrize("n", [0, -1, 2.0, "2", None])
def test_an_order_below_one_is_refused(n):
    with one_line_error("n: expected a whole number from 1", f"got {n!r}"):
        NGramModel(n, 5)


@pytest.mark.parametrize("smoothing", ["kneser", "", "None", "add_k"])
def test_an_unknown_smoothing_is_refused(smoothing):
    with one_line_error("none, add-k, kneser-ney, modified-kneser-ney", f"got {smoothing!r}"):
        NGramModel(2, 5, smoothing=smoothing)


@pytest.mark.parametrize("k", [0, -1.0, math.nan])
def test_a_k_of_0_or_less_is_refused(k):
    with one_line_error("k: expected a number above 0", f"got {k}", "smoothing='none'"):
        NGramModel(2, 5, smoothing="add-k", k=k)


@pytest.mark.parametrize("discount", [0, 0.0, 1, 1.5, -0.1, math.nan])
def test_a_discount_outside_0_and_1_is_refused(discount):
    with one_line_error("discount: expected a number between 0 and 1", f"got {discount}"):
        NGramModel(2, 5, discount=discount)


@pytest.mark.parametrize("text", [[], [[]], [[], []], torch.tensor([])])
def test_an_empty_text_is_refused(text):
    model = NGramModel(2, 5)
    with one_line_error("ids: expected a text of at least one token, got an empty one"):
        model.fit(text)
    assert model.counts is None


def test_a_refused_text_leaves_the_old_counts():
    model = NGramModel(2, 5).fit([0, 1])
    for bad in ([], [5], [-1], [0.5], [[0, 1], [7]], [[[0]]], "abc"):
        with one_line_error():
            model.fit(bad)
    assert model.count([0, 1]) == 1


@pytest.mark.parametrize("ids", [[0, 5], [-1, 0]])
def test_ids_outside_the_vocabulary_are_refused(ids):
    with one_line_error("text: expected ids from 0 to 4", f"got {5 if 5 in ids else -1}"):
        NGramModel(2, 5).fit(ids)
    model = NGramModel(2, 5).fit([0, 1])
    with one_line_error("ids: expected ids from 0 to 4"):
        model.step(torch.tensor(ids))
    with one_line_error("ids: expected ids from 0 to 4"):
        model.score(torch.tensor(ids), torch.tensor([0, 0]))
    with one_line_error("targets: expected ids from 0 to 4"):
        model.score(torch.tensor([0, 0]), torch.tensor(ids))
    with one_line_error("tokens: expected ids from 0 to 4"):
        model.count(ids)
    with one_line_error("state: expected ids from 0 to 4"):
        model.step(torch.tensor([0]), torch.tensor([ids]))


def test_a_model_that_has_counted_nothing_says_so():
    model = NGramModel(2, 5)
    for use in (
        lambda: model.count([0]),
        lambda: model.step(torch.tensor([0])),
        lambda: model.score(torch.tensor([0]), torch.tensor([0])),
        lambda: model.next_token_log_probs(torch.tensor([0])),
        lambda: model.using(n=1),
    ):
        with one_line_error("model: expected one that has counted a text", "call fit first"):
            use()


def test_a_run_longer_than_n_was_never_counted():
    model = NGramModel(2, 5).fit([0, 1, 2])
    with one_line_error("at most 2 tokens", "got 3"):
        model.count([0, 1, 2])
    with one_line_error("at most 2 tokens", "got 3"):
        model.using(n=3)
    assert NGramModel(3, 5).fit([0, 1, 2]).using(n=2).count([0, 1, 2]) == 1


def test_an_empty_run_is_refused():
    with one_line_error("tokens: expected at least one, got none"):
        NGramModel(2, 5).fit([0, 1]).count([])


@pytest.mark.parametrize("n", [0, -1])
def test_another_order_below_one_is_refused_too(n):
    with one_line_error("n: expected a whole number from 1", f"got {n}"):
        NGramModel(2, 5).fit([0, 1]).using(n=n)


def test_an_empty_prefix_is_refused():
    model = NGramModel(2, 5).fit([0, 1])
    with one_line_error("at least one token, got none"):
        model.next_token_log_probs(torch.tensor([], dtype=torch.long))
    with one_line_error("at least one token, got none"):
        model.step(torch.tensor([], dtype=torch.long))
    with one_line_error("at least one token, got none"):
        model.step(torch.zeros(2, 0, dtype=torch.long))


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 4), (1, 3)])
def test_targets_of_another_shape_are_refused(shape):
    model = NGramModel(2, 5).fit([0, 1])
    with one_line_error("targets: expected the shape of ids (2, 3)", f"got {shape}"):
        model.score(torch.zeros(2, 3, dtype=torch.long), torch.zeros(shape, dtype=torch.long))


@pytest.mark.parametrize("shape", [(3, 1), (1, 1), (2,)])
def test_a_state_of_other_texts_is_refused(shape):
    model = NGramModel(2, 5).fit([0, 1])
    with one_line_error("state: expected the last tokens of 2 texts", f"got shape {shape}"):
        model.step(torch.zeros(2, 3, dtype=torch.long), torch.zeros(shape, dtype=torch.long))

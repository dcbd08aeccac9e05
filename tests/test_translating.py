"""Greedy and beam search against looking at every possible sentence, and BLEU against counting by hand.

Chapters 04, 05 and 10.
"""

import itertools
import math

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models_by_hand import TableTranslator
from tests.one_line import one_line_error
from transformer_lib.decoding import Hypothesis, beam_search, beam_search_all, greedy, greedy_all
from transformer_lib.evaluation import bleu, paired_bootstrap
from transformer_lib.models import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell
from transformer_lib.text import END as END_SIGN
from transformer_lib.text import PAD, UNKNOWN, BytePairTokenizer, WordTokenizer
from transformer_lib.text import START as START_SIGN
from transformer_lib.training import padded

END = 2


def model_of(decoder=AttentionDecoder, vocab_size=5, seed=0, cell=GRUCell):
    torch.manual_seed(seed)
    model = Seq2Seq(vocab_size, 4, 6, decoder, cell).double().eval()
    with torch.no_grad():  # a starting model hesitates between all tokens alike: make it choose
        model.output.weight *= 8
    return model


def every_hypothesis(model, source, length):
    """All sentences of up to so many tokens that end, and all of that length that do not."""
    others = [i for i in range(model.vocab_size) if i != END]
    for n in range(1, length + 1):
        for ids in itertools.product(others, repeat=n - 1):
            for last in [END] if n < length else range(model.vocab_size):
                yield [*ids, last]


@torch.no_grad()
def log_prob(model, source, ids):
    log_probs = model.log_probs(source[None], torch.tensor([[model.start_id, *ids[:-1]]]))[0]
    return float(log_probs.gather(-1, torch.tensor(ids)[:, None]).sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_a_beam_as_wide_as_the_search_finds_the_best_finished_sentence(seed, alpha):
    model, source = model_of(vocab_size=4, seed=seed), torch.tensor([3, 1, 3])
    scores = {
        tuple(ids): log_prob(model, source, ids) / len(ids) ** alpha
        for ids in every_hypothesis(model, source, 4)
        if ids[-1] == END
    }
    best = max(scores, key=scores.get)
    found = beam_search(model, source, beam=300, length=4, alpha=alpha)
    ended = [h for h in found if h.ids[-1] == END]
    assert tuple(ended[0].ids) == best
    assert ended[0].score(alpha) == pytest.approx(scores[best], rel=1e-9)


@pytest.mark.parametrize("decoder", [Decoder, AttentionDecoder])
@pytest.mark.parametrize("seed", range(6))
def test_beam_1_is_greedy_and_greedy_does_not_depend_on_the_batch(decoder, seed):
    model = model_of(decoder, vocab_size=9, seed=seed)
    sources = [torch.tensor(ids) for ids in ([3, 4, 5], [6, 7], [8])]
    batch = torch.tensor([[3, 4, 5], [6, 7, 0], [8, 0, 0]])
    together = greedy(model, batch, 8)
    for row, source in zip(together, sources):
        assert greedy(model, source[None], 8) == [row]
        (one,) = beam_search(model, source, beam=1, length=8)
        assert (one.ids[:-1] if one.ids[-1] == END else one.ids) == row
        assert one.log_prob == pytest.approx(log_prob(model, source, one.ids), rel=1e-9)


@settings(max_examples=60)
@given(
    decoder=st.sampled_from([Decoder, ContextDecoder, AttentionDecoder]),
    cell=st.sampled_from([RNNCell, GRUCell, LSTMCell]),
    seed=st.integers(0, 2**31),
    source=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    length=st.integers(1, 8),
)
def test_beam_1_is_greedy_for_every_decoder_and_cell(decoder, cell, seed, source, length):
    model, source = model_of(decoder, 8, seed, cell), torch.tensor(source)
    (found,) = beam_search(model, source, beam=1, length=length)
    (expected,) = greedy(model, source[None], length)
    assert (found.ids[:-1] if found.ids[-1] == END else found.ids) == expected
    assert len(found.ids) <= length


@settings(max_examples=30)
@given(
    decoder=st.sampled_from([Decoder, ContextDecoder, AttentionDecoder]),
    cell=st.sampled_from([RNNCell, GRUCell, LSTMCell]),
    seed=st.integers(0, 2**31),
    sources=st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=6), min_size=1, max_size=4),
    more=st.integers(0, 3),
)
def test_a_translation_does_not_depend_on_its_batch_or_its_padding(decoder, cell, seed, sources, more):
    model = model_of(decoder, 8, seed, cell)
    width = max(map(len, sources)) + more
    batch = torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in sources])
    assert greedy(model, batch, 6) == [greedy(model, torch.tensor([ids]), 6)[0] for ids in sources]


@st.composite
def tables(draw):
    """Of small fractions, so that equal scores happen; and of numbers that hardly ever meet."""
    size = draw(st.integers(3, 6))
    weight = draw(st.sampled_from([st.sampled_from([1.0, 2.0, 4.0]), st.floats(0.01, 1)]))
    rows = torch.tensor(draw(st.lists(st.lists(weight, min_size=size, max_size=size), min_size=size, max_size=size)))
    return (rows / rows.sum(-1, keepdim=True)).tolist()


def plain_beam_search(table, beam, length, alpha):
    """Step by step without tensors, always to the last step; and after which step the first could have stopped."""
    opened, done, stop = [([], 0.0)], [], None
    for step in range(1, length + 1):
        rows = torch.tensor([ids[-1] if ids else 1 for ids, _ in opened])
        total = (torch.tensor(table, dtype=torch.float64).log()[rows]) + torch.tensor(
            [[log_prob] for _, log_prob in opened], dtype=torch.float64
        )
        values, places = total.flatten().topk(min(beam, total.numel()))
        found = [
            ([*opened[place // len(table)][0], place % len(table)], value)
            for value, place in zip(values.tolist(), places.tolist())
        ]
        done += [h for h in found if h[0][-1] == END]
        opened = [h for h in found if h[0][-1] != END]
        best = sorted((value / len(ids) ** alpha for ids, value in done), reverse=True)[:beam]
        can_win = [value for _, value in opened if len(best) < beam or value / length**alpha > best[-1]]
        if stop is None and not can_win:
            stop = step
        if not opened:
            break
    ranked = sorted(done, key=lambda h: -h[1] / len(h[0]) ** alpha)
    if len(ranked) < beam:
        ranked = sorted(ranked + opened, key=lambda h: -h[1] / len(h[0]) ** alpha)
    return ranked[:beam], stop or length


@settings(max_examples=300)
@given(tables(), st.integers(1, 5), st.integers(1, 7), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
def test_beam_search_stops_as_soon_as_no_open_hypothesis_can_win_and_not_before(table, beam, length, alpha):
    expected, stop = plain_beam_search(table, beam, length, alpha)
    model = TableTranslator(table)
    found = beam_search(model, torch.tensor([3]), beam=beam, length=length, alpha=alpha)
    assert [h.score(alpha) for h in found] == pytest.approx([v / len(ids) ** alpha for ids, v in expected], abs=1e-12)
    assert all(h.log_prob == pytest.approx(log_prob_by_hand(table, h.ids), abs=1e-12) for h in found)
    assert len(model.sizes) == stop
    assert max(model.sizes) <= beam


def log_prob_by_hand(table, ids):
    return sum(math.log(table[last][new]) for last, new in zip([1, *ids], ids))


def test_scores_are_normalised_by_length_unless_said_otherwise():
    #        pad  start end   a
    table = [[0.1, 0.1, 0.7, 0.1], [0.01, 0.01, 0.4, 0.58], [0.1, 0.1, 0.7, 0.1], [0.01, 0.01, 0.6, 0.38]]
    model, source = TableTranslator(table), torch.tensor([3])
    assert beam_search(model, source, beam=3, length=5)[0].ids == [3, 2]  # log(0.58 * 0.6) / 2 > log 0.4
    assert beam_search(model, source, beam=3, length=5, alpha=0.0)[0].ids == [2]
    assert [h.ids for h in beam_search(model, source, beam=2, length=1)] == [[3], [2]]
    for beam, length in ((1, 4), (3, 6), (4, 2)):
        found = beam_search(model, source, beam=beam, length=length)
        assert found == beam_search(model, source, beam=beam, length=length, alpha=1.0)


@pytest.mark.parametrize("batch_size", [1, 3, 200])
def test_many_sources_are_translated_in_their_order_whatever_goes_together(batch_size):
    model = model_of()
    sources = [[3, 4, 3, 3], [4], [3, 4], [4, 4, 4], [3], [4, 3, 4, 3, 4], [3, 3]]
    alone = [greedy(model, torch.tensor([source]), length=6)[0] for source in sources]
    assert len({tuple(ids) for ids in alone}) > 1
    seen = []
    model.encode = lambda source, encode=model.encode: seen.append(tuple(source.shape)) or encode(source)
    assert greedy_all(model, sources, 6, batch_size) == alone
    if batch_size == 3:  # similar lengths together: no more padding than that
        assert seen == [(3, 2), (3, 4), (1, 5)]


def test_no_sources_and_no_batch():
    assert greedy_all(model_of(), [], 6) == []
    with one_line_error("batch_size: expected at least 1, got 0"):
        greedy_all(model_of(), [[3]], 6, 0)


def test_greedy_stops_when_every_translation_has_ended():
    """From token a: b, b, end. From b: end. The first row ends two steps before the second."""

    class TwoTables(TableTranslator):
        """The first source token chooses the row that the translation begins with."""

        def step(self, ids, memory, state=None):
            return super().step(ids if state else memory[:, :1], memory, state)

    chain = torch.full((7, 7), 0.01)
    for last, new in ((3, 2), (4, 5), (5, 6), (6, 2), (2, 3)):  # after the end token, anything but a second end
        chain[last, new] = 0.94
    model = TwoTables(chain)
    assert greedy(model, torch.tensor([[3], [4]]), 50) == [[], [5, 6]]
    assert len(model.sizes) == 3
    assert greedy(model, torch.tensor([[3], [4]]), 1) == [[], [5]]


def test_greedy_takes_the_most_likely_token_each_time_and_stops_at_the_end():
    for seed in range(6):
        model = model_of(vocab_size=6, seed=seed)
        source, ids = torch.tensor([[3, 4]]), [1]
        for _ in range(7):
            ids.append(int(model.log_probs(source, torch.tensor([ids]))[0, -1].argmax()))
            if ids[-1] == END:
                break
        expected = ids[1:-1] if ids[-1] == END else ids[1:]
        assert greedy(model, source, 7) == [expected]


def test_hypotheses_come_best_first_and_no_more_than_asked_for():
    found = beam_search(model_of(vocab_size=7), torch.tensor([3, 4, 5]), beam=4, length=6)
    scores = [h.score(1.0) for h in found]
    assert len(found) <= 4 and scores == sorted(scores, reverse=True)
    assert len({tuple(h.ids) for h in found}) == len(found)


def test_length_normalisation_by_hand():
    hypothesis = Hypothesis([3, 4, 5, 2], -2.0)
    assert hypothesis.score(1.0) == -0.5 and hypothesis.score(0.0) == -2.0 and hypothesis.score(0.5) == -1.0


def test_bad_input_is_refused():
    model, source = model_of(), torch.tensor([3])
    for options, message in (
        ({"beam": 0, "length": 3}, "beam: expected at least 1, got 0"),
        ({"beam": 1, "length": 0}, "length: expected at least 1 token, got 0"),
        ({"beam": 1, "length": 3, "alpha": -1}, "alpha: expected from 0 (no normalisation) to 10, got -1"),
        ({"beam": 1, "length": 3, "alpha": 500}, "alpha: expected from 0 (no normalisation) to 10, got 500"),
    ):
        with one_line_error(message):
            beam_search(model, source, **options)
    with one_line_error("length: expected at least 1 token, got 0"):
        greedy(model, source[None], 0)


# ---- bad input


SAMPLE = "猫は魚が好き。 犬は肉が好き。 the cat likes fish. the dog likes meat. " * 3
BYTE_PAIRS = BytePairTokenizer.train(SAMPLE, 300, specials=(PAD, START_SIGN, END_SIGN))
WORDS = WordTokenizer.train("猫 は 魚 が 好き 。", specials=(PAD, START_SIGN, END_SIGN, UNKNOWN), pattern=r"\S+")


@pytest.mark.parametrize("decoder", [Decoder, ContextDecoder, AttentionDecoder])
@pytest.mark.parametrize("tokenizer", [BYTE_PAIRS, WORDS], ids=["byte pairs", "words"])
@pytest.mark.parametrize(
    "text",
    ["ヌルポ ガッ 蠹", "This is Latin text, ¿verdad?", "猫 は 魚 が 好き 。 " * 100, "🙂", "。", "\u3000猫\r\n"],
    ids=["unknown", "latin", "long", "emoji", "mark", "blanks"],
)
def test_every_text_gets_a_translation(decoder, tokenizer, text):
    """Unknown words alone, another script, twenty times as long as any sentence trained on: some text comes out."""
    model = model_of(decoder, tokenizer.vocab_size)
    source = torch.tensor(tokenizer.encode(text))
    (ids,) = greedy(model, source[None], 12)
    (best, *_) = beam_search(model, source, beam=3, length=12)
    assert len(ids) <= 12 and len(best.ids) <= 12 and math.isfinite(best.log_prob) and best.log_prob < 0
    for found in (ids, best.ids):
        assert isinstance(tokenizer.decode(found), str)


def test_words_never_learned_are_all_one_unknown_word():
    assert WORDS.encode("ヌル ポ") == WORDS.encode("Latin text") == [3, 3]
    model = model_of(vocab_size=WORDS.vocab_size)
    assert greedy(model, torch.tensor([WORDS.encode("ヌル ポ")]), 9) == greedy(model, torch.tensor([[3, 3]]), 9)


@pytest.mark.parametrize("tokenizer", [BYTE_PAIRS, WORDS], ids=["byte pairs", "words"])
def test_an_empty_sentence_is_refused(tokenizer):
    model, nothing = model_of(vocab_size=tokenizer.vocab_size), torch.tensor(tokenizer.encode(""))
    for use in (
        lambda: greedy(model, nothing[None], 5),
        lambda: greedy(model, padded([tokenizer.encode("猫"), tokenizer.encode("")], model.pad_id), 5),
        lambda: beam_search(model, nothing, beam=2, length=5),
        lambda: model.log_probs(nothing[None], torch.tensor([[1]])),
    ):
        with one_line_error("source: expected at least one token in every row, got one of padding alone"):
            use()


def test_no_sentence_at_all_gives_no_translation():
    assert greedy(model_of(), torch.zeros(0, 3, dtype=torch.long), 5) == []


def test_greedy_takes_a_batch_and_beam_search_one_text():
    model = model_of()
    with one_line_error("source: expected a batch (batch, n), got shape (3,)"):
        greedy(model, torch.tensor([3, 4, 3]), 5)
    with one_line_error("source: expected one text (m,), got shape (1, 3)"):
        beam_search(model, torch.tensor([[3, 4, 3]]), beam=2, length=5)
    with one_line_error("source: expected ids from 0 to 4, got 5"):
        beam_search(model, torch.tensor([5]), beam=2, length=5)
    assert beam_search(model, [3, 4], beam=2, length=5) == beam_search(model, torch.tensor([3, 4]), beam=2, length=5)
    assert greedy(model, [[3, 4]], 5) == greedy(model, torch.tensor([[3, 4]]), 5)


# ---- BLEU


def test_bleu_by_hand():
    # 7 tokens each; 6, 4, 3 and 2 of the 1- to 4-grams agree
    result = bleu(hypotheses=["the cat sat on the mat today"], references=["the cat sat on the mat yesterday"])
    assert result["bleu"] == pytest.approx(100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25, rel=1e-9)
    assert bleu(hypotheses=["a b c d"], references=["a b c d"])["bleu"] == pytest.approx(100)
    short = bleu(hypotheses=["a b c d"], references=["a b c d e f"])["bleu"]
    assert short == pytest.approx(100 * math.exp(1 - 6 / 4), rel=1e-9)


sentence = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", "Don't", "魚"]), max_size=9)
reference = sentence.filter(len)


@given(st.lists(st.tuples(sentence.map(" ".join), reference.map(" ".join)), min_size=1, max_size=6))
def test_bleu_and_chrf_are_sacrebleus_own(pairs):
    hypotheses, references = ([pair[side] for pair in pairs] for side in (0, 1))
    result = bleu(hypotheses=hypotheses, references=references)
    assert result["bleu"] == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert result["chrf"] == sacrebleu.corpus_chrf(hypotheses, [references]).score


def test_hypotheses_and_references_cannot_be_confused():
    """BLEU is another number with the two exchanged: so it takes neither without its name."""
    hypotheses, references = ["the cat sat on the mat"], ["the cat sat on the mat by the door"]
    there = bleu(hypotheses=hypotheses, references=references)["bleu"]
    assert there != pytest.approx(bleu(hypotheses=references, references=hypotheses)["bleu"], rel=0.01)
    with pytest.raises(TypeError):
        bleu(hypotheses, references)
    with pytest.raises(TypeError):
        bleu(hypotheses, references=references)


def test_bleu_says_how_it_was_computed_and_how_sure_it_is():
    pairs = [("a b c d e", "a b c d f"), ("g h i j", "g h i j"), ("k l m n", "o p q r")] * 20
    hypotheses, references = zip(*pairs)
    result = bleu(hypotheses=hypotheses, references=references, samples=200)
    assert "tok:13a" in result["bleu_signature"] and "nc:6" in result["chrf_signature"]
    for name in ("bleu", "chrf"):
        low, high = result[f"{name}_interval"]
        assert low < result[name] < high
    assert result == bleu(hypotheses=hypotheses, references=references, samples=200)
    assert "bleu_interval" not in bleu(hypotheses=["a"], references=["a"])


def test_the_interval_is_that_of_as_many_samples_as_were_asked_for():
    pairs = [("a b c d e", "a b c d f"), ("g h i j", "g h i j"), ("k l m n", "o p q r")] * 5
    hypotheses, references = map(list, zip(*pairs))
    for samples in (2, 50):
        theirs = sacrebleu.metrics.BLEU().corpus_score(hypotheses, [references], n_bootstrap=samples)
        ours = bleu(hypotheses=hypotheses, references=references, samples=samples)["bleu_interval"]
        assert ours == pytest.approx((theirs._mean - theirs._ci, theirs._mean + theirs._ci), rel=1e-12)


@pytest.mark.parametrize("nothing", ["", "  ", "\n"])
def test_an_empty_hypothesis_has_nothing_right_and_counts(nothing):
    alone = bleu(hypotheses=[nothing], references=["a b c d"])
    assert alone["bleu"] == alone["chrf"] == 0
    good = ["a b c d e f", "g h i j k l"]
    half = bleu(hypotheses=[good[0], nothing], references=good)["bleu"]
    assert half == pytest.approx(100 * math.exp(1 - 12 / 6), rel=1e-9)  # all n-grams right, half too short


@pytest.mark.parametrize("nothing", ["", "  ", "\n"])
def test_an_empty_reference_is_refused(nothing):
    with one_line_error("references: expected some text in each, got none in those numbered [1]"):
        bleu(hypotheses=["a", "b", "c"], references=["a", nothing, "c"])


@pytest.mark.parametrize(
    ("bad", "got"),
    [("one text", "one text"), ([["a"]], "list"), ([None], "NoneType"), ([[3, 4]], "list"), ([5], "int")],
)
def test_what_is_no_list_of_texts_is_refused(bad, got):
    with one_line_error("hypotheses: expected a list of texts", got):
        bleu(hypotheses=bad, references=["a"])
    with one_line_error("references: expected a list of texts", got):
        bleu(hypotheses=["a"], references=bad)


@pytest.mark.parametrize("samples", [-1, 1])
def test_one_sample_gives_no_interval(samples):
    with one_line_error("samples: expected 0 (no intervals) or at least 2", f"got {samples}"):
        bleu(hypotheses=["a"], references=["a"], samples=samples)


def test_bleu_wants_a_reference_for_each():
    with one_line_error("hypotheses: expected one for each reference, got 1 for 2"):
        bleu(hypotheses=["a"], references=["a", "b"])
    with one_line_error("hypotheses: expected one for each reference, got 0 for 0"):
        bleu(hypotheses=[], references=[])


def two_translators(count=40, seed=0):
    """References, and two translations of each with words exchanged: in the second more of them."""
    chance = np.random.default_rng(seed)
    references = [chance.choice(list("abcdefgh"), size=chance.integers(4, 9)) for _ in range(count)]
    sides = [
        [np.where(chance.random(len(row)) < wrong, "x", row) for row in references] for wrong in (0.1, 0.3)
    ]  # the better one first
    return [[" ".join(row) for row in side] for side in (*sides, references)]


def test_the_gain_is_the_difference_of_both_scores_and_changes_its_sign_with_them():
    good, poor, references = two_translators()
    there = paired_bootstrap(hypotheses=good, baseline=poor, references=references)
    scores = [bleu(hypotheses=side, references=references)["bleu"] for side in (good, poor)]
    assert there["gain"] == pytest.approx(scores[0] - scores[1], rel=1e-12) and there["gain"] > 5
    assert there["interval"][0] < there["gain"] < there["interval"][1] and there["share_better"] > 0.9
    back = paired_bootstrap(hypotheses=poor, baseline=good, references=references)
    assert back["gain"] == -there["gain"] and back["share_better"] == pytest.approx(1 - there["share_better"])
    assert back["interval"] == pytest.approx([-end for end in reversed(there["interval"])], rel=1e-9)


def test_a_translator_gains_nothing_over_itself_whatever_is_drawn():
    """The two translations of a sentence go together: drawn one by one, the difference would spread."""
    good, poor, references = two_translators()
    same = paired_bootstrap(hypotheses=poor, baseline=poor, references=references)
    assert same == {"gain": 0.0, "interval": (0.0, 0.0), "share_better": 0.0}
    three = [[*side[:3]] for side in (good, poor, references)]
    drawn = [sacrebleu.corpus_bleu(side, [three[2]]).score for side in three[:2]]
    found = paired_bootstrap(hypotheses=three[0], baseline=three[1], references=three[2])
    assert found["gain"] == pytest.approx(drawn[0] - drawn[1], rel=1e-12)


def test_the_interval_is_that_of_texts_drawn_again_and_scored_by_sacrebleu():
    good, poor, references = two_translators(12)
    draws = np.random.default_rng(5).multinomial(12, np.full(12, 1 / 12), size=30)
    gains = []
    for times in draws:
        rows = [i for i, count in enumerate(times) for _ in range(count)]
        sides = [[side[i] for i in rows] for side in (good, poor, references)]
        gains.append(np.diff([sacrebleu.corpus_bleu(side, [sides[2]]).score for side in (sides[1], sides[0])])[0])
    found = paired_bootstrap(hypotheses=good, baseline=poor, references=references, samples=30, seed=5)
    assert found["interval"] == pytest.approx(np.quantile(gains, (0.025, 0.975)), rel=1e-9)
    assert found["share_better"] == np.mean([gain > 0 for gain in gains])
    again = paired_bootstrap(hypotheses=good, baseline=poor, references=references, samples=30, seed=5)
    assert again == found != paired_bootstrap(hypotheses=good, baseline=poor, references=references, samples=30)


def test_a_pair_of_translators_is_refused_as_one_is():
    with one_line_error("samples: expected at least 2, got 1"):
        paired_bootstrap(hypotheses=["a"], baseline=["a"], references=["a"], samples=1)
    with one_line_error("baseline: expected one for each reference, got 2 for 1"):
        paired_bootstrap(hypotheses=["a"], baseline=["a", "b"], references=["a"])
    with one_line_error("baseline: expected a list of texts", "one text"):
        paired_bootstrap(hypotheses=["a"], baseline="a", references=["a"])
    with one_line_error("references: expected some text in each, got none in those numbered [0]"):
        paired_bootstrap(hypotheses=["a"], baseline=["a"], references=[" "])


@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    beam=st.integers(1, 5),
    batch_size=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.6, 1.0]),
)
def test_many_sources_are_searched_as_each_one_alone(seed, lengths, beam, batch_size, alpha):
    """Also where some searches are over long before others."""
    model = model_of(vocab_size=7, seed=seed)
    chance = torch.Generator().manual_seed(seed)
    sources = [torch.randint(3, 7, (m,), generator=chance).tolist() for m in lengths]
    together = beam_search_all(model, sources, beam, 6, alpha, batch_size)
    for found, source in zip(together, sources, strict=True):
        alone = beam_search(model, source, beam, 6, alpha)
        assert [h.ids for h in found] == [h.ids for h in alone]
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in alone])


def test_no_source_and_no_batch_for_a_beam():
    model = model_of(vocab_size=7)
    assert beam_search_all(model, [], 2, 3) == []
    with one_line_error("batch_size: expected at least 1, got 0"):
        beam_search_all(model, [[3]], 2, 3, batch_size=0)
    with one_line_error("beam: expected at least 1, got 0"):
        beam_search_all(model, [[3]], 0, 3)


def test_the_record_holds_what_each_step_kept():
    model, record = model_of(vocab_size=7), []
    found = beam_search(model, [3, 4, 5], 3, 4, record=record)
    assert found == beam_search(model, [3, 4, 5], 3, 4)
    assert 1 <= len(record) <= 4 and [len(step[0].ids) for step in record] == list(range(1, len(record) + 1))
    for before, after in zip(record, record[1:]):
        parents = [h.ids for h in before if h.ids[-1] != model.end_id]
        assert all(h.ids[:-1] in parents for h in after) and len(after) == 3
    assert {tuple(h.ids) for h in found} <= {tuple(h.ids) for step in record for h in step}


def test_a_model_that_diverged_writes_nothing():
    model = model_of()
    with torch.no_grad():
        model.output.bias[3] = torch.nan
    for translate in (
        lambda: greedy(model, torch.tensor([[3, 4]]), 4),
        lambda: beam_search(model, [3, 4], 2, 4),
        lambda: greedy_all(model, [[3], [4, 3]], 4),
    ):
        with one_line_error("model: expected log probabilities, got NaN; did its training diverge?"):
            translate()

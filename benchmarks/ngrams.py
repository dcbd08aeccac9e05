"""The n-gram model: against NLTK's on the same text, and order 6 on a million characters."""

import math
from collections.abc import Sequence

from nltk.lm import KneserNeyInterpolated
from nltk.util import everygrams, ngrams

from benchmarks.measure import Row, cpu_seconds
from transformer_lib.evaluation import bits_per_token
from transformer_lib.models import NGramModel
from transformer_lib.text import UNKNOWN, CharTokenizer, WordTokenizer, load_corpus

ORDER, DISCOUNT = 3, 0.75


def ours(train: Sequence[int], test: Sequence[int], vocab_size: int) -> float:
    """Count, weigh, evaluate: bits per token."""
    return bits_per_token(NGramModel(ORDER, vocab_size, "kneser-ney", discount=DISCOUNT).fit(train), test)


def nltks(train: Sequence[int], test: Sequence[int]) -> float:
    """The same by NLTK, whose evaluation begins with the first token that has a full context."""
    words, test = list(map(str, train)), list(map(str, test))
    model = KneserNeyInterpolated(ORDER, DISCOUNT)
    model.fit([list(everygrams(words, max_len=ORDER))], words)
    return model.entropy(list(ngrams(test, ORDER)))


def against_nltk(train_size: int = 20_000, test_size: int = 1_000) -> list[Row]:
    """Order 3 on characters and on words of Shakespeare, the same ids for both."""
    corpus, rows = load_corpus("shakespeare"), []
    characters = CharTokenizer.train(corpus.train)
    words = WordTokenizer.train(corpus.train[: train_size * 6], train_size // 20, specials=[UNKNOWN])
    for name, tokenizer in (("characters", characters), ("words", words)):
        train = tokenizer.encode(corpus.train[: train_size * 8])[:train_size]
        # Held-out text, but for tokens that came in no training: NLTK has nothing for them.
        test = [i for i in tokenizer.encode(corpus.test[: test_size * 16]) if i in set(train)][:test_size]
        bits = {}
        seconds = cpu_seconds(lambda: bits.update(ours=ours(train, test, tokenizer.vocab_size)))  # noqa: B023
        seconds_nltk = cpu_seconds(lambda: bits.update(nltk=nltks(train, test)))  # noqa: B023
        # Not the same at the text's start and for unigrams; but the same model, or the comparison says nothing.
        assert math.isclose(bits["ours"], bits["nltk"], rel_tol=0.02), bits
        details = (
            f"{len(train):,} {name} counted, {len(test):,} evaluated; {seconds:.2g} s and {seconds_nltk:.2g} s; "
            f"{bits['ours']:.3f} and {bits['nltk']:.3f} bits"
        )
        rows.append(
            Row(f"Kneser-Ney, order 3, {name}: NLTK's time / ours", seconds_nltk / seconds, 20, True, "times", details)
        )
    return rows


def order_6(train_size: int = 1_000_000, test_size: int = 100_000) -> list[Row]:
    """Counting, weighing and evaluating modified Kneser-Ney of order 6."""
    corpus = load_corpus("shakespeare")
    tokenizer = CharTokenizer.train(corpus.train + corpus.test[:test_size])
    train, test = tokenizer.encode(corpus.train[:train_size]), tokenizer.encode(corpus.test[:test_size])
    bits = []

    def work():
        bits.append(bits_per_token(NGramModel(6, tokenizer.vocab_size, "modified-kneser-ney").fit(train), test))

    seconds = cpu_seconds(work)
    details = f"{len(train):,} characters counted, {len(test):,} evaluated; {bits[0]:.3f} bits a character"
    return [Row("Modified Kneser-Ney, order 6, processor time", seconds, 10, False, "s", details)]

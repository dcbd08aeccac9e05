"""The checks of chapter 01's exercises.

Chapter 01. Every expected value is computed here, from what the exercise gives or with the library.
"""

import itertools
import math
from collections import Counter

import torch

from transformer_lib.evaluation import sentence_log_prob
from transformer_lib.models import NGramModel
from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.text import END, START, UNKNOWN, WordTokenizer, load_corpus

FACTORS = [0.02, 0.5, 0.1, 0.4, 0.25]
# The chapter's own text; one whose last word occurs nowhere else; one whose last word is a context too; words in words.
TEXTS = [
    "we love hong kong . we saw hong kong . hong kong is big . hong kong has tea . green tea is hot . we drink tea .",
    "the whale saw the ship and the ship saw the sea",
    "a rose is a rose is a",
    "she has a sea shell and a seashell and a sea",
]
RETURNS_NOTHING = "your function returned None: it needs a return, on every way through it"


@exercise("1.1", expects="a list of two numbers: the probability and the perplexity")
def sentence(answer):
    """A sentence's probability from its five factors, and its perplexity."""
    p = math.prod(FACTORS)
    perplexity = p ** (-1 / len(FACTORS))
    if close(answer, [p, perplexity], 5e-3):
        return right()
    if close(answer, p, 5e-3):
        return wrong("the probability is right; the perplexity is missing: give a list of two numbers")
    if close(answer, [perplexity, p], 5e-3):
        return wrong("both numbers are right, but in the other order")
    n = len(FACTORS)
    if close(answer, perplexity, 5e-3):
        return wrong("the perplexity is right; the probability is missing: give a list of two numbers, it comes first")
    said, unsure = answer
    if close(said, sum(FACTORS), 5e-3) or close(said, sum(FACTORS) / len(FACTORS), 5e-3):
        return wrong("you added the factors; a chain of conditions multiplies")
    if close(said, math.log(p), 5e-3):
        return wrong("that is the logarithm of the probability; take the exponential of it")
    if close(said, 100 * p, 5e-3):
        return wrong("that is the probability in per cent; give it as a number from 0 to 1")
    if not close(said, p, 5e-3):
        return wrong("the probability is the product of the five factors")
    if close(unsure, 1 / p, 5e-3):
        return wrong("1 / P counts the whole sentence as one choice; perplexity is per word: take the fifth root")
    if close(unsure, -math.log(p) / n, 5e-3) or close(unsure, -math.log2(p) / n, 5e-3):
        return wrong("that is the mean surprise (nats or bits); perplexity is the exponential of it")
    if close(unsure, math.log(p) / n, 5e-3) or close(unsure, math.log2(p) / n, 5e-3):
        return wrong("that is the mean log probability; turn its sign around, then take the exponential")
    if close(unsure, p ** (1 / n), 5e-3):
        return wrong("that is the mean (geometric) probability of a word; perplexity is 1 divided by it")
    if close(unsure, 2 ** (-math.log(p) / n), 5e-3) or close(unsure, math.exp(-math.log2(p) / n), 5e-3):
        return wrong("logarithm and exponential have different bases: e with ln, or 2 with the logarithm to base 2")
    if close(unsure, p ** (-1 / (n - 1)), 5e-3) or close(unsure, p ** (-1 / (n + 1)), 5e-3):
        return wrong("you took the wrong root: count the factors, there are five")
    if close(unsure, 1 / p / n, 5e-3):
        return wrong("you divided 1 / P by the number of words; take the root: a product is shared out by a root")
    if close(unsure, n / sum(FACTORS), 5e-3):
        return wrong("you averaged the probabilities; perplexity averages their logarithms")
    if close(unsure, sum(1 / factor for factor in FACTORS) / n, 5e-3):
        return wrong("you averaged 1 / P of the words; perplexity averages the logarithms first")
    return wrong("the perplexity is (1 / P) to the power of 1 / (number of words)")


@exercise("1.2", expects="a function add_k(tokens, context, word, k, V)")
def add_k(answer):
    """Add-k smoothing of a bigram model, compared with the library on every text, in all contexts."""
    told = {  # the likely slips; an answer has one if it agrees with it wherever it is wrong
        "last": "you counted the last word of the text as a context, but nothing follows it: the row does not sum to 1",
        "k": "that is count and divide: add k to the pair's count and k * V to the context's",
        "V": "each of the V words gets k more, so the context's count grows by k * V, not by k",
        "one": "that is right for k = 1 only: use the k that is given",
        "k V": "each of the V words gets k more, so the context's count grows by k * V, not by V",
        "k + V": "the context's count grows by k times V, not by k plus V",
        "own V": "use the V that is given: the vocabulary may have words that the text has not",
        "joint": "you divided by the number of all pairs; divide by the number of those that begin with the context",
        "word": "you divided by the count of the word; divide by the count of the context",
        "swap": "you counted word before context; the context stands first",
        "k out": "the brackets are missing: (count + k) / (...), not count + k / (...)",
        "inside": "you searched the text as one string, which finds a word inside a longer one, too; count in the list",
    }
    slips = set(told)
    for text, k in itertools.product(TEXTS, (1.0, 0.1)):
        tokens = text.split()
        tokenizer = WordTokenizer.train([text, "unseen"], pattern=WordTokenizer.BLANKS)
        V = tokenizer.vocab_size
        p = NGramModel(2, V, smoothing="add-k", k=k).fit(tokenizer.encode(text)).log_probs(torch.arange(V)).exp()
        for (c, context), (w, word) in itertools.product(enumerate(tokenizer.tokens), repeat=2):
            try:
                came = answer(list(tokens), context, word, k, V)
            except ZeroDivisionError:
                return wrong("after a context never seen you divide by 0: k * V belongs below the line, too")
            except KeyError as error:
                return wrong(f"your counts have no {error} (KeyError); what was never seen counts 0: a Counter says so")
            if came is None:
                return wrong(RETURNS_NOTHING)
            if close(came, float(p[c, w]), 1e-9):
                continue
            pairs = Counter(zip(tokens, tokens[1:]))
            pair = pairs[context, word]
            followed, seen = tokens[:-1].count(context), tokens.count(context)
            values = {
                "last": (pair + k) / (seen + k * V),
                "k": pair / max(followed, 1),
                "V": (pair + k) / (followed + k),
                "one": (pair + 1) / (followed + V),
                "k V": (pair + k) / (followed + V),
                "k + V": (pair + k) / (followed + k + V),
                "own V": (pair + k) / (followed + k * len(set(tokens))),
                "joint": (pair + k) / (len(tokens) - 1 + k * V),
                "word": (pair + k) / (tokens.count(word) + k * V),
                "swap": (pairs[word, context] + k) / (followed + k * V),
                "k out": pair + k / (followed + k * V),
                "inside": (" ".join(tokens).count(f"{context} {word}") + k) / (followed + k * V),
            }
            slips &= {slip for slip, value in values.items() if close(came, value, 1e-9)}
            if not slips:
                return wrong(
                    f"in a text of {len(tokens)} words P({word} | {context}) with k = {k} and V = {V} should be "
                    f"({pair} + k) / ({followed} + k * V) = {float(p[c, w]):.6g}; came {came!r:.40}"
                )
    return right() if slips == set(told) else wrong(next(says for slip, says in told.items() if slip in slips))


@exercise("1.3", expects="a function continuation(tokens, word)")
def continuation(answer):
    """The share of the different pairs of neighbours that end in a word."""
    for text in TEXTS:
        tokens = text.split()
        pairs = Counter(zip(tokens, tokens[1:]))
        ends, starts = Counter(b for _, b in pairs), Counter(a for a, _ in pairs)
        for word in [*dict.fromkeys(tokens), "unseen"]:
            try:
                came = answer(list(tokens), word)
            except KeyError as error:
                return wrong(f"your counts have no {error} (KeyError); what was never seen counts 0: a Counter says so")
            if came is None:
                return wrong(RETURNS_NOTHING)
            if close(came, ends[word] / ends.total(), 1e-9):
                continue
            if close(came, Counter(tokens)[word] / len(tokens), 1e-9):
                return wrong("that is the word's share of the text; count the different words before it instead")
            if close(came, Counter(tokens[1:])[word] / (len(tokens) - 1), 1e-9):
                return wrong("you counted every pair as often as it occurs; count each different pair once")
            if close(came, ends[word], 1e-9):
                return wrong("that is the number of different words before it; divide by the number of different pairs")
            if close(came, starts[word] / starts.total(), 1e-9):
                return wrong("you took the pairs that begin with the word; take those that end in it")
            if close(came, ends[word] / len(set(tokens)), 1e-9):
                return wrong("you divided by the number of different words; divide by the number of different pairs")
            if close(came, ends[word] / len(tokens), 1e-9) or close(came, ends[word] / (len(tokens) - 1), 1e-9):
                return wrong("you divided by the length of the text; divide by the number of different pairs")
            if close(came, ends[word] / max(1, tokens.count(word)), 1e-9):
                return wrong("you divided by how often the word occurs; divide by the number of different pairs")
            if close(came, len([pair for pair in pairs if word in pair]) / ends.total(), 1e-9):
                return wrong("you took the pairs with the word at either place; take those that end in it")
            return wrong(
                f"for {word!r} in a text of {len(tokens)} words {ends[word]} of the {ends.total()} different pairs "
                f"end in it: {ends[word] / ends.total():.6g}; came {came!r:.40}"
            )
    return right()


@exercise("1.4", expects="a text: five words and 。, separated by blanks")
def order(answer):
    """The order of the running example's words that the chapter's trigram likes best."""
    if isinstance(answer, list | tuple) and all(isinstance(word, str) for word in answer):
        return wrong('the words one by one; give a single text: " ".join(...) puts the blanks between them')
    if not isinstance(answer, str):
        raise ValueError("no text")
    example = "猫 は 魚 が 好き"
    given = answer.split()
    if sorted(given) == sorted(example.split()):
        return wrong("。 is missing: write it after the five words, as the exercise does")
    if "".join(sorted("".join(given))) == "".join(sorted(example.replace(" ", "") + "。")) and len(given) != 6:
        return wrong("put one blank between two words, none inside a word, and one before 。")
    if sorted(given) != sorted([*example.split(), "。"]):
        return wrong("use each of the words 猫 は 魚 が 好き once, with blanks between them, and 。 at the end")
    corpus = load_corpus("tatoeba-ja")
    words = WordTokenizer.train(corpus.train, specials=(UNKNOWN, START, END), pattern=WordTokenizer.BLANKS)
    sentences = [words.encode(line, start=True, end=True) for line in corpus.train.splitlines()]
    trigram = NGramModel(3, words.vocab_size, smoothing="kneser-ney").fit(sentences)
    orders = [" ".join([*one, "。"]) for one in itertools.permutations(example.split())]
    ids = torch.tensor([words.encode(text, start=True, end=True) for text in orders])
    rated = dict(zip(orders, sentence_log_prob(trigram, ids).tolist()))
    ranking = sorted(orders, key=rated.get, reverse=True)
    place = ranking.index(" ".join(given)) + 1 if " ".join(given) in ranking else None
    if place == 1:
        return right()
    if place is None:
        return wrong("。 ends the sentence: put it last")
    if " ".join(given) == f"{example} 。":
        return wrong(f"that is what we would say; the trigram puts it on place {place}. Let it rate all orders")
    if place == len(ranking):
        return wrong("that is the worst of all orders: the largest log probability, the one nearest to 0, is the best")
    behind = rated[ranking[0]] - rated[" ".join(given)]
    return wrong(
        f"the trigram puts this on place {place} of {len(ranking)}, {behind:.1f} nats behind the best; rate them all"
    )

"""What the recipes that pre-train a BERT share: passages of three corpora, batches, the two losses, the measures.

Chapters 11 and 12. Sentences of one document are packed into passages of about half a model's length, as Devlin et al.
packed theirs; A and B of a pair are two such passages.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from transformer_lib.models import NGramModel, PretrainingHeads
from transformer_lib.text import WordPieceTokenizer, load_corpus
from transformer_lib.training import mask_tokens, next_sentence_pairs, padded
from transformer_lib.training.pretraining import NOT_ASKED

CORPORA = ("shakespeare", "moby-dick", "bible")
LENGTH = 64
VOCABULARY = 6000
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # what is read, its segments, what is asked, whether B follows A


def vocabulary() -> WordPieceTokenizer:
    """One vocabulary for the three corpora, lower case."""
    return WordPieceTokenizer.train([load_corpus(name).train for name in CORPORA], VOCABULARY)


def documents(name: str, part: str) -> list[list[str]]:
    """Scenes, chapters of the novel, chapters of the Bible: each a list of sentences."""
    text = getattr(load_corpus(name), part)
    if name == "bible":
        return [document.splitlines() for document in text.split("\n\n") if document.strip()]
    border = r"\n(?=SCENE |ACT )" if name == "shakespeare" else r"\n(?=CHAPTER )"
    paragraphs = ([" ".join(p.split()) for p in each.split("\n\n")] for each in re.split(border, text))
    return [[s for p in each for s in re.split(r"(?<=[.!?;])\s+", p) if s] for each in paragraphs]


def passages(sentences: list[list[int]], longest: int) -> Iterator[tuple[int, ...]]:
    """Sentences in their order, packed: a passage ends where the next sentence would not fit."""
    passage: list[int] = []
    for sentence in sentences:
        if passage and len(passage) + len(sentence) > longest:
            yield tuple(passage)
            passage = []
        passage = passage + sentence
        while len(passage) > longest:  # one sentence alone is too long
            yield tuple(passage[:longest])
            passage = passage[longest:]
    if passage:
        yield tuple(passage)


def packed(tokenizer: WordPieceTokenizer, part: str, longest: int = (LENGTH - 3) // 2) -> dict[str, list]:
    """The documents of each corpus, as passages of ids."""
    return {
        name: [list(passages([tokenizer.encode(s) for s in document], longest)) for document in documents(name, part)]
        for name in CORPORA
    }


def pairs_of(corpora: dict[str, list], seed: int) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """(A, B, 0 if B follows A): a false B comes from another document of the same corpus; style alone tells nothing."""
    return [pair for each in corpora.values() for pair in next_sentence_pairs(each, seed)]


def batches(
    corpora: dict[str, list], tokenizer: WordPieceTokenizer, size: int, seed: int = 0
) -> Callable[[int], Batch]:
    """A function from the step's number to its batch; every epoch draws other false pairs and other masks."""
    per_epoch = len(pairs_of(corpora, seed)) // size
    ids = tokenizer.ids
    cls, sep = ids[tokenizer.start], ids[tokenizer.end]

    @lru_cache(maxsize=1)
    def epoch(number: int) -> tuple[list, np.ndarray]:
        pairs = pairs_of(corpora, seed + 1000 * number)
        # The 1 sets it apart: numpy takes (seed, 0) for seed, and the order would follow the draw of the pairs.
        return pairs, np.random.default_rng((seed, number, 1)).permutation(len(pairs))

    def batch(step: int) -> Batch:
        pairs, order = epoch(step // per_epoch)
        start = step % per_epoch * size
        chosen = [pairs[i] for i in order[start : start + size]]
        read = padded([[cls, *A, sep, *B, sep] for A, B, _ in chosen], ids[tokenizer.pad])
        segments = padded([[0] * (len(A) + 2) + [1] * (len(B) + 1) for A, B, _ in chosen], 0)
        chance = torch.Generator().manual_seed(hash((seed, step)) % 2**31)
        given, asked = mask_tokens(read, tokenizer.vocab_size, ids[tokenizer.mask], tokenizer.special_ids, chance)
        return given, segments, asked, torch.tensor([follows for _, _, follows in chosen])

    return batch


def log_probs(model: PretrainingHeads, batch: Batch, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Of the words that are asked (asked, vocab_size), the only ones computed; and whether B follows (batch, 2)."""
    given, segments, asked, _ = batch
    H = model.bert(given, segments, mask)
    return model.words(H[asked != NOT_ASKED]), model.follows(H)


def loss(model: PretrainingHeads, batch: Batch, next_sentence: bool = True, mask: Tensor | None = None) -> Tensor:
    """Cross-entropy of the masked words, and that of the next sentence, added up; in nats."""
    words, follows = log_probs(model, batch, mask)
    of_words = nn.functional.nll_loss(words, batch[2][batch[2] != NOT_ASKED])
    return of_words + nn.functional.nll_loss(follows, batch[3]) if next_sentence else of_words


@torch.no_grad()
def measures(model: PretrainingHeads, some: list[Batch], mask: Tensor | None = None) -> dict[str, float]:
    """On held-out batches: loss and accuracy of the masked words, accuracy of the next sentence."""
    answers = []
    for batch in some:
        words, follows = log_probs(model, batch, mask)
        wanted = batch[2][batch[2] != NOT_ASKED]
        of_words = nn.functional.nll_loss(words, wanted, reduction="sum")
        right = (words.argmax(-1) == wanted).sum(), (follows.argmax(-1) == batch[3]).sum()
        answers.append([len(wanted), float(of_words), int(right[0]), len(follows), int(right[1])])
    asked, of_words, right, pairs, followed = (sum(column) for column in zip(*answers, strict=True))
    return {
        "asked": asked,
        "word_loss": of_words / asked,
        "word_accuracy": right / asked,
        "pairs": pairs,
        "next_accuracy": followed / pairs,
    }


def held_out(tokenizer: WordPieceTokenizer, part: str, count: int, size: int = 64, across: bool = False) -> list[Batch]:
    """So many batches of a part that no model was trained on; always the same. across: false B's from any corpus."""
    corpora = packed(tokenizer, part)
    if across:
        corpora = {"all": [document for each in corpora.values() for document in each]}
    return list(map(batches(corpora, tokenizer, size, seed=7), range(count)))


class CountingGuesser:
    """What counting alone knows of a masked word: how frequent each word is, the words before it, the word after it.

    n: order of the n-gram model that reads from the left. The word after it enters by how likely it is after each
    candidate: P(w | left) P(right | w), the best guess of a model that sees one word to the right.
    """

    def __init__(self, tokenizer: WordPieceTokenizer, n: int = 3):
        texts = [passage for each in packed(tokenizer, "train").values() for d in each for passage in d]
        texts = [[tokenizer.ids[tokenizer.start], *text, tokenizer.ids[tokenizer.end]] for text in texts]
        self.left = NGramModel(n, tokenizer.vocab_size).fit(texts)
        self.frequency = torch.bincount(torch.tensor([i for text in texts for i in text[1:-1]]))
        pairs = self.left.using(2)
        everything = torch.arange(tokenizer.vocab_size)[:, None]
        self.after = torch.cat([pairs.log_probs(some)[:, 0].float() for some in everything.split(500)])
        self.unknown = [tokenizer.ids[tokenizer.mask], tokenizer.ids[tokenizer.pad]]

    def guesses(self, given: Tensor, row: int, place: int) -> dict[str, int]:
        """The most likely token at one place of a batch that is read, by each of the three."""
        before = self.left.next_token_log_probs(given[row, max(0, place - self.left.n + 1) : place])
        right = int(given[row, place + 1])
        both = before if right in self.unknown else before + self.after[:, right]
        return {
            "most frequent": int(self.frequency.argmax()),
            "words before": int(before.argmax()),
            "words before and after": int(both.argmax()),
        }

    def accuracy(self, some: list[Batch]) -> dict[str, float]:
        """The share of the masked words that each guesses rightly."""
        right, asked_for = Counter(), 0
        for given, _, asked, _ in some:
            for row, place in (asked != NOT_ASKED).nonzero().tolist():
                asked_for += 1
                for name, guess in self.guesses(given, row, place).items():
                    right[name] += guess == int(asked[row, place])
        return {name: count / asked_for for name, count in right.items()}

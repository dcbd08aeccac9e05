"""The data of four tasks, one for each of BERT's heads, made from the three English corpora by rules that are shown.

Chapter 12. Each part of a corpus (train, validation, test) makes examples of its own, so no test text was trained on;
numbers drawn at random depend on the seed alone.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recipes.bert_pretraining import CORPORA, documents
from transformer_lib.text import load_corpus

AUTHORS = ("Shakespeare", "Melville", "Bible")
HALF = 8  # words of a beginning, and of an ending
SPEECH = 8  # words at most of a speech in a passage
KINDS = ("first", "second", "third", "last", "answers")
ABSENT = 0.25


class Passage(NamedTuple):
    """Who wrote this? label: the place in AUTHORS."""

    text: str
    label: int


class Pair(NamedTuple):
    """Are the two from one scene, or one chapter? label: 1 if they are, 0 if not."""

    first: str
    second: str
    label: int


class Question(NamedTuple):
    """Who speaks where? speeches: (speaker, text) each; answer: the speech whose speaker it is, None: there is none."""

    question: str
    speeches: tuple[tuple[str, str], ...]
    answer: int | None
    kind: str  # one of KINDS

    @property
    def passage(self) -> str:
        return " ".join(f"{speaker} . {text}" for speaker, text in self.speeches)


class Choice(NamedTuple):
    """How does the sentence go on? label: the place of its own ending among the four."""

    beginning: str
    endings: tuple[str, ...]
    label: int


def plain(text: str) -> str:
    """Letters and the commonest marks, so that no editor's dash or quotation mark gives an author away."""
    return " ".join(re.sub(r"[^A-Za-z'.,;:?! ]", " ", text.replace("’", "'")).split())


@lru_cache
def scenes(part: str) -> list[list[tuple[str, str]]]:
    """The plays' scenes, each a list of (speaker, speech); stage directions are left out."""
    found = []
    for scene in re.split(r"\n(?=SCENE |ACT )", getattr(load_corpus("shakespeare"), part)):
        blocks = (block.strip().split("\n", 1) for block in re.sub(r"\[[^\]]*\]", "", scene).split("\n\n"))
        spoken = [(b[0].strip(), plain(b[1])) for b in blocks if len(b) == 2]
        found.append([(who[:-1], what) for who, what in spoken if re.fullmatch(r"[A-Z][A-Z ]*[A-Z]\.", who) and what])
    return [scene for scene in found if scene]


@lru_cache
def sentences(name: str, part: str) -> list[list[str]]:
    """The documents of a corpus as lists of sentences, without headings and names of speakers."""
    if name == "shakespeare":
        speeches = [[what for _, what in scene] for scene in scenes(part)]
        return [[s for what in each for s in re.split(r"(?<=[.!?;]) ", what)] for each in speeches]
    every = ([plain(s) for s in document if not s.startswith("CHAPTER ")] for document in documents(name, part))
    return [[s for s in document if s] for document in every]


def drawn(make: Callable[[np.random.Generator], tuple | None], count: int, seed: int) -> list:
    """So many examples, no two alike; `make` gives None where a place that was drawn does not serve."""
    chance, found = np.random.default_rng(seed), {}
    for _ in range(400 * count):
        example = make(chance)
        if example is not None:
            found[example] = None
        if len(found) == count:
            return list(found)
    raise ValueError(f"count: expected at most the {len(found)} examples that this part gives, got {count}")


def one_of(chance: np.random.Generator, many: list):
    """One, each as likely as any other."""
    return many[int(chance.integers(len(many)))]


@lru_cache
def short(name: str, part: str) -> list[str]:
    """The sentences of 8 to 16 words."""
    return [s for document in sentences(name, part) for s in document if 8 <= len(s.split()) <= 16]


def authorship(part: str, count: int, seed: int = 0) -> list[Passage]:
    """One sentence of 8 to 16 words; each author is as likely."""

    def make(chance: np.random.Generator) -> Passage:
        label = int(chance.integers(len(AUTHORS)))
        return Passage(one_of(chance, short(CORPORA[label], part)), label)

    return drawn(make, count, seed)


@lru_cache
def stretches(name: str, part: str, words: int = 22) -> list[list[str]]:
    """Each document cut into stretches of so many words; where fewer than two come out, it is left out."""
    every = [" ".join(document).split() for document in sentences(name, part)]
    cut = [[" ".join(d[i : i + words]) for i in range(0, len(d) - words + 1, words)] for d in every]
    return [document for document in cut if len(document) >= 2]


def same_scene(part: str, count: int, seed: int = 0) -> list[Pair]:
    """Two stretches of 22 words: neighbours in one document, in either order, or of two documents of one corpus."""

    def make(chance: np.random.Generator) -> Pair | None:
        label, every = int(chance.integers(2)), stretches(one_of(chance, CORPORA), part)
        one, other = (int(chance.integers(len(every))) for _ in range(2))
        if label:
            at = int(chance.integers(len(every[one]) - 1))
            two = every[one][at : at + 2][:: 1 if chance.random() < 0.5 else -1]
            return Pair(*two, 1)
        return Pair(one_of(chance, every[one]), one_of(chance, every[other]), 0) if one != other else None

    return drawn(make, count, seed)


def who_speaks(part: str, count: int, seed: int = 0) -> list[Question]:
    """Two to four speeches in a row, of different speakers, each cut to 8 words.

    Asked is who speaks first, second, third or last, or who answers somebody. No answer: "third" where there are two;
    "who answers" the last speaker, or one who is in the scene but not in the passage (a quarter).
    """

    def make(chance: np.random.Generator) -> Question | None:
        scene, n, kind = one_of(chance, scenes(part)), one_of(chance, [2, 3, 3, 4, 4]), one_of(chance, list(KINDS))
        at = int(chance.integers(len(scene)))
        some = tuple((who.lower(), " ".join(what.split()[:SPEECH])) for who, what in scene[at : at + n])
        names, elsewhere = [who for who, _ in some], one_of(chance, scene)[0].lower()
        if len(set(names)) < n:
            return None
        if kind != "answers":
            place = n - 1 if kind == "last" else ("first", "second", "third").index(kind)
            return Question(f"who speaks {kind} ?", some, place if place < n else None, kind)
        if chance.random() < ABSENT:
            return Question(f"who answers {elsewhere} ?", some, None, kind) if elsewhere not in names else None
        place = int(chance.integers(n))
        return Question(f"who answers {names[place]} ?", some, place + 1 if place + 1 < n else None, kind)

    return drawn(make, count, seed)


def endings(part: str, count: int, seed: int = 0) -> list[Choice]:
    """The first 8 words of a sentence; its next 8, and the same words of three other sentences of the document."""

    def make(chance: np.random.Generator) -> Choice | None:
        every = [s.split() for s in one_of(chance, sentences(one_of(chance, CORPORA), part))]
        long = list({tuple(s[: 2 * HALF]): s for s in every if len(s) >= 2 * HALF}.values())
        if len(long) < 4:
            return None
        four = [long[i] for i in chance.permutation(len(long))[:4]]
        texts, label = tuple(" ".join(s[HALF : 2 * HALF]) for s in four), int(chance.integers(4))
        return Choice(" ".join(four[label][:HALF]), texts, label) if len(set(texts)) == 4 else None

    return drawn(make, count, seed)


TASKS: dict[str, Callable[..., list]] = {
    "author": authorship,
    "same scene": same_scene,
    "who speaks": who_speaks,
    "ending": endings,
}


def some_of_each(part: str, seed: int = 0) -> Iterator[tuple]:
    """One example of each task."""
    return (make(part, 1, seed)[0] for make in TASKS.values())

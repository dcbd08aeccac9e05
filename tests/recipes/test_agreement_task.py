"""The sentences whose verb agrees with a far subject: what stands where, what is left out, what is no such task.

Chapter 03.
"""

from collections import Counter

import pytest
import torch

from recipes.agreement_task import AgreementTask
from tests.one_line import one_line_error
from transformer_lib.text import WordTokenizer, load_corpus

TEXT = "The cat sat. A Whale likes ships, and a ship's mast: the whale! The sea, the sea. Dogs like it."


@pytest.fixture(scope="module")
def task():
    return AgreementTask(TEXT)


def test_the_vocabulary_is_the_tasks_words_then_the_frequent_ones(task):
    tokens = task.tokenizer.tokens
    assert tokens[:4] == ["cat", "cats", "dog", "dogs"] and tokens[16:18] == ["likes", "like"]
    assert task.verbs == (16, 17)
    assert tokens[18:] == ["the", "a", "sea", "whale", "and", "it", "mast", "sat", "ship's", "ships"]
    assert AgreementTask(TEXT, frequent=2).tokenizer.tokens[18:] == ["the", "a"]


def test_between_stand_running_words_without_the_tasks_own(task):
    running = "the sat a whale ships and a ship's mast the whale the sea the sea it"
    assert task.tokenizer.decode(task.words) == running
    few = AgreementTask(TEXT, frequent=2)
    assert few.tokenizer.decode(few.words) == "the a a the the the"
    for sentence in task.sentences(5, 50, seed=0):
        assert f" {task.tokenizer.decode(sentence[1:-1])} " in f" {running} "


def test_the_verb_agrees_with_the_subject(task):
    for sentence in task.sentences(3, 200, seed=0):
        subject, *_, verb = task.tokenizer.decode(sentence).split()
        assert verb == ("like" if subject.endswith("s") else "likes")


@pytest.mark.parametrize("distance", [0, 1, 16])
def test_so_many_words_between(task, distance):
    sentences = task.sentences(distance, 4, seed=1)
    assert sentences.shape == (4, distance + 2) and sentences.dtype == torch.int64


def test_every_subject_and_every_place_comes(task):
    sentences = task.sentences(14, 2000, seed=2)
    assert set(Counter(sentences[:, 0].tolist())) == set(range(16))
    assert len({tuple(row[1:-1].tolist()) for row in sentences}) == 3  # 16 words have three runs of 14
    assert 0.4 < (sentences[:, -1] == 17).double().mean() < 0.6


def test_the_seed_decides(task):
    assert torch.equal(task.sentences(5, 9, seed=(1, 2)), task.sentences(5, 9, seed=(1, 2)))
    assert not torch.equal(task.sentences(5, 9, seed=(1, 2)), task.sentences(5, 9, seed=(1, 3)))


def test_another_part_speaks_of_the_same_words():
    corpus = load_corpus("moby-dick")
    train = AgreementTask(corpus.train)
    test = AgreementTask(corpus.test, train.tokenizer)
    assert train.tokenizer.vocab_size == 1018 and test.tokenizer is train.tokenizer
    assert train.tokenizer.decode(train.words[:8]) == "chapter call me ishmael some years ago never"
    assert min(test.words) >= 18 and max(test.words) < 1018 and len(test.words) > 10_000


def test_what_is_no_such_task(task):
    with one_line_error("tokenizer", "AgreementTask", "the"):
        AgreementTask(TEXT, WordTokenizer.train(TEXT.lower()))
    with one_line_error("distance", "16", "got 17"):
        task.sentences(17, 1, seed=0)
    with one_line_error("distance", "got -1, 1"):
        task.sentences(-1, 1, seed=0)
    with one_line_error("count", "got 0, 0"):
        task.sentences(0, 0, seed=0)

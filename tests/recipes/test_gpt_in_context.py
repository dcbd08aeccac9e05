"""The tasks that a GPT learns to read from its prompt: the mappings, what is kept for the test, the texts, the measure.

Chapter 14.
"""

import numpy as np
import pytest
import torch

from recipes import gpt_in_context, gpt_in_context_pools
from recipes.gpt_in_context import (
    ASKED,
    EXAMPLES,
    KINDS,
    LETTERS,
    TOKENIZER,
    accuracy,
    answer_loss,
    batches,
    description,
    drawn,
    is_unseen,
    mapping,
    prompt,
    row,
    rows,
)
from transformer_lib.training import next_token_loss

N = len(LETTERS)


class Reader:
    """Answers with what stood beside the same letter before, or with a."""

    def log_probs(self, ids):
        said = torch.zeros(*ids.shape, TOKENIZER.vocab_size)
        for i, text in enumerate(ids.tolist()):
            for t, token in enumerate(text):
                earlier = [j for j in range(2, t, 3) if text[j] == token]
                said[i, t, text[earlier[-1] + 1] if earlier and t % 3 == 2 else 0] = 1
        return torch.log_softmax(50 * said, dim=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_mapping_is_of_its_kind(kind):
    chance = np.random.default_rng(0)
    for _ in range(200):
        to = mapping(kind, chance)
        assert len(to) == N and set(to) <= set(range(N))
        if kind == "shift":
            assert {(y - x) % N for x, y in enumerate(to)} == {to[0]}
        if kind == "swap":
            assert all(to[to[x]] == x != to[x] for x in range(N))


def test_lookups_go_anywhere():
    chance = np.random.default_rng(1)
    tally = np.bincount([y for _ in range(500) for y in mapping("lookup", chance)], minlength=N)
    assert tally.min() > 400 and tally.max() < 600


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_for_the_test_is_never_trained_on(kind):
    chance = np.random.default_rng(2)
    for unseen in (False, True):
        assert all(is_unseen(kind, drawn(kind, unseen, chance)) == unseen for _ in range(100))
    assert kind != "shift" or {k for k in range(N) if is_unseen("shift", [k])} == {3, 7}
    kept = sum(is_unseen(kind, mapping(kind, chance)) for _ in range(2000))
    assert 300 < kept < 500  # a fifth of them


def test_texts_hold_one_mapping_in_the_form_of_a_prompt():
    chance, counts = np.random.default_rng(3), []
    for kind in KINDS:
        to = drawn(kind, False, chance)
        text = TOKENIZER.decode(row(kind, to, chance, named=True))
        assert len(text) == 1 + 3 * EXAMPLES and text[0] == description(kind, to)
        pairs = [(LETTERS.index(x), LETTERS.index(y)) for x, y in text[2:].split(" ")]
        assert all(to[x] == y for x, y in pairs) and prompt(pairs, name=text[0]) == text
        assert prompt(pairs[:2], query=4) == f".{text[1:7]} e"
        few = TOKENIZER.decode(row(kind, to, chance, named=False, letters=2))
        assert few[0] == "." and len({x for x, _ in few[2:].split(" ")}) <= 2
        counts.append(text[0])
    assert counts[1:] == ["%", "?"] and counts[0] in "01245689"


def test_texts_of_training_hold_no_kept_mapping_and_the_seed_decides():
    texts = rows(300, np.random.default_rng(4))
    for text in texts.tolist():
        shift = TOKENIZER.decode(text[:1])
        assert shift not in ("3", "7")
    assert torch.equal(batches(5, seed=1)(7), batches(5, seed=1)(7))
    assert not torch.equal(batches(5, seed=1)(7), batches(5, seed=1)(8))
    named = (texts[:, 0] != TOKENIZER.encode(".")[0]).double().mean()
    assert 0.4 < named < 0.6


def test_accuracy_is_asked_where_an_answer_follows():
    texts = rows(40, np.random.default_rng(5), kinds=("lookup",))
    expected = [
        sum((text[2 + 3 * k] in text[2 : 2 + 3 * k : 3]) or text[3 + 3 * k] == 0 for text in texts.tolist()) / 40
        for k in range(EXAMPLES)
    ]
    assert accuracy(Reader(), texts) == [round(share, 4) for share in expected]
    assert texts[:, 1:][:, ASKED].shape == (40, EXAMPLES)
    sure = Reader()
    assert float(answer_loss(sure, texts)) < float(next_token_loss(sure, texts))  # blanks and letters are not asked


def test_a_pool_holds_its_mappings_and_no_others():
    chance = np.random.default_rng(6)
    pool = [drawn("lookup", False, chance) for _ in range(3)]
    assert all(gpt_in_context_pools.from_pool(pool)(chance) in pool for _ in range(20))
    fresh = [gpt_in_context_pools.from_pool(None)(chance) for _ in range(20)]
    assert len({tuple(to) for to in fresh}) == 20 and not any(is_unseen("lookup", to) for to in fresh)


@pytest.mark.slow
def test_the_recipe_makes_model_and_card(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        gpt_in_context, "measured", lambda model: {"loss": accuracy(model, rows(5, np.random.default_rng(1)))}
    )
    monkeypatch.setattr("sys.argv", ["recipe", "--folder", str(tmp_path), "--steps", "3"])
    gpt_in_context.main()
    from transformer_lib.models import load_trained

    model, tokenizer, card = load_trained("gpt-in-context", tmp_path)
    assert tokenizer.tokens == TOKENIZER.tokens and card["training"]["steps"] == 3
    assert accuracy(model, rows(5, np.random.default_rng(1))) == card["figures"]["loss"]
    assert not list(tmp_path.glob("*checkpoint*"))

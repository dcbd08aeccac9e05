"""The data of chapter 12's tasks: what the rules promise holds, and no test text is one that was trained on.

Chapter 12.
"""

import pytest
import torch

from recipes.bert_ablations import LeftToRight, TwoWays, turned
from recipes.bert_pretraining import CORPORA
from recipes.bert_tasks import AUTHORS, KINDS, TASKS, drawn, plain, scenes, sentences
from recipes.fine_tuning import NOTHING, as_ids, by_features, spans, together
from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.text import WordPieceTokenizer, load_corpus


@pytest.fixture(scope="module")
def made():
    return {part: {task: make(part, 120, seed=3) for task, make in TASKS.items()} for part in ("train", "test")}


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer.train([load_corpus(name).test[:60_000] for name in CORPORA], 900)


def flat(part):
    return {name: " ".join(s for document in sentences(name, part) for s in document) for name in CORPORA}


def test_the_same_seed_makes_the_same_examples_and_another_makes_others(made):
    for task, make in TASKS.items():
        assert make("test", 120, seed=3) == made["test"][task] != make("test", 120, seed=4)
        assert len(set(made["test"][task])) == 120


def test_every_text_is_from_its_part_and_no_test_text_from_the_training_part(made):
    texts = {part: " ".join(flat(part).values()) for part in made}
    for part, other in (("train", "test"), ("test", "train")):
        for example in made[part]["author"]:
            assert example.text in texts[part]
            assert example.text not in texts[other] or len(example.text.split()) < 12  # a phrase may stand twice
        for example in made[part]["same scene"]:
            assert all(side in texts[part] and side not in texts[other] for side in example[:2])


def test_an_author_wrote_it_and_his_marks_do_not_tell():
    assert plain("“Aye—aye,” said he; 'tis [aside] well!") == "Aye aye, said he; 'tis aside well!"
    for example in TASKS["author"]("test", 60):
        name = CORPORA[example.label]
        assert AUTHORS[example.label].lower()[:3] in {"shakespeare": "sha", "moby-dick": "mel", "bible": "bib"}[name]
        assert any(example.text in document for document in sentences(name, "test"))


def test_a_pair_is_from_one_document_or_from_two(made):
    documents = [" ".join(document) for name in CORPORA for document in sentences(name, "test")]
    neighbours = 0
    for first, second, label in made["test"]["same scene"]:
        together_in = [d for d in documents if first in d and second in d]
        assert bool(together_in) == bool(label)
        neighbours += any(f"{first} {second}" in d or f"{second} {first}" in d for d in together_in)
    assert neighbours == sum(pair.label for pair in made["test"]["same scene"]) > 30


def test_the_answer_is_who_speaks_there(made):
    kinds = set()
    cut = [tuple((who.lower(), " ".join(what.split()[:8])) for who, what in scene) for scene in scenes("test")]
    for q in made["test"]["who speaks"]:
        names = [who for who, _ in q.speeches]
        kinds.add((q.kind, q.answer is None))
        if q.kind == "answers":
            asked = q.question.removeprefix("who answers ").removesuffix(" ?")
            after = names.index(asked) + 1 if asked in names else len(names)
            assert q.answer == (after if after < len(names) else None)
        else:
            place = {"first": 0, "second": 1, "third": 2, "last": len(names) - 1}[q.kind]
            assert q.answer == (place if place < len(names) else None)
        assert any(q.speeches == scene[i : i + len(names)] for scene in cut for i in range(len(scene)))
    assert {kind for kind, _ in kinds} == set(KINDS) and {("third", True), ("answers", True)} < kinds


def test_one_ending_of_four_goes_on(made):
    texts = " ".join(flat("test").values())
    for one in made["test"]["ending"]:
        assert f"{one.beginning} {one.endings[one.label]}" in texts
        assert len(set(one.endings)) == 4 and all(len(ending.split()) == 8 for ending in one.endings)


def test_more_examples_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="count: expected at most the 3 examples that this part gives, got 4"):
        drawn(lambda chance: (int(chance.integers(3)),), 4, seed=0)


def test_the_target_of_a_question_is_the_speakers_name(made, tokenizer):
    for q in made["test"]["who speaks"]:
        example = as_ids(q, tokenizer, longest=200)
        start, end = example.target
        if q.answer is None:
            assert example.target == NOTHING
        else:
            assert example.ids[0][start : end + 1] == tokenizer.encode(q.speeches[q.answer][0])
            assert start in example.passage and end in example.passage
        assert [example.segments[0][i] for i in (example.passage.start - 1, example.passage.start)] == [0, 1]


def test_layouts_and_batches(made, tokenizer):
    for task, rows, dims in (("author", 1, 2), ("same scene", 1, 2), ("ending", 4, 3)):
        some = [as_ids(one, tokenizer) for one in made["test"][task][:5]]
        batch = together(some, tokenizer.ids[tokenizer.pad])
        assert all(len(one.ids) == rows for one in some) and batch.ids.dim() == dims
        assert batch.ids.shape == batch.segments.shape and batch.targets.tolist() == [one.target for one in some]
        assert (batch.ids.flatten(0, -2)[:, 0] == tokenizer.ids[tokenizer.start]).all()


def test_spans_stay_in_the_passage_and_features_choose_the_right_row(made, tokenizer):
    some = [as_ids(one, tokenizer) for one in made["test"]["who speaks"][:20]]
    start = torch.zeros(20, max(len(one.ids[0]) for one in some))
    start[:, 1] = 5.0  # the question's first word: no answer can start there
    assert all(found[0] in one.passage for found, one in zip(spans(start, start, some), some, strict=True))
    start[:, 0] = 9.0
    assert spans(start, start, some) == [NOTHING] * 20
    right = torch.arange(40) % 4
    X = torch.randn(40, 4, 3, generator=torch.Generator().manual_seed(0))
    X[torch.arange(40), right, 0] += 9
    assert by_features(X[:30].numpy(), right[:30].tolist(), X[30:].numpy()) == right[30:].tolist()


def test_left_to_right_sees_no_right_side_and_two_ways_never_see_each_other():
    torch.manual_seed(0)
    ids = torch.tensor([[2, 7, 8, 9, 3], [2, 6, 3, 0, 0]])
    assert turned(ids, ids).tolist() == [[3, 9, 8, 7, 2], [3, 6, 2, 0, 0]]
    other = ids.clone()
    other[0, 3] = 5
    model = LeftToRight(12, 16, 2, 1, 32, 8, 0.0).eval()
    moved = (model(ids) - model(other)).abs().sum(-1)[0] > 1e-9
    assert moved.tolist() == [False, False, False, True, True]
    assert torch.allclose(model.pooled(model(ids))[1], torch.tanh(model.pooler(model(ids)[1, 2])), atol=1e-6)
    pair = TwoWays(*(RecurrentLanguageModel(12, 4, 6) for _ in range(2)))
    ahead, back = ((pair(ids) - pair(other)).abs()[0].unflatten(-1, (2, 6)).sum(-1) > 1e-9).unbind(-1)
    assert ahead.tolist() == [False, False, False, True, True] and back.tolist() == [True, True, True, True, False]

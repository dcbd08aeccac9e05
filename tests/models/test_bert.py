"""BERT: the transformers library's, values and gradients; padding; both sides; the heads and where an answer is.

Chapters 11 and 12.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.one_line import SHAPES_CHECKED, one_line_error
from tests.parts.pytorchs import shake
from transformer_lib.models import Bert, Chooser, Classifier, PretrainingHeads, SpanFinder, best_span
from transformer_lib.models.pretrained import as_bert
from transformer_lib.parts.masks import causal_mask

IDS = torch.tensor([[1, 5, 6, 2, 7, 8, 2], [1, 9, 4, 3, 2, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]])


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)


def small(seed=0, dropout=0.0, **named):
    torch.manual_seed(seed)
    return shake(Bert(12, 8, 2, 2, 16, 10, dropout, **named).eval())


def theirs(kind, bert, **named):
    """The transformers library's model of this kind, its encoder's weights copied from ours."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=bert.vocab_size, hidden_size=bert.d_model, num_hidden_layers=len(bert.layers),
        num_attention_heads=bert.layers[0].attention.sublayer.heads,
        intermediate_size=bert.layers[0].feed_forward.sublayer.W_1.out_features,
        max_position_embeddings=len(bert.positions.rows), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        **named,
    )  # fmt: skip
    model = getattr(transformers, kind)(config).double().eval()
    encoder = model if kind == "BertModel" else model.bert
    names = as_bert(dict(encoder.named_parameters()))
    ours = dict(bert.named_parameters())
    assert names.keys() == ours.keys() - ({"pooler.weight", "pooler.bias"} if "pooler.weight" not in names else set())
    with torch.no_grad():
        for name, parameter in names.items():
            parameter.copy_(ours[name])
    return model


def inputs(ids, segments):
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": (ids != 0).long()}


def same(found, expected, *parameters):
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-9)
    weights = torch.linspace(-1, 1, found.numel()).view_as(found)
    for one, other in parameters:
        (mine,) = torch.autograd.grad((found * weights).sum(), one, retain_graph=True)
        (given_by_them,) = torch.autograd.grad((expected * weights).sum(), other, retain_graph=True)
        torch.testing.assert_close(mine, given_by_them, rtol=1e-7, atol=1e-8)


@settings(max_examples=20)
@given(
    heads=st.integers(1, 3), width=st.integers(1, 3), layers=st.integers(1, 3), n=st.integers(1, 6),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_the_encoder_is_theirs(heads, width, layers, n, lengths, seed):
    torch.manual_seed(seed)
    bert = shake(Bert(9, heads * width, heads, layers, 5, 6, 0.0).eval(), seed)
    other = theirs("BertModel", bert)
    ids = torch.randint(1, 9, (len(lengths), 6))
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = 0
    segments = torch.randint(0, 2, ids.shape)
    output, H, real = other(**inputs(ids, segments)), bert(ids, segments), ids != 0
    same(
        H[real],
        output.last_hidden_state[real],
        (bert.positions.rows, other.embeddings.position_embeddings.weight),
        (bert.segments.weight, other.embeddings.token_type_embeddings.weight),
        (bert.layers[0].attention.sublayer.W_V.weight, other.encoder.layer[0].attention.self.value.weight),
    )
    same(bert.pooled(H), output.pooler_output, (bert.pooler.weight, other.pooler.dense.weight))


def test_the_heads_of_pre_training_are_theirs():
    bert = small()
    heads = shake(PretrainingHeads(bert).eval())
    other = theirs("BertForPreTraining", bert)
    predictions = other.cls.predictions
    with torch.no_grad():
        predictions.transform.dense.load_state_dict(heads.transform.state_dict())
        predictions.transform.LayerNorm.weight.copy_(heads.norm.gamma)
        predictions.transform.LayerNorm.bias.copy_(heads.norm.beta)
        predictions.bias.copy_(heads.bias)
        predictions.decoder.bias.copy_(heads.bias)
        other.cls.seq_relationship.load_state_dict(heads.next.state_dict())
    output, (words, follows) = other(**inputs(IDS, SEGMENTS)), heads(IDS, SEGMENTS)
    real = IDS != 0
    expected = torch.log_softmax(output.prediction_logits, dim=-1)
    tied = (bert.embedding.weight, other.bert.embeddings.word_embeddings.weight)
    same(words[real], expected[real], tied)
    expected = torch.log_softmax(output.seq_relationship_logits, dim=-1)
    same(follows, expected, (heads.next.weight, other.cls.seq_relationship.weight))


def test_the_heads_of_the_tasks_are_theirs():
    bert = small()
    span, other = shake(SpanFinder(bert).eval()), theirs("BertForQuestionAnswering", bert)
    other = theirs("BertForQuestionAnswering", bert)
    other.qa_outputs.load_state_dict(span.output.state_dict())
    output, (start, end), real = other(**inputs(IDS, SEGMENTS)), span(IDS, SEGMENTS), IDS != 0
    same(start[real], output.start_logits[real], (span.output.weight, other.qa_outputs.weight))
    same(end[real], output.end_logits[real], (span.output.bias, other.qa_outputs.bias))

    bert = small()
    classes, other = Classifier(bert, 3).eval(), theirs("BertForSequenceClassification", bert, num_labels=3)
    other.classifier.load_state_dict(classes.output.state_dict())
    same(classes.scores(IDS, SEGMENTS), other(**inputs(IDS, SEGMENTS)).logits)
    torch.testing.assert_close(classes(IDS).exp().sum(-1), torch.ones(2))

    choices, other = Chooser(bert).eval(), theirs("BertForMultipleChoice", bert)
    other.classifier.load_state_dict(choices.output.state_dict())
    ids, segments = torch.stack([IDS, IDS.flip(0), IDS]), torch.stack([SEGMENTS, SEGMENTS.flip(0), SEGMENTS])
    same(choices(ids, segments), torch.log_softmax(other(**inputs(ids, segments)).logits, dim=-1))
    torch.testing.assert_close(choices(ids)[0], choices(ids)[1].flip(0))
    with one_line_error("ids: expected (batch, choices, n), got shape (2, 7)"):
        choices(IDS)


def test_a_text_does_not_depend_on_its_batch_or_its_padding():
    bert = small()
    together = bert(IDS, SEGMENTS)
    torch.testing.assert_close(bert(IDS[1:, :5], SEGMENTS[1:, :5]), together[1:, :5])
    longer = nn.functional.pad(IDS, (0, 3))
    torch.testing.assert_close(bert(longer, nn.functional.pad(SEGMENTS, (0, 3)))[:, :7], together)
    other = Bert(12, 8, 2, 2, 16, 10, 0.0, pad_id=3).eval()
    other.load_state_dict(bert.state_dict())
    renamed = IDS.where(IDS != 3, 10)  # 3 is now padding
    torch.testing.assert_close(other(renamed.masked_fill(IDS == 0, 3))[1, :5], bert(renamed)[1, :5])


def test_it_sees_both_sides_and_with_a_causal_mask_one():
    bert, changed = small(), IDS.clone()
    changed[0, 5] = 11
    assert not torch.isclose(bert(changed)[0], bert(IDS)[0]).all(-1).any()
    one_sided = [bert(ids, mask=causal_mask(7)) for ids in (IDS, changed)]
    torch.testing.assert_close(one_sided[0][:, :5], one_sided[1][:, :5])
    assert not torch.isclose(one_sided[0][0, 5:], one_sided[1][0, 5:]).all(-1).any()
    torch.testing.assert_close(bert(IDS[1:], mask=causal_mask(7))[0, :5], bert(IDS[1:, :5], mask=causal_mask(5))[0])


@pytest.mark.parametrize(("sizes", "expected"), [((), 109_482_240), ((1024, 16, 24, 4096), 335_141_888)])
def test_base_and_large(sizes, expected):
    with torch.device("meta"):
        assert sum(p.numel() for p in Bert(30_522, *sizes).parameters()) == expected


def test_a_new_head_leaves_the_encoder_as_it_is():
    bert = small()
    before = {name: parameter.clone() for name, parameter in bert.named_parameters()}
    for head in (PretrainingHeads(bert), Classifier(bert, 2), Chooser(bert), SpanFinder(bert)):
        assert head.bert is bert
    assert all(torch.equal(before[name], parameter) for name, parameter in bert.named_parameters())
    fresh = Bert(400, 64, 4, 1, 128)
    assert 0.018 < fresh.layers[0].attention.sublayer.W_Q.weight.std() < 0.022
    assert 0.018 < fresh.embedding.weight.std() < 0.022 and (fresh.pooler.bias == 0).all()
    dropped = Classifier(small(), 2, dropout=0.5).train()
    assert not torch.equal(dropped(IDS), dropped(IDS))


def spans(n, allowed, longest):
    return [(i, j) for i in range(n) for j in range(i, min(i + longest, n)) if allowed[i] and allowed[j]]


@given(
    n=st.integers(2, 8), longest=st.integers(1, 8), threshold=st.floats(-2, 2), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_the_best_span_by_trying_all(n, longest, threshold, seed):
    chance = torch.Generator().manual_seed(seed)
    start, end = torch.randn(2, n, generator=chance)
    allowed = torch.rand(n, generator=chance) < 0.7
    allowed[0], allowed[1] = False, True
    score, span = max((float(start[i] + end[j]), (i, j)) for i, j in spans(n, allowed, longest))
    expected = None if float(start[0] + end[0]) - score > threshold else span
    assert best_span(start, end, allowed, longest, threshold) == expected


def test_an_answer_by_hand():
    start, end = torch.tensor([1.0, 0, 3, 0, 0]), torch.tensor([1.0, 2, 0, 0, 2])
    passage = torch.tensor([False, False, True, True, True])
    assert best_span(start, end, passage) == (2, 4)  # 5; the end at 1 lies outside, and before the start
    assert best_span(start, end, passage, longest=2) == (2, 2)
    assert best_span(start, end, passage, threshold=-3.5) is None  # 2 - 5 = -3 exceeds it
    assert best_span(start * torch.tensor([9.0, 1, 1, 1, 1]), end, passage) is None
    with one_line_error("allowed: expected at least one token of the passage, got none"):
        best_span(start, end, torch.zeros(5, dtype=torch.bool))
    with one_line_error("expected scores and passage of one text (n,), got (5,), (4,), (5,)"):
        best_span(start, end[:4], passage)


def test_what_cannot_be():
    bert = small()
    with one_line_error("positions: learned for 10 tokens, got 11; shorten the text"):
        bert(torch.ones(1, 11, dtype=torch.long))
    with one_line_error("ids: expected ids from 0 to 11, got 12"):
        bert(torch.tensor([[12]]))
    with one_line_error("ids: expected a batch (batch, n), got shape (2,)"):
        bert(torch.tensor([1, 2]))
    with one_line_error("segments: expected ids from 0 to 1, got 2"):
        bert(IDS, SEGMENTS + 1)
    if not SHAPES_CHECKED:
        with one_line_error("segments: expected one for each of the ids (2, 7), got (2, 6)"):
            bert(IDS, SEGMENTS[:, :6])
    with one_line_error("pad_id: expected an id below 12, got 12"):
        Bert(12, 8, 2, pad_id=12)
    with one_line_error("layers: expected at least 1"):
        Bert(12, 8, 2, 0)
    with one_line_error("classes: expected at least 1, got 0"):
        Classifier(bert, 0)

"""The checks of chapter 04's exercises: the loudest lost cat, a loss over padding, greedy by hand, fifty bits in one c.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import copy
import math

import torch

from transformer_lib.decoding import greedy
from transformer_lib.models import Seq2Seq
from transformer_lib.models.seq2seq import Decoder
from transformer_lib.parts.recurrent import GRUCell, RNNCell, unroll
from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.training import translation_loss


def _first_component(loudness, f):
    """The first component of the last memo when the cat is (loudness, 0)."""
    cell = RNNCell(2, 2, f).double().requires_grad_(False)
    cell.W_x.copy_(torch.eye(2)), cell.W_h.copy_(0.5 * torch.eye(2)), cell.b.zero_()
    X = torch.tensor([(loudness, 0), (0, 1), (1, 1), (0, 1), (-1, 1)], dtype=torch.float64)
    return float(unroll(cell, X)[1][0])


@exercise("4.1", expects="a number")
def loudest_lost_cat(answer):
    without_cat = _first_component(0.0, lambda z: z)
    a_word = _first_component(1.0, lambda z: z) - without_cat  # what is left of 1 after the halvings
    expected = -without_cat / a_word
    assert _first_component(expected, torch.relu) == 0 < _first_component(1.001 * expected, torch.relu)
    if close(answer, expected):
        return right()
    if close(answer, 1 / a_word):
        return wrong("魚 writes into the first component too; what is left of it helps 猫 against 好き")
    if close(answer, expected + 1):
        return wrong("a need not be a whole number; just above the right a something is left already")
    if close(answer, 2 * expected) or close(answer, 2 / a_word):
        return wrong("from h_1 to h_5 there are four halvings, not five")
    if close(answer, 1.0):
        return wrong("a = 1 leaves no trace, but larger a do not either: how far down does 好き pull?")
    return wrong("follow the first component: what is left of a and of 魚 when 好き brings -1?")


@exercise("4.2", expects="a number of nats")
def loss_of_a_batch(answer):
    p = torch.tensor([[0.5, 0.25], [0.5, 1.0]], dtype=torch.float64)

    class Given:  # a model that gives the true words these probabilities
        pad_id = 0

        def log_probs(self, source, target):
            return torch.stack([torch.zeros_like(p), p.log(), (1 - p / 2).log()], dim=-1)

    target = torch.tensor([[1, 1, 1], [1, 1, 0]])
    expected = float(translation_loss(Given(), (target, target)))
    loss = -p.log()
    if close(answer, expected):
        return right()
    if close(answer, float((loss[0].mean() + loss[1, 0]) / 2)):
        return wrong("the mean is over all words of the batch; a mean of the sentences' means favours short sentences")
    if close(answer, float(loss.sum() / 4)):
        return wrong("the place of padding was counted as a word: divide by the number of real words")
    if close(answer, float(loss.sum())):
        return wrong("that is the sum; the loss is the mean over the words")
    if close(answer, expected / math.log(2)):
        return wrong("that is in bits; the loss is in nats: natural logarithms")
    if close(answer, -expected):
        return wrong("log P is negative; the loss is minus its mean")
    if close(answer, -math.log((0.5 + 0.25 + 0.5) / 3)):
        return wrong("take the logarithm of each probability first, then the mean")
    return wrong("add -ln of the three probabilities, and divide by the number of real words")


def _random_translator(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Seq2Seq(9, 4, 8, Decoder, GRUCell).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.mul_(3.0)  # strong weights: what it writes changes from step to step
    return model


def _follow(model, ids, length, carry, whole):
    """Greedy as it should be, or with one of two mistakes: the state not carried, the whole prefix read again."""
    memory, state, written = model.encode(torch.tensor([ids])), None, []
    for _ in range(length):
        prefix = [model.start_id, *written]
        log_probs, after = model.step(torch.tensor([prefix if whole else prefix[-1:]]), memory, state)
        state = after if carry else None
        written.append(int(log_probs[0, -1].argmax()))
        if written[-1] == model.end_id:
            return written[:-1]
    return written


@exercise("4.3", expects="a function of (model, ids, length) that returns a list of ids")
def greedy_by_hand(answer):
    sources = torch.randint(3, 9, (40, 5), generator=torch.Generator().manual_seed(0)).tolist()
    models = [_random_translator(seed) for seed in (0, 1, 2)]
    cases = [(model, ids, length) for model in models for ids in sources[:12] for length in (6, 12)]
    results = []
    for model, ids, length in cases:
        got = answer(model, list(ids), length)
        got = got.flatten() if isinstance(got, torch.Tensor) else got
        results.append([int(token) for token in got])
    expected = [greedy(model, torch.tensor([ids]), length)[0] for model, ids, length in cases]
    if results == expected:
        return right()
    starts = [[model.start_id, *row] for (model, _, _), row in zip(cases, expected)]
    if results == starts:
        return wrong("the start token is read first, but it is not written")
    if all(got[: len(row)] == row and len(got) <= length for got, row, (*_, length) in zip(results, expected, cases)):
        return wrong("the end token is no part of the translation: stop there, and leave it out")
    if any(len(got) > length for got, (*_, length) in zip(results, cases)):
        return wrong("a model need not ever write the end token: stop after `length` tokens")
    if results == [_follow(*case, carry=False, whole=False) for case in cases]:
        return wrong("the state was not carried: hand the state that `step` returns to the next step")
    if results == [_follow(*case, carry=True, whole=True) for case in cases]:
        return wrong("the whole prefix is read again at each step, on a state that has read it already")
    return wrong("read the start token, take the most likely token, read that one on from the new state, and so on")


@exercise("4.4", expects="a pair (cell, read)")
def fifty_bits(answer):
    if not (isinstance(answer, tuple | list) and len(answer) == 2 and callable(answer[1])):
        return wrong("give both: the cell, and the function that reads its memo")
    cell, read = answer
    if not isinstance(cell, RNNCell) or (cell.d_x, cell.d_h) != (1, 1):
        return wrong("the encoder should be an RNNCell(1, 1, f=lambda z: z) with weights that you have set")
    probe = torch.tensor([-2.5, 0.3, 40.0], dtype=torch.float64)
    if not torch.equal(cell.f(probe), probe):
        return wrong("f bends: with tanh or ReLU different sentences meet in one number; take f=lambda z: z")
    cell, generator = copy.deepcopy(cell).double().requires_grad_(False), torch.Generator().manual_seed(0)
    for n in (1, 2, 2, 3, 8, 20, 50, 50):
        bits = torch.randint(2, (n,), generator=generator).tolist()
        bits[0] = 0 if n == 3 else bits[0]
        c = float(unroll(cell, torch.tensor(bits, dtype=torch.float64).unsqueeze(1))[1])
        got = [int(bit) for bit in read(c, n)]
        if got == bits:
            continue
        if abs(float(cell.W_h)) == 1:
            return wrong("with W_h = 1 the memo counts the ones; which of them came when is gone")
        if got == bits[::-1]:
            return wrong("the bits come out in the wrong order: which weighs least in c, the first or the last?")
        if len(got) != n:
            return wrong(f"{n} bits went in, {len(got)} came out: zeros at the beginning count too")
        if n >= 20:
            return wrong(f"up to 8 bits all is well, {n} are too many: are the weights powers of 2, exact in a float?")
        return wrong(f"{bits} became c = {c:.6g}, and came out as {got}")
    return right()

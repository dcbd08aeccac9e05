"""The checks of chapter 02's exercises: memos by hand, parameters, one step as a function, a bias folded away.

What is expected is computed here by the library; each wrong answer that is likely gets its own explanation.
"""

import torch

from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.parts.recurrent import RNNCell, unroll
from transformer_lib.show import close, exercise, right, wrong

EMBEDDINGS = {"猫": (1.0, 0.0), "は": (0.0, 1.0), "魚": (1.0, 1.0), "が": (0.0, 1.0), "好き": (-1.0, 1.0)}
CATS_LIKE_FISH, FISH_LIKE_CATS = "猫 は 魚 が 好き", "魚 は 猫 が 好き"


def _memos(sentence, scale=0.5, f=torch.relu, scale_of_word=1.0):
    """h_1 to h_5 with W_h = scale I and W_x = scale_of_word I, no bias."""
    X = torch.tensor([EMBEDDINGS[token] for token in sentence.split()], dtype=torch.float64)
    cell = RNNCell(2, 2, f=f).to(torch.float64).requires_grad_(False)
    cell.W_h.copy_(scale * torch.eye(2))
    cell.W_x.copy_(scale_of_word * torch.eye(2))
    cell.b.zero_()
    return unroll(cell, X)[0]


@exercise("2.1", expects="two numbers, as (0.5, 1)")
def another_order(answer):
    H = _memos(FISH_LIKE_CATS)
    if close(answer, H[4]):
        return right()
    if close(answer, _memos(CATS_LIKE_FISH)[4]):
        return wrong("that is h_5 of 猫 は 魚 が 好き; here 魚 comes first and 猫 third")
    if close(answer, H[3]):
        return wrong("that is h_4; 好き is still to be read")
    if close(answer, _memos(FISH_LIKE_CATS, f=lambda z: z)[4]):
        return wrong("f is missing: ReLU makes a negative component 0")
    if close(answer, _memos(FISH_LIKE_CATS, scale_of_word=0.5)[4]):
        return wrong("only the old memo is halved; the new word is added whole")
    if close(answer, _memos(FISH_LIKE_CATS, scale=1.0)[4]):
        return wrong("the old memo was not halved; W_h = 0.5 I")
    return wrong(f"step 1 gives {tuple(H[0].tolist())}, step 2 {tuple(H[1].tolist())}; go on from there")


@exercise("2.2", expects="two memos of two numbers each, as [(1, 2), (3, 4)]")
def nothing_is_forgotten(answer):
    expected = torch.stack([_memos(sentence, scale=1.0)[4] for sentence in (CATS_LIKE_FISH, FISH_LIKE_CATS)])
    halved = torch.stack([_memos(sentence)[4] for sentence in (CATS_LIKE_FISH, FISH_LIKE_CATS)])
    if close(answer, expected):
        return right()
    if close(answer, halved):
        return wrong("these are the memos with W_h = 0.5 I; now the old memo is kept whole, W_h = I")
    if close(answer, expected[0]):
        return wrong("that is the memo of one of the sentences; the exercise asks for both, one after the other")
    try:
        first, second = answer
    except (TypeError, ValueError):
        return wrong("expected two memos, one for each sentence")
    if close(first, expected[0]) or close(second, expected[1]):
        return wrong("one of the two is right; with W_h = I a memo is a sum of embeddings: does their order matter?")
    return wrong("with W_h = I each step adds the embedding and cuts what is negative; start again from (0, 0)")


@exercise("2.3", expects="a function of (V, d_x, d_h) that returns a whole number")
def parameters(answer):
    for V, d_x, d_h in ((78, 32, 128), (5, 2, 3), (11, 7, 4)):
        model = RecurrentLanguageModel(V, d_x, d_h, cell=RNNCell)
        expected = sum(parameter.numel() for parameter in model.parameters())
        got = answer(V, d_x, d_h)
        if got == expected:
            continue
        likely = {
            expected + d_h: "two biases were counted in the cell, as torch.nn.RNNCell has them; ours has one",
            expected - d_h: "the cell's bias is missing: d_h numbers",
            expected - V: "the bias of the output layer is missing: V numbers",
            expected - d_h - V: "both biases are missing: d_h numbers in the cell, V in the output layer",
            expected - V * d_x: "the embedding is missing: a vector of d_x numbers for each of V tokens",
            expected - V * d_h - V: "the output layer is missing: it maps d_h numbers to V scores",
            expected - d_h * d_h: "W_h is missing: d_h times d_h",
            expected - d_h * d_x: "W_x is missing: d_h times d_x",
            expected - d_h * d_h - d_h * d_x - d_h: "the cell is missing: W_h, W_x and its bias",
        }
        hint = "add up embedding, W_h, W_x, the cell's bias, and the output layer with its bias"
        return wrong(f"for V, d_x, d_h = {V}, {d_x}, {d_h} it returns {got}: {likely.get(got, hint)}")
    return right()


@exercise("2.4", expects="a function of (W_h, W_x, b, h, x) that returns the new memo")
def one_step(answer):
    generator = torch.Generator().manual_seed(27)
    for d_x, d_h in ((3, 3), (2, 4), (5, 1)):
        cell = RNNCell(d_x, d_h).to(torch.float64).requires_grad_(False)
        for parameter in cell.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        h, x = (torch.randn(size, generator=generator, dtype=torch.float64) for size in (d_h, d_x))
        W_h, W_x, b = cell.W_h, cell.W_x, cell.b
        got = answer(W_h, W_x, b, h, x)
        if close(got, cell(x, h)):
            continue
        inside = W_h @ h + W_x @ x + b
        likely = {
            "tanh is missing: what stands inside f was returned": inside,
            "the bias b is missing": torch.tanh(inside - b),
            "f is tanh here, not ReLU": torch.relu(inside),
            "W_h is turned round: row i of W_h makes component i of the memo, so W_h @ h and not h @ W_h": torch.tanh(
                inside - W_h @ h + W_h.T @ h
            ),
            "the old memo is missing: W_h h": torch.tanh(inside - W_h @ h),
            "the new word is missing: W_x x": torch.tanh(inside - W_x @ x),
        }
        for misconception, value in likely.items():
            if close(got, value):
                return wrong(misconception)
        return wrong("the new memo is f(W_h h + W_x x + b) with f = tanh; compare with the formula term by term")
    return right()


@exercise("2.5", expects="a function of (E, W_x, b) that returns a tensor of E's shape")
def bias_folded(answer):
    generator = torch.Generator().manual_seed(25)
    for V, d in ((6, 2), (9, 5)):
        cell = RNNCell(d, d).to(torch.float64).requires_grad_(False)
        W_x = torch.randn(d, d, generator=generator, dtype=torch.float64) + 3 * torch.eye(d)
        b, E = (torch.randn(size, generator=generator, dtype=torch.float64) for size in ((d,), (V, d)))
        cell.W_x.copy_(W_x)
        cell.b.copy_(b)
        H, _ = unroll(cell, E)
        folded = answer(E.clone(), W_x.clone(), b.clone())
        if tuple(getattr(folded, "shape", ())) != (V, d):
            return wrong(f"expected a tensor of shape {(V, d)}, E's own: the same number of tokens, each a vector")
        cell.b.zero_()
        if close(unroll(cell, folded)[0], H, tolerance=1e-5):
            continue
        likely = {
            "b was added to the embeddings; but W_x is applied to them afterwards, and W_x b is not b": E + b,
            "b was multiplied by W_x; W_x is applied afterwards anyway, so it has to be undone beforehand": E + W_x @ b,
            "the sign is wrong: W_x applied to the new embedding must give W_x x + b": E - torch.linalg.solve(W_x, b),
            "W_x is turned round: the shift v has to solve W_x v = b, row i of W_x giving component i": E
            + torch.linalg.solve(W_x.T, b),
            "nothing was changed": E,
        }
        for misconception, value in likely.items():
            if close(folded, value):
                return wrong(misconception)
        return wrong("every embedding x must become x + v with the same v, and W_x (x + v) must equal W_x x + b")
    return right()

"""The checks of chapter 02's exercises: memos by hand, parameters, one step as a function, a bias folded away.

What is expected is computed here by the library; each wrong answer that is likely gets its own explanation.
"""

import math

import torch

from transformer_lib.models import RecurrentLanguageModel
from transformer_lib.parts.recurrent import RNNCell, unroll
from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.show.exercises import numeric

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
    if close(answer, H):
        return wrong("these are all five memos; the last one alone is h_5")
    numbers = numeric(answer)
    if numbers is None or numbers.shape != (2,):
        return wrong("expected the two components of h_5, without quotation marks, such as (0.5, 1)")
    if close(answer, H[4], tolerance=1e-2):
        return wrong("nearly: it was rounded. Halves of halves have an end, so write all the digits")
    if close(answer, H[4].flip(0)):
        return wrong("the two components changed places")
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
    H = torch.stack([_memos(sentence, scale=1.0) for sentence in (CATS_LIKE_FISH, FISH_LIKE_CATS)])
    expected = H[:, 4]
    halved = torch.stack([_memos(sentence)[4] for sentence in (CATS_LIKE_FISH, FISH_LIKE_CATS)])
    if close(answer, expected):
        return right()
    if close(answer, halved):
        return wrong("these are the memos with W_h = 0.5 I; now the old memo is kept whole, W_h = I")
    if close(answer, expected[0]):
        return wrong("that is the memo of one of the sentences; the exercise asks for both, one after the other")
    numbers = numeric(answer)
    if numbers is None or numbers.shape != (2, 2):
        return wrong("expected two memos of two numbers each, one for each sentence: [(1, 2), (3, 4)]")
    first, second = numbers
    if close(answer, H[:, 3]):
        return wrong("these are the memos after four words, h_4; 好き is still to be read")
    if close(answer, H[:, 3] + torch.tensor([0.0, 1.0])):
        return wrong("the -1 that 好き brings into the first component is missing")
    if close(first, expected[0]) or close(second, expected[1]):
        return wrong("one of the two is right; with W_h = I a memo is a sum of embeddings: does their order matter?")
    return wrong("with W_h = I each step adds the embedding and cuts what is negative; start again from (0, 0)")


@exercise("2.3", expects="a function of (V, d_x, d_h) that returns a whole number")
def parameters(answer):
    if not callable(answer):
        return wrong("one number fits one network; the answer is a function of (V, d_x, d_h), without parentheses")
    for V, d_x, d_h in ((78, 32, 128), (5, 2, 3), (11, 7, 4)):
        model = RecurrentLanguageModel(V, d_x, d_h, cell=RNNCell)
        expected = sum(parameter.numel() for parameter in model.parameters())
        got = answer(V, d_x, d_h)
        if got == expected:
            continue
        if got is None:
            return wrong("the function returns None: end it with return")
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
            d_h * d_h + d_h * d_x + d_h: "that is the cell alone; the model has an embedding and an output layer too",
            expected - V * d_x - V: "the embedding and the bias of the output layer are missing",
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
        if got is None:
            return wrong("the function returns None: end it with return")
        if d_h > 1 and tuple(getattr(got, "shape", ())) != (d_h,):
            return wrong(f"expected a vector of {d_h} numbers, as h is; a matrix times a vector is W @ h, not W * h")
        inside = W_h @ h + W_x @ x + b
        likely = {
            "tanh is missing: what stands inside f was returned": inside,
            "the bias b is missing": torch.tanh(inside - b),
            "f is tanh here, not ReLU": torch.relu(inside),
            "W_h is turned round: row i of W_h makes component i of the memo, so W_h @ h and not h @ W_h": torch.tanh(
                inside - W_h @ h + W_h.T @ h
            ),
            "f is tanh here, not the sigmoid": torch.sigmoid(inside),
            "b stands outside of f; it is added before tanh is taken": torch.tanh(inside - b) + b,
            "there is one tanh, of the whole sum": torch.tanh(W_h @ h) + torch.tanh(W_x @ x) + b,
            "the old memo is missing: W_h h": torch.tanh(inside - W_h @ h),
            "the new word is missing: W_x x": torch.tanh(inside - W_x @ x),
        }
        if d_x == d_h:
            likely |= {
                "W_x is turned round: W_x @ x and not x @ W_x": torch.tanh(inside - W_x @ x + W_x.T @ x),
                "both matrices are turned round: W_h @ h and W_x @ x, the vector on the right": torch.tanh(
                    W_h.T @ h + W_x.T @ x + b
                ),
                "h and x are exchanged: W_h belongs to the old memo h, W_x to the word x": torch.tanh(
                    W_h @ x + W_x @ h + b
                ),
            }
        for misconception, value in likely.items():
            if close(got, value):
                return wrong(misconception)
        hint = (
            f"with 1 by 1 matrices, W_h = 0.5, W_x = 0.25, b = 0.25, h = 1, x = 1, it is tanh(1) = {math.tanh(1):.4f}"
        )
        return wrong(f"the new memo is f(W_h h + W_x x + b) with f = tanh; {hint}")
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
        try:
            folded = answer(E.clone(), W_x.clone(), b.clone())
        except RuntimeError as error:
            told = " ".join(str(error).split())
            return wrong(f"it fails ({told}): first solve W_x v = b for one vector v, then add v to every row of E")
        if folded is None:
            return wrong("the function returns None: end it with return")
        if isinstance(folded, list | tuple):
            return wrong("it returns a list; torch.stack(...) makes one matrix of its vectors")
        if close(folded, torch.linalg.solve(W_x, b)):
            return wrong("that is the shift v by itself; add it to every row of E")
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
            "that is what the cell makes of x, W_x x + b; but it multiplies by W_x itself": E @ W_x.T + b,
            "the embeddings went through the solve too; only b has to": torch.linalg.solve(W_x, (E + b).T).T,
        }
        for misconception, value in likely.items():
            if close(folded, value):
                return wrong(misconception)
        return wrong("every embedding x must become x + v with the same v, and W_x (x + v) must equal W_x x + b")
    return right()

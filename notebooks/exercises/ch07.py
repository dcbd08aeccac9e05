"""The checks of chapter 07's exercises: two heads by hand, sizes, costs, the split, all of it, and each head's part.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import torch

from transformer_lib.parts.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_lib.parts.masks import causal_mask
from transformer_lib.show import close, exercise, right, wrong


@exercise("7.1", expects="four numbers, as (1, 2, 3, 4)")
def by_hand(answer):
    A = torch.tensor([[0.25, 0.75], [0.5, 0.5]]).double()
    V = torch.tensor([[[4.0, 0], [0, 4]], [[2, 2], [0, 2]]]).double()
    W_O = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 0, -1, 0], [0, 1, 0, 1]]).double()
    first, second = heads = torch.einsum("hm,hmd->hd", A, V)
    if close(answer, heads.flatten() @ W_O, 1e-3):
        return right()
    if close(answer, heads.flatten(), 1e-3):
        return wrong("that is Concat; it is still to be multiplied by W^O")
    if close(answer, first @ W_O[:2], 1e-3) or close(answer, second @ W_O[2:], 1e-3):
        return wrong("that is the contribution of one head; the other one is still to be added")
    if close(answer, torch.cat([second, first]) @ W_O, 1e-3):
        return wrong("the heads are exchanged: the upper rows of W^O belong to head 1")
    if close(answer, W_O @ heads.flatten(), 1e-3):
        return wrong("vectors are rows here: Concat times W^O, not W^O times Concat")
    if close(answer, torch.einsum("hm,hmd->hd", A.flip(1), V).flatten() @ W_O, 1e-3):
        return wrong("the two weights of a head are exchanged")
    if close(answer, torch.einsum("hm,hmd->hd", A.flip(0), V).flatten() @ W_O, 1e-3):
        return wrong("each head collects with its own weights; here they are exchanged")
    if close(answer, (first @ W_O[:2] + second @ W_O[2:]) / 2, 1e-3):
        return wrong("contributions are added, not averaged")
    if close(answer, heads.flatten() @ W_O.abs(), 1e-3):
        return wrong("one number of the lower half of W^O is negative")
    return wrong("per head: weights times values; then head 1 times the upper half of W^O plus head 2 times the lower")


def _listed(answer):  # [d_k, shape, shape, parameters] as a flat list of six numbers
    flat = []
    for part in answer:
        flat += list(part) if isinstance(part, tuple | list | torch.Size) else [part]
    return flat


@exercise("7.2", expects="[d_k, (rows, columns), (rows, columns), parameters]")
def sizes(answer):
    d_model, h = 768, 12
    d_k, got = d_model // h, _listed(answer)
    parameters = sum(p.numel() for p in MultiHeadAttention(d_model, h, bias=False).parameters())
    if close(got, [d_k, d_model, d_k, d_model, d_model, parameters]):
        return right()
    if len(got) != 6:
        return wrong("expected d_k, two shapes of two numbers each, and one number of parameters")
    if close(got[0], d_model):
        return wrong("d_k is the width of one head: d_model / h")
    if not close(got[0], d_k):
        return wrong("d_k = d_model / h, here 768 / 12")
    if close(got[1:3], [d_k, d_k]):
        return wrong("each head reads the whole embedding: W_i^Q has d_model rows, not d_k")
    if close(got[1:3], [d_k, d_model]):
        return wrong("W_i^Q the other way round: X W_i^Q has to fit, so d_model rows and d_k columns")
    if close(got[1:3], [d_model, d_model]):
        return wrong("that is W^Q of all heads side by side; one head's has d_k columns")
    if not close(got[1:3], [d_model, d_k]):
        return wrong("W_i^Q turns d_model numbers into d_k")
    if close(got[3:5], [d_k, d_model]):
        return wrong("that is one head's part of W^O; W^O itself has h d_v rows")
    if not close(got[3:5], [d_model, d_model]):
        return wrong("W^O has h d_v rows and d_model columns, and h d_v is d_model again")
    if close(got[5], 3 * d_model**2):
        return wrong("W^O is forgotten: four matrices, not three")
    if close(got[5], parameters * h):
        return wrong("that would be twelve heads of full width; theirs is d_model / h")
    if close(got[5], parameters + 4 * d_model):
        return wrong("biases are counted as well; the matrices alone are asked for")
    if close(got[5], 4 * d_model * d_k):
        return wrong("those are the parameters of one head; there are twelve")
    return wrong("four times d_model squared: W^Q, W^K, W^V of all heads side by side, and W^O")


@exercise("7.3", expects="(n, True) or (n, False)")
def balance(answer):
    d_model, (n, depends) = 512, answer
    equal = next(n for n in range(1, 10_000) if 2 * n * n * d_model >= 4 * n * d_model**2)
    if not isinstance(depends, bool):
        return wrong("the second part is True or False: does the number depend on h?")
    if close(n, equal) and not depends:
        return right()
    if close(n, equal):
        return wrong("the number is right; but d_k = d_model / h, so h times n n d_k is n n d_model for any h")
    if close(n, 2 * equal):
        return wrong("scores and collecting both cost n n d_model: two such terms against four")
    if close(n, d_model / 2):
        return wrong("the ratio is turned round: solve 4 n d_model^2 = 2 n^2 d_model once more")
    if close(n, d_model):
        return wrong("four projections of n d_model^2 stand against two terms of n^2 d_model: that is not yet even")
    if close(n, 3 * d_model / 2):
        return wrong("W^O is a projection as well: four, not three")
    if close(n, 2 * d_model * 8):
        return wrong("those are the scores of one head: all heads count, h n n d_k = n n d_model")
    if close(n, 2 * d_model / 8):
        return wrong("each head is only d_k = d_model / h wide: h n n d_k = n n d_model, not h n n d_model")
    return wrong("solve 4 n d_model^2 = 2 n^2 d_model for n")


def _numbers(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@exercise("7.4", expects="a function of (x, h)")
def split(answer):
    for seed, (batch, n, h, d_k) in enumerate(((2, 3, 2, 4), (1, 5, 3, 2), (3, 4, 1, 6), (2, 2, 2, 1))):
        x = _numbers(seed, batch, n, h * d_k)
        expected, got = x.view(batch, n, h, d_k).transpose(1, 2), answer(x.clone(), h)
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if not torch.is_tensor(got):
            return wrong(f"a tensor of shape {tuple(expected.shape)} is asked for")
        if got.shape == expected.shape and torch.equal(got, expected):
            continue
        slips = {
            "view(batch, h, n, d_k) has the right shape but mixes tokens into heads: "
            "cut each row first, view(batch, n, h, d_k), then exchange the two axes": x.reshape(batch, h, n, d_k),
            "the axes are not exchanged yet: heads before tokens, transpose(1, 2)": x.view(batch, n, h, d_k),
            "head i took every h-th number; it should take d_k numbers that stand together": x.view(
                batch, n, d_k, h
            ).permute(0, 3, 1, 2),
            "the last two axes are exchanged: a row for each token, d_k columns": expected.transpose(2, 3),
            "batch and heads are exchanged": expected.transpose(0, 1),
        }
        for words, slip in slips.items():
            if got.shape == slip.shape and torch.equal(got, slip):
                return wrong(words)
        if got.shape != expected.shape:
            return wrong(f"expected the shape (batch, h, n, d_k) = {tuple(expected.shape)}, got {tuple(got.shape)}")
        return wrong(
            "the shape is right, the numbers are not: token j of head i is row j, columns i d_k to (i + 1) d_k"
        )
    return right()


def _attention(X, W_Q, W_K, W_V, h, mask, power=-0.5, softmax_dim=-1, width=None, late=False):
    """The heads (h, n, d_k), with the slips that a check wants to recognise."""
    n, d_model = X.shape
    Q, K, V = ((X @ W).view(n, h, d_model // h).transpose(0, 1) for W in (W_Q, W_K, W_V))
    S = Q @ K.transpose(1, 2) * (width or Q.shape[-1]) ** power
    if late:
        return torch.softmax(S, dim=softmax_dim) * mask @ V
    if mask.is_floating_point():
        return torch.softmax(S + mask, dim=softmax_dim) @ V
    return torch.softmax(S.masked_fill(~mask, -torch.inf), dim=softmax_dim) @ V


def _same(got, slip):
    return torch.allclose(got, slip, rtol=0, atol=1e-8, equal_nan=True)


@exercise("7.5", expects="a function of (X, W_Q, W_K, W_V, W_O, h, mask)")
def from_scratch(answer):
    for seed, (n, d_model, h) in enumerate(((4, 6, 2), (5, 6, 3), (4, 8, 2), (1, 4, 4))):
        X, mask = _numbers(seed, n, d_model), causal_mask(n)
        W_Q, W_K, W_V, W_O = matrices = _numbers(seed + 10, 4, d_model, d_model)
        module = MultiHeadAttention(d_model, h, bias=False).double().requires_grad_(False)
        for part, W in zip((module.W_Q, module.W_K, module.W_V, module.W_O), matrices, strict=True):
            part.weight.copy_(W.T)
        expected, got = module(X, mask=mask), answer(X.clone(), *matrices.clone(), h, mask.clone())
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if not torch.is_tensor(got) or got.shape != expected.shape:
            return wrong(f"expected Z of shape (n, d_model) = {tuple(expected.shape)}")
        if torch.allclose(got, expected, rtol=0, atol=1e-8):
            continue
        mine, said = (X, W_Q, W_K, W_V, h), "the split by view alone mixes tokens into heads"
        mixed = [(X @ W).reshape(h, n, d_model // h) for W in (W_Q, W_K, W_V)]
        by_turns = [(X @ W).view(n, d_model // h, h).permute(2, 0, 1) for W in (W_Q, W_K, W_V)]
        islands, turned = (scaled_dot_product_attention(*three, mask)[0] for three in (mixed, by_turns))
        heads, closed, axis = (
            _attention(*mine, mask),
            mask.double(),
            "each row of A has to sum to 1: the softmax runs over the keys, the last axis",
        )
        reversed_mask = "the mask is read the other way round: here True means that looking is allowed"
        one = "that is one head of full width: one softmax for all"

        def joined(z, n=n, d_model=d_model):
            return z.transpose(0, 1).reshape(n, d_model)

        slips = [  # what it is, the heads side by side
            ("the heads were joined by view or reshape alone: exchange the axes back first", heads.reshape(n, d_model)),
            ("the scores are not divided by sqrt(d_k)", joined(_attention(*mine, mask, power=0))),
            ("the scores are divided by d_k, not by its root", joined(_attention(*mine, mask, power=-1))),
            (
                "the scores are divided by sqrt(d_model); each head's products have d_k terms",
                joined(_attention(*mine, mask, width=d_model)),
            ),
            ("the scores are divided by sqrt(h), not sqrt(d_k)", joined(_attention(*mine, mask, width=h))),
            ("the mask is not used", joined(_attention(*mine, torch.ones_like(mask)))),
            (
                "the mask is used after the softmax, so rows no longer sum to 1: use it before",
                joined(_attention(*mine, mask, late=True)),
            ),
            ("the mask is boolean: added to scores, True only counts as 1", joined(_attention(*mine, closed))),
            (reversed_mask, joined(_attention(*mine, ~mask))),
            (reversed_mask, joined(_attention(*mine, ~mask | torch.eye(n, dtype=torch.bool)))),
            (axis, joined(_attention(*mine, mask, softmax_dim=-2))),
            (axis, joined(_attention(*mine, mask, softmax_dim=0))),
            (one, _attention(*mine[:4], 1, mask)[0]),
            (one, _attention(*mine[:4], 1, mask, width=d_model // h)[0]),
            (said, islands.reshape(n, d_model)),
            (said, joined(islands)),
            ("head i took every h-th number; it should take d_k numbers that stand together", joined(turned)),
            (
                "head i took every h-th number; it should take d_k numbers that stand together",
                turned.permute(1, 2, 0).reshape(n, d_model),
            ),
        ]
        turned_round = joined(_attention(X, W_Q.T, W_K.T, W_V.T, h, mask))
        slips = [(words, concat @ W_O) for words, concat in slips]
        slips += [("W^O is forgotten", joined(heads)), ("W^O is turned round: Concat W_O", joined(heads) @ W_O.T)]
        slips += [("the matrices are used turned round: Q = X W_Q", turned_round @ W) for W in (W_O, W_O.T)]
        for words, slip in slips:
            if _same(got, slip):
                return wrong(words)
        if got.isnan().any():
            return wrong("some numbers are NaN: where the mask is False the score becomes minus infinity, nowhere else")
        return wrong(
            "split, scores over sqrt(d_k), mask, softmax over the keys, collect, join, W_O: one of them differs"
        )
    return right()


@exercise("7.6", expects="a function of (attention, X)")
def contributions(answer):
    for seed, (n, d_model, h, bias) in enumerate(
        ((3, 4, 2, False), (5, 6, 3, True), (2, 8, 4, True), (1, 4, 1, False))
    ):
        torch.manual_seed(seed)
        attention = MultiHeadAttention(d_model, h, bias=bias).double().requires_grad_(False)
        X = _numbers(seed, n, d_model)
        before = {name: value.clone() for name, value in attention.state_dict().items()}
        _, A = attention.with_weights(X)
        heads = A @ attention.project(X, X)[2]
        parts = attention.W_O.weight.T.view(h, d_model // h, d_model)
        expected, got = heads @ parts, answer(attention, X.clone())
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if any(not torch.equal(value, before[name]) for name, value in attention.state_dict().items()):
            return wrong("the function changes the module's weights: copy what you change, or give it back")
        if not torch.is_tensor(got) or got.shape != expected.shape:
            shape = tuple(got.shape) if torch.is_tensor(got) else type(got).__name__
            if torch.is_tensor(got) and got.shape == heads.shape and h > 1:
                return wrong("those are the heads, d_k wide; each is still to be multiplied by its rows of W^O")
            if torch.is_tensor(got) and got.shape == X.shape:
                return wrong("the parts are asked for, one for each head, not their sum")
            return wrong(f"expected the shape (h, n, d_model) = {tuple(expected.shape)}, got {shape}")
        if torch.allclose(got, expected, rtol=0, atol=1e-8):
            continue
        constant = attention.W_O.bias if bias else torch.zeros(d_model).double()
        slips = {
            "the bias of W^O is counted with every head; it belongs to none": expected + constant,
            "the bias of W^O is shared out among the heads; it belongs to none": expected + constant / h,
            "nn.Linear keeps its matrix turned round: W^O is W_O.weight.T": heads
            @ attention.W_O.weight.view(h, d_model // h, d_model),
            "each head got the same rows of W^O, those of head 1": heads @ parts[0],
            "that is what is left *without* head i; its contribution is what is missing then": expected.sum(0)
            + constant
            - expected,
            "that is what is left *without* head i; its contribution is what is missing then ": expected.sum(0)
            - expected,
            "the sign is turned round": -expected,
            "Z is shared out evenly; each head adds something else": (expected.sum(0) + constant).expand_as(expected)
            / h,
            "that is Z itself for every head; its own part is asked for": (expected.sum(0) + constant).expand_as(
                expected
            ),
            "those are its values; they are still to be weighed by A": attention.project(X, X)[2] @ parts,
        }
        for words, slip in slips.items():
            if torch.allclose(got, slip, rtol=0, atol=1e-8):
                return wrong(words.strip())
        return wrong("head i is A_i V_i; multiply it by rows i d_k to (i + 1) d_k of W^O, which is W_O.weight.T")
    return right()

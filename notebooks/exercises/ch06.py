"""The checks of chapter 06's exercises: attention by hand, shapes, a deviation, two masks and a softmax backwards.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import torch

from transformer_lib.parts.attention import masked_softmax, scaled_dot_product_attention
from transformer_lib.parts.masks import causal_mask, padding_mask
from transformer_lib.show import close, exercise, right, wrong


@exercise("6.1", expects="two numbers, as (1, 2)")
def by_hand(answer):
    log3 = torch.tensor(3.0, dtype=torch.float64).log()
    q, K = torch.ones(1, 4).double(), torch.tensor([[1.0, -1, 1, -1], [0, 0, 0, 0]]).double()
    K[1, :2] = log3
    V = torch.tensor([[8.0, 0], [0, 4]]).double()
    Z, A = scaled_dot_product_attention(q, K, V)
    if close(answer, Z, 1e-3):
        return right()
    if close(answer, A, 1e-3):
        return wrong("those are the two weights; collect the values with them")
    if close(answer, scaled_dot_product_attention(q, K, V, scale=1.0)[0], 1e-3):
        return wrong("the scores were not divided: sqrt(d_k) is 2 here")
    if close(answer, scaled_dot_product_attention(q, K, V, scale=0.25)[0], 1e-3):
        return wrong("the scores were divided by d_k = 4; divide by its square root, 2")
    if close(answer, (q @ K.T / 2).exp() @ V, 1e-3):
        return wrong("exp of the scores is not yet a weight: divide by the sum, 1 + 3")
    if close(answer, q @ K.T / 2 @ V, 1e-3):
        return wrong("the values were collected with the scores; the softmax comes between")
    if close(answer, A.flip(-1) @ V, 1e-3):
        return wrong("the two weights are exchanged: the second key has the higher score")
    if close(answer, V.mean(0), 1e-3):
        return wrong("that is the plain mean of the values, as if both scores were equal")
    return wrong("scores q k / 2, then exp over the sum of both, then the sum of weight times value")


@exercise("6.2", expects="two shapes, as [(1, 2), (3, 4)]")
def shapes(answer):
    n, m, d_k, d_v = 7, 12, 64, 32
    Z, A = scaled_dot_product_attention(torch.zeros(n, d_k), torch.zeros(m, d_k), torch.zeros(m, d_v))
    if close(answer, [A.shape, Z.shape]):
        return right()
    if close(answer, [Z.shape, A.shape]):
        return wrong("both are right, in the other order: first A, then Z")
    if close(answer, [(m, n), (m, d_v)]) or close(answer, [(m, n), (n, d_v)]):
        return wrong("the decoder asks: a row of A for each of the 7 queries, a column for each of the 12 keys")
    if close(answer, [(n, n), (n, d_v)]) or close(answer, [(m, m), (m, d_v)]):
        return wrong("a square A is self-attention; here queries and keys come from two sequences")
    if close(answer, [(n, m), (n, d_k)]):
        return wrong("A is right; Z is made of values, which have d_v components")
    if close(answer, [(n, m), (m, d_v)]):
        return wrong("A is right; Z has a row for each query, not for each value")
    return wrong("A has a row for each query and a column for each key; Z has a row for each query, as wide as a value")


@exercise("6.3", expects="a number")
def deviation(answer):
    variance_q, variance_k, d_k = 4, 9, 100
    variance = d_k * variance_q * variance_k  # of the sum of d_k independent products
    if close(answer, (variance / d_k) ** 0.5, 1e-3):
        return right()
    if close(answer, variance / d_k, 1e-3):
        return wrong("that is the variance; the standard deviation is its square root")
    if close(answer, variance**0.5, 1e-3):
        return wrong("that is the deviation of q k itself; it is still to be divided by sqrt(d_k) = 10")
    if close(answer, variance, 1e-3):
        return wrong("that is the variance of q k; divide by sqrt(d_k), and take the root")
    if close(answer, 1, 1e-3):
        return wrong("1 it is only if the components have variance 1; here they have 4 and 9")
    if close(answer, variance**0.5 / d_k, 1e-3):
        return wrong("q k was divided by d_k; divide by its square root")
    if close(answer, (variance_q + variance_k) ** 0.5, 1e-3) or close(answer, variance_q + variance_k, 1e-3):
        return wrong("variances of independent factors with mean 0 multiply; they do not add up")
    return wrong(
        "one product has variance 4 times 9, the sum of 100 has 100 times that; divide by 10 and take the root"
    )


def _scores(seed, *shape):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@exercise("6.4", expects="a function of S")
def causal(answer):
    for seed, n in enumerate((3, 5, 2, 1)):
        S, mask = _scores(seed, n, n), causal_mask(n)
        given = S.clone()
        got = answer(given)
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if not torch.equal(given, S):
            return wrong("the function changes the scores that it was given: work on a copy, as masked_fill does")
        if close(got, masked_softmax(S, mask), 1e-9):
            continue
        strict = S.masked_fill(~mask.tril(-1), -torch.inf)
        columns = torch.softmax(S.masked_fill(~mask, -torch.inf), dim=0)
        slips = {
            "the mask comes after the softmax, so rows no longer sum to 1; add it to the scores": torch.softmax(S, 1)
            * mask,
            "the triangle is turned round: row i hides what comes before it": masked_softmax(S, mask.T),
            "the diagonal is hidden as well; a token may look at itself, and the first has nothing else": torch.softmax(
                strict, 1
            ),
            "the softmax runs down the columns; it belongs along the rows, dim=-1": columns,
            "forbidden scores were set to 0, and exp(0) is 1: set them to minus infinity": torch.softmax(S * mask, 1),
            "nothing is hidden": torch.softmax(S, 1),
            "those are the masked scores; the softmax is still to come": S.masked_fill(~mask, -torch.inf),
        }
        for words, slip in slips.items():
            if close(got, slip, 1e-9):
                return wrong(words)
        if torch.is_tensor(got) and got.isnan().any():
            return wrong("some weights are NaN: 0 times minus infinity is; fill the places in, as masked_fill does")
        return wrong(f"for {n} tokens the weights are others: where j > i make the score minus infinity, then softmax")
    return right()


@exercise("6.5", expects="a function of (ids, pad_id)")
def both_masks(answer):
    cases = [([[1, 1, 4], [2, 1, 3], [5, 6, 2]], 1), ([[4, 5, 6, 7], [8, 9, 0, 0]], 0), ([[3]], 0)]
    for rows, pad_id in cases:
        ids = torch.tensor(rows)
        words, causal_part = padding_mask(ids, pad_id), causal_mask(ids.shape[1])
        expected = causal_part & words.unsqueeze(1)
        got = answer(ids.clone(), pad_id)
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if not torch.is_tensor(got) or got.dtype != torch.bool:
            return wrong("a boolean tensor is asked for, True where looking is allowed")
        if got.shape != expected.shape:
            return wrong(f"expected the shape (batch, n, n) = {tuple(expected.shape)}, got {tuple(got.shape)}")
        if torch.equal(got, expected):
            continue
        slips = {
            "True and False are exchanged: here True means that looking is allowed": ~expected,
            "padding is masked as a query (a row); it has to be masked as a key (a column)": causal_part
            & words.unsqueeze(2),
            "rows of padding are closed too; they need not be: nobody looks at what they compute": expected
            & words.unsqueeze(2),
            "padding may still be looked at": causal_part.expand_as(expected),
            "the future may still be looked at": words.unsqueeze(1).expand_as(expected),
            "the two masks are joined by or; a key must be a word *and* not in the future": causal_part
            | words.unsqueeze(1),
            "the triangle is turned round: a row may look at what comes after it": causal_part.T & words.unsqueeze(1),
            "the diagonal is hidden as well; a token may look at itself": expected & causal_part.tril(-1),
        }
        for said, slip in slips.items():
            if torch.equal(got, slip):
                return wrong(said)
        return wrong("a place (i, j) is open where j is at most i and token j is no padding")
    return right()


@exercise("6.6", expects="a function of (A, G)")
def backwards(answer):
    for seed, (n, m) in enumerate(((2, 3), (4, 4), (1, 5), (3, 1))):
        S, G = _scores(seed, n, m).requires_grad_(), _scores(seed + 10, n, m)
        A = torch.softmax(S, dim=-1)
        (expected,) = torch.autograd.grad(A, S, G)
        A = A.detach()
        got = answer(A.clone(), G.clone())
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if close(got, expected, 1e-7) or torch.is_tensor(got) and got.shape == (n, m) and torch.allclose(got, expected):
            continue
        slips = {
            "only A (1 - A), the Jacobian's diagonal, was used; the row's other scores take part": G * A * (1 - A),
            "A_j G_j is the first half; the weighted mean of the row's G is still to be taken off G_j": A * G,
            "the mean of G has to be weighted with A": A * (G - G.mean(-1, keepdim=True)),
            "the sum runs over the whole matrix; each row is a softmax of its own": A * (G - (A * G).sum()),
            "the sum runs over the queries; it belongs over the keys of a row": A * (G - (A * G).sum(0, keepdim=True)),
            "the sign is turned round": -expected,
            "the factor A_j is missing: the bracket is still to be multiplied by it": G - (A * G).sum(-1, keepdim=True),
            "the mean is weighted already: sum A_i G_i, not divided by m": A * (G - (A * G).mean(-1, keepdim=True)),
            "the weighted mean is taken off outside; it belongs into the bracket, times A_j": A * G
            - (A * G).sum(-1, keepdim=True),
        }
        for words, slip in slips.items():
            if close(got, slip, 1e-7):
                return wrong(words)
        return wrong("the sum is A_j (G_j - sum_i A_i G_i): from each G of a row take the row's weighted mean off")
    return right()

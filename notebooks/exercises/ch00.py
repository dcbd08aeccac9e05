"""The checks of chapter 00's exercises.

Chapter 00. Every expected value is computed here from what the chapter gives.
"""

import math

import torch

from transformer_lib.show import close, exercise, right, wrong

SENTENCE = "猫 は 魚 が 好き"
HEARD = {"猫": {"好き": 6, "苦手": 2}, "犬": {"好き": 1, "苦手": 3}}


@exercise("0.1", expects="a whole number")
def tokens(answer):
    """How many tokens the running example has."""
    if close(answer, len(SENTENCE.split())):
        return right()
    if close(answer, len(SENTENCE.replace(" ", ""))):
        return wrong("you counted the characters; 好き is one word of two characters")
    if close(answer, len(SENTENCE)):
        return wrong("you counted the characters and the blanks; count what stands between the blanks")
    if close(answer, SENTENCE.count(" ")):
        return wrong("you counted the blanks; there is one token more than there are blanks")
    return wrong("count what stands between the blanks: 猫, は and so on")


@exercise("0.2", expects="a number between 0 and 1")
def conditional(answer):
    """P(猫 | 苦手)."""
    joint = HEARD["猫"]["苦手"]
    column = sum(row["苦手"] for row in HEARD.values())
    row = sum(HEARD["猫"].values())
    everything = sum(sum(counts.values()) for counts in HEARD.values())
    if close(answer, joint / column, 1e-3):
        return right()
    if close(answer, joint / row, 1e-3):
        return wrong(
            "you divided by the sentences about cats, which is P(苦手 | 猫); what we know is the end of the sentence"
        )
    if close(answer, joint / everything, 1e-3):
        return wrong("you divided by all twelve sentences, which is P(猫, 苦手); divide by those that end in 苦手")
    if close(answer, row / everything, 1e-3):
        return wrong("that is P(猫), before we heard the end of the sentence")
    if close(answer, 1 - joint / column, 1e-3):
        return wrong("that is the share of the dogs among the sentences that end in 苦手")
    if close(answer, joint) or close(answer, column):
        return wrong("a probability is a share: divide a count by a count")
    return wrong("take the column of 苦手: how many sentences are in it, and how many of them are about cats?")


@exercise("0.3", expects="a list of four numbers")
def softmax(answer):
    """The softmax of scores that are logarithms."""
    shares = torch.tensor([3.0, 3.0, 2.0, 2.0], dtype=torch.float64)
    scores = torch.log(shares)
    if close(answer, torch.softmax(scores, dim=0), 1e-3):
        return right()
    if close(answer, shares):
        return wrong("these are the exponentials; divide them by their sum, so that the result sums to 1")
    if close(answer, scores / scores.sum(), 1e-2):
        return wrong("you divided the scores by their sum; the exponential comes first: scores may be negative")
    if close(answer, torch.log_softmax(scores, dim=0), 1e-3):
        return wrong("these are the logarithms of the probabilities")
    return wrong("e to the power of ln 3 is 3: write down the four exponentials, then divide by their sum")


@exercise("0.4", expects="a list of three numbers")
def gradient(answer):
    """The gradient of -ln p at the scores."""
    scores = torch.log(torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)).requires_grad_()
    p = torch.softmax(scores, dim=0)
    (expected,) = torch.autograd.grad(-torch.log(p[1]), scores)
    if close(answer, expected, 1e-3):
        return right()
    if close(answer, -expected, 1e-3):
        return wrong("that is true minus believed, the way downhill; the gradient is believed minus true")
    if close(answer, p, 1e-3):
        return wrong("that is what the model believes; subtract what is true, (0, 1, 0)")
    for other in (0, 2):
        if close(answer, p.detach() - torch.eye(3, dtype=torch.float64)[other], 1e-3):
            return wrong(f"you took token {other + 1} for the true one; it is the second")
    return wrong("compute the probabilities with the softmax (1 : 2 : 5), then subtract (0, 1, 0)")


@exercise("0.5", expects="a function of two lists of probabilities that returns a number")
def cross_entropy(answer):
    """A function for the cross-entropy in bits, with its corner cases."""
    if not callable(answer):
        return wrong("the answer is the function itself: answer = surprise, without parentheses")

    def expected(p, q):
        if any(p_i > 0 and q_i == 0 for p_i, q_i in zip(p, q)):
            return math.inf
        return sum(p_i * math.log2(1 / q_i) for p_i, q_i in zip(p, q) if p_i > 0)

    p, q = [0.5, 0.25, 0.25], [0.125, 0.125, 0.75]
    came = answer(list(p), list(q))
    if came is None:
        return wrong("the function returns None: end it with return")
    if not close(came, expected(p, q), 1e-6):
        if close(came, expected(p, q) * math.log(2), 1e-6):
            return wrong("that is in nats: take the logarithm to the base 2")
        if close(came, -expected(p, q), 1e-6):
            return wrong("the sign: log q is negative, the surprise is log 1/q")
        if close(came, expected(q, p), 1e-6):
            return wrong("p and q are exchanged: the words come from p, the surprise is the model's, log 1/q")
        if close(came, expected(p, p), 1e-6):
            return wrong("that is the entropy of p; the surprise is the model's, log 1/q")
        return wrong("add p_i times log2(1 / q_i) over all i; for p = (1/2, 1/2), q = (1/4, 3/4) it is about 1.208")
    for p, q, what in (
        ([0.5, 0.5, 0], [0.25, 0.25, 0.5], "where p is 0 and q is not"),
        ([1, 0], [1, 0], "where p and q are both 0; what never comes adds nothing"),
        ([0.5, 0.5], [1, 0], "where q is 0 and p is not; the result is infinite there"),
        ([1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], "for a truth that is certain"),
    ):
        try:
            came = answer(list(p), list(q))
        except (ArithmeticError, ValueError) as error:
            return wrong(f"for p = {p}, q = {q} it fails ({error}): mind the case {what}")
        if not close(came, expected(p, q), 1e-6):
            return wrong(f"for p = {p}, q = {q} it does not give {expected(p, q):g}: mind the case {what}")
    return right()

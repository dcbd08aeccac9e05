"""The checks of chapter 00's exercises.

Chapter 00. Every expected value is computed here from what the chapter gives.
"""

import math

import torch

from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.show.exercises import numeric

SENTENCE = "猫 は 魚 が 好き"
HEARD = {"猫": {"好き": 6, "苦手": 2}, "犬": {"好き": 1, "苦手": 3}}
QUOTED = "that is a text; write the answer without quotation marks, and Python computes it"


@exercise("0.1", expects="a whole number")
def tokens(answer):
    """How many tokens the running example has."""
    if close(answer, len(SENTENCE.split())):
        return right()
    if answer == SENTENCE.split() or answer == SENTENCE or callable(answer):
        return wrong("the question is how many: the answer is a number")
    if isinstance(answer, str):
        return wrong("write the number in digits, without quotation marks")
    if close(answer, len(SENTENCE.replace(" ", ""))):
        return wrong("you counted the characters; 好き is one word of two characters")
    if close(answer, len(SENTENCE)):
        return wrong("you counted the characters and the blanks; count what stands between the blanks")
    if close(answer, SENTENCE.count(" ")):
        return wrong("you counted the blanks; there is one token more than there are blanks")
    return wrong("count what stands between the blanks: 猫 is the first token, は the second, and so on to 好き")


@exercise("0.2", expects="a number between 0 and 1")
def conditional(answer):
    """P(猫 | 苦手)."""
    joint = HEARD["猫"]["苦手"]
    column = sum(row["苦手"] for row in HEARD.values())
    row = sum(HEARD["猫"].values())
    everything = sum(sum(counts.values()) for counts in HEARD.values())
    if close(answer, joint / column, 1e-3):
        return right()
    if isinstance(answer, str):
        return wrong(QUOTED)
    number = numeric(answer)
    if number is None or number.shape != ():
        return wrong("one number is wanted: write a fraction with /, such as 1 / 3")
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
    if close(answer, column / everything, 1e-3):
        return wrong("that is P(苦手), the share of such sentences among all; which share of them is about cats?")
    likes = sum(row["好き"] for row in HEARD.values())
    if close(answer, HEARD["猫"]["好き"] / likes, 1e-3):
        return wrong("that is P(猫 | 好き), the column beside it; the sentence ends in 苦手")
    if close(answer, HEARD["猫"]["好き"] / row, 1e-3):
        return wrong("you divided by the sum of a row; we know the end of the sentence, so divide by its column's sum")
    if close(answer, column / joint, 1e-3):
        return wrong("the fraction stands upside down: the share of the cats is smaller than the whole")
    if not 0 <= number <= 1:
        return wrong("a probability is a share, at most 1: divide a count by a count; a percentage, by 100")
    return wrong(f"take the column of 苦手: {column} sentences are in it; which share of them is about cats?")


@exercise("0.3", expects="a list of four numbers")
def softmax(answer):
    """The softmax of scores that are logarithms."""
    shares = torch.tensor([3.0, 3.0, 2.0, 2.0], dtype=torch.float64)
    scores = torch.log(shares)
    if close(answer, torch.softmax(scores, dim=0), 1e-3):
        return right()
    if isinstance(answer, str):
        return wrong(QUOTED)
    numbers = numeric(answer)
    if numbers is None or numbers.shape != (4,):
        return wrong("four numbers are wanted, one for each score: [..., ..., ..., ...]")
    if close(answer, scores, 1e-3):
        return wrong("these are the scores; the softmax takes their exponentials and divides by the sum")
    if close(answer, shares):
        return wrong("these are the exponentials; divide them by their sum, so that the result sums to 1")
    if close(answer, scores / scores.sum(), 2e-2):
        return wrong("you divided the scores by their sum; the exponential comes first: scores may be negative")
    if close(answer, torch.log_softmax(scores, dim=0), 1e-3):
        return wrong("these are the logarithms of the probabilities")
    if close(answer, torch.softmax(shares, dim=0), 1e-2):
        return wrong("that is the softmax of (3, 3, 2, 2); the scores are the logarithms of these")
    if close(answer, torch.softmax(-scores, dim=0), 1e-2):
        return wrong("the larger score gets the larger probability; yours are the other way round")
    if close(answer, 100 * torch.softmax(scores, dim=0), 1e-2):
        return wrong("these are percentages; a distribution sums to 1")
    if close(answer, torch.full((4,), 0.25), 1e-3):
        return wrong("these are all alike, but the scores are not: ln 3 is larger than ln 2")
    if abs(numbers.sum() - 1) > 1e-2:
        return wrong(f"yours sum to {numbers.sum():.3g}, not to 1: divide each exponential by the sum of all four")
    return wrong(
        "e to the power of ln 3 is 3: write down the four exponentials, then divide each by the sum of all four"
    )


@exercise("0.4", expects="a list of three numbers")
def gradient(answer):
    """The gradient of -ln p at the scores."""
    scores = torch.log(torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)).requires_grad_()
    p = torch.softmax(scores, dim=0)
    (expected,) = torch.autograd.grad(-torch.log(p[1]), scores)
    if close(answer, expected, 1e-3):
        return right()
    if isinstance(answer, str):
        return wrong(QUOTED)
    if close(answer, -torch.log(p[1]), 1e-2):
        return wrong("that is the loss; its gradient has one number for each score")
    numbers = numeric(answer)
    if numbers is None or numbers.shape != (3,):
        return wrong("three numbers are wanted, one for each score: all of them touch the loss through the sum")
    if close(answer, -expected, 1e-3):
        return wrong("that is true minus believed, the way downhill; the gradient is believed minus true")
    if close(answer, p, 1e-3):
        return wrong("that is what the model believes; subtract what is true, (0, 1, 0)")
    for other in (0, 2):
        if close(answer, p.detach() - torch.eye(3, dtype=torch.float64)[other], 1e-3):
            return wrong(f"you took token {other + 1} for the true one; it is the second")
    truth, shares = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64), torch.exp(scores)
    if close(answer, shares - truth, 1e-3) or close(answer, scores - truth, 1e-3) or close(answer, shares, 1e-3):
        return wrong("believed are the probabilities, and they sum to 1: take the softmax of the scores first")
    if close(answer, -truth / p, 1e-3):
        return wrong("that is the gradient at the probabilities; at the scores it is believed minus true")
    if close(answer, expected * truth, 1e-3):
        return wrong("the wrong tokens' scores have a gradient too: the model believes in them, and should not")
    if close(answer, expected.abs(), 1e-3):
        return wrong(f"the sign of the second: {p[1]:.2f} is believed and 1 is true, and the difference is negative")
    if abs(numbers - numeric(expected)).max() < 0.06:
        return wrong("nearly; it looks rounded, and eighths end after three digits")
    return wrong("compute the probabilities with the softmax (1 : 2 : 5), then subtract (0, 1, 0); the three sum to 0")


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
    try:
        came = answer(list(p), list(q))
    except (TypeError, AttributeError) as error:
        return wrong(f"it fails ({error}): p and q are two lists; go through both with zip(p, q)")
    if came is None:
        return wrong("the function returns None: end it with return")
    if numeric(came) is None or numeric(came).shape != ():
        return wrong("one number is wanted, the sum over all i; the function returns something else")
    if not close(came, expected(p, q), 1e-6):
        if close(came, expected(p, q) * math.log(2), 1e-6):
            return wrong("that is in nats: take the logarithm to the base 2")
        if close(came, -expected(p, q), 1e-6):
            return wrong("the sign: log q is negative, the surprise is log 1/q")
        if close(came, expected(q, p), 1e-6):
            return wrong("p and q are exchanged: the words come from p, the surprise is the model's, log 1/q")
        if close(came, expected(p, p), 1e-6):
            return wrong("that is the entropy of p; the surprise is the model's, log 1/q")
        entropy, surprises = expected(p, p), [math.log2(1 / q_i) for q_i in q]
        slips = {
            "divide by nothing: the weights p_i sum to 1 already, so the sum is the average": expected(p, q) / len(p),
            "that is the perplexity, 2 to the power of H; the exercise asks for H": 2 ** expected(p, q),
            "that is by how much it exceeds the entropy of p; do not subtract that": expected(p, q) - entropy,
            "each surprise counts as much as its word is probable: times p_i": sum(surprises),
            "that is the entropy of q; the weights are the p_i": expected(q, q),
            "that is with the logarithm to the base 10: take the base 2": expected(p, q) * math.log10(2),
            "in nats and with the wrong sign: take log2(1 / q_i)": -expected(p, q) * math.log(2),
            "the logarithm is missing: the surprise is log2(1 / q_i)": sum(p_i / q_i for p_i, q_i in zip(p, q)),
            "that is p_i times q_i; the surprise is log2(1 / q_i)": sum(p_i * q_i for p_i, q_i in zip(p, q)),
        }
        for slip, value in slips.items():
            if close(came, value, 1e-6):
                return wrong(slip)
        example = expected([1 / 2, 1 / 2], [1 / 4, 3 / 4])
        return wrong(f"add p_i times log2(1 / q_i) over all i; p = (1/2, 1/2), q = (1/4, 3/4) give about {example:.4g}")
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

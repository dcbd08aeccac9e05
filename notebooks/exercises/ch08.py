"""The checks of chapter 08's exercises: positions and waves by hand, orders that a mask sees, clocks turned and read.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import itertools
import math

import torch

from transformer_lib.parts.attention import scaled_dot_product_attention
from transformer_lib.parts.masks import causal_mask
from transformer_lib.parts.positions import sinusoidal_positions
from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.show.exercises import numeric


def _near(answer, expected, step):  # to within about one unit of the digits asked for
    answer, expected = numeric(answer), numeric(expected)
    if answer is None or answer.shape != expected.shape:
        return False
    return bool((abs(answer - expected) <= step).all())


def _double(pos, i, d_model):  # the angle with the exponent doubled
    return pos / 10_000 ** (2 * 2 * i / d_model)


@exercise("8.1", expects="four numbers, as (1, 2, 3, 4)")
def by_hand(answer):
    pos, expected = 2, sinusoidal_positions(1, 4, start=2)[0].double()
    if _near(answer, expected, 6e-4):
        return right()
    sine, cosine, slow_sine, slow_cosine = expected.tolist()
    slips = {
        "all sines first, then all cosines: in the formula they alternate": [sine, slow_sine, cosine, slow_cosine],
        "sine and cosine are exchanged: the even component, 2i, is the sine": [cosine, sine, slow_cosine, slow_sine],
        "the calculator was set to degrees; the angles are in radians": [
            f(math.radians(angle)) for angle in (pos, pos / 100) for f in (math.sin, math.cos)
        ],
        "the exponent of the second pair is 2i / d_model = 2/4; doubled it would be 1": [
            f(_double(pos, i, 4)) for i in (0, 1) for f in (math.sin, math.cos)
        ],
        "i counts pairs, not components: sine and cosine of a pair share one frequency": [
            f(pos / 10_000 ** (2 * i / 4)) for i, f in enumerate((math.sin, math.cos, math.sin, math.cos))
        ],
        "10000^(i / d_model) was used for pair i; the exponent is 2i / d_model": [
            f(pos / 10_000 ** (i / 4)) for i in (0, 1) for f in (math.sin, math.cos)
        ],
        "each component got a frequency of its own, 10000^(-index / d_model); a pair shares one": [
            f(pos / 10_000 ** (index / 4)) for index, f in enumerate((math.sin, math.cos, math.sin, math.cos))
        ],
        "that is place 1: places count from 0, and pos = 2 is the third token": sinusoidal_positions(1, 4, 1)[0],
        "that is place 3: pos is 2 as it stands, nothing is added": sinusoidal_positions(1, 4, 3)[0],
        "these are the angles; sine and cosine of each are asked for": [pos, pos, pos / 100, pos / 100],
        "the place is divided by 10000 to the power, not multiplied": [
            f(pos * 100**i) for i in (0, 1) for f in (math.sin, math.cos)
        ],
        "2 radians are more than a quarter of a turn: the cosine is negative": expected.abs(),
    }
    for words, slip in slips.items():
        if _near(answer, slip, 6e-4):
            return wrong(words)
    if _near(answer, expected, 6e-3):
        return wrong("nearly: three decimals are asked for")
    got = numeric(answer)
    if got is None or got.shape != (4,):
        return wrong("expected four numbers: d_model = 4, so a row has four components")
    return wrong("two pairs: sine and cosine of 2 / 1, then sine and cosine of 2 / 100, all in radians")


@exercise("8.2", expects="a number")
def longest_wave(answer):
    d_model = 128
    last = d_model // 2 - 1
    omega = torch.atan2(*sinusoidal_positions(1, d_model, start=1)[0, -2:].double())
    if close(answer, 2 * math.pi / omega, 2e-3):
        return right()
    slips = {
        "2 pi 10000 is the limit; the last pair is i = d_model / 2 - 1, so the exponent is 126/128": 2
        * math.pi
        * 10_000,
        "that is 1 / omega, the places for one radian; a whole turn takes 2 pi times as many": 1 / omega,
        "that is the shortest wavelength, of i = 0": 2 * math.pi,
        "that is the longest for d_model = 64": 2 * math.pi * 10_000 ** (62 / 64),
        "that is the longest for d_model = 512": 2 * math.pi * 10_000 ** (510 / 512),
        "i goes to d_model / 2 - 1 = 63, not to 127": 2 * math.pi * 10_000 ** (254 / 128),
        "the exponent is 2i / d_model; here it was i / d_model": 2 * math.pi * 10_000 ** (last / d_model),
        "the exponent was doubled: 4i / d_model": 2 * math.pi * 10_000 ** (4 * last / d_model),
        "that is the frequency; the wavelength is 2 pi divided by it": omega,
        "the exponent 127/128 belongs to no pair: 2i is even, at most 126": 2 * math.pi * 10_000 ** (127 / 128),
        "10000 is the base of the frequencies; a turn has 2 pi radians, and the exponent ends before 1": 10_000,
    }
    for words, slip in slips.items():
        if close(answer, slip, 2e-3):
            return wrong(words)
    if close(answer, 2 * math.pi / omega, 2e-2):
        return wrong("nearly: give it to three digits at least")
    return wrong("the last pair is i = 63; its wavelength is 2 pi times 10000 to the power 2i / d_model")


@exercise("8.3", expects="a whole number")
def orders(answer):
    chance = torch.Generator().manual_seed(0)
    X = torch.randn(6, 4, generator=chance, dtype=torch.float64)
    W = torch.randn(3, 4, 4, generator=chance, dtype=torch.float64)
    all_orders = torch.tensor(list(itertools.permutations(range(6))))
    Q, K, V = (X[all_orders] @ one for one in W)
    Z, _ = scaled_dot_product_attention(Q, K, V, causal_mask(6))
    expected = int(((Z[:, 2] - Z[0, 2]).abs() < 1e-9).all(-1).sum())
    if close(answer, expected):
        return right()
    slips = {
        "the third token must stay, and the first two may change places; but so may the three that come later": 2,
        "what comes later may be in any order (6); but the first two may change places as well": 6,
        "that would be all orders; another token at the third place gives another output there": math.factorial(6),
        "the mask hides what comes later; what came before counts: another pair there, another output": 120,
        "only the order itself? The two before it enter as a sum, and what comes later does not enter": 1,
        "the three at the front may not change places at will: the third is the query, it has to stay": 36,
        "choices that are made independently multiply: 2 times 6, not 2 plus 6": 8,
        "24 is the answer for the last of five tokens; here, count before (2) and after (6)": 24,
    }
    for words, slip in slips.items():
        if close(answer, slip):
            return wrong(words)
    return wrong("the token at the third place stays; the two before it may be exchanged, the three after it reordered")


def _table_slips(length, d_model):
    pos = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)

    def table(angles, other=None):
        return torch.stack([torch.sin(angles), torch.cos(angles if other is None else other)], -1).flatten(1)

    angles = pos / 10_000 ** (even / d_model)
    each = pos / 10_000 ** (torch.arange(d_model, dtype=torch.float64) / d_model)
    return {
        "the exponent is doubled: arange(0, d_model, 2) is the formula's 2i already": table(
            pos / 10_000 ** (2 * even / d_model)
        ),
        "the exponent is doubled, and sine and cosine of a pair have different frequencies": table(
            pos / 10_000 ** (2 * even / d_model), pos / 10_000 ** (2 * (even + 1) / d_model)
        ),
        "the exponent is halved: it is 2i / d_model, i the number of the pair": table(
            pos / 10_000 ** (even / 2 / d_model)
        ),
        "sines first, then cosines: in the formula they alternate": torch.cat([angles.sin(), angles.cos()], 1),
        "sine and cosine are exchanged": table(angles + math.pi / 2, angles - math.pi / 2),
        "places count from 0; yours begin at 1": table((pos + 1) / 10_000 ** (even / d_model)),
        "sine and cosine of a pair share one frequency": table(each[:, 0::2], each[:, 1::2]),
        "the places are multiplied by 10000 to the power; divide by it": table(pos * 10_000 ** (even / d_model)),
        "angles are in radians": table(torch.deg2rad(angles)),
        "the exponent is divided by d_model, not by d_model - 2: the last one stops short of 1": table(
            pos / 10_000 ** (even / max(d_model - 2, 1))
        ),
    }


@exercise("8.4", expects="a function of (length, d_model)")
def table_of_positions(answer):
    for length, d_model in ((7, 6), (1, 4), (40, 16), (3, 2)):
        got, expected = answer(length, d_model), sinusoidal_positions(length, d_model)
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if not torch.is_tensor(got):
            got = torch.as_tensor(got)
        if got.shape != expected.shape:
            transposed = ": rows are places, columns are components" if got.shape == expected.T.shape else ""
            return wrong(
                f"expected the shape (length, d_model) = {tuple(expected.shape)}, got {tuple(got.shape)}{transposed}"
            )
        if torch.allclose(got.double(), expected.double(), rtol=0, atol=1e-5):
            continue
        for words, slip in _table_slips(length, d_model).items():
            if length > 1 and torch.allclose(got.double(), slip, rtol=0, atol=1e-5):
                return wrong(words)
        return wrong(
            f"for {length} places and d_model = {d_model} the numbers are others: sin and cos of pos times omega_i"
        )
    return right()


@exercise("8.5", expects="a function of (x, k)")
def turned(answer):
    for d_model, start, k in ((8, 3, 2), (64, 500, -7), (4, 100, 0), (16, 1000, 900), (2, 5, 1)):
        x, expected = (
            sinusoidal_positions(6, d_model, place).double().view(2, 3, d_model) for place in (start, start + k)
        )
        given = x.clone()
        got = answer(given, k)
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if not torch.equal(given, x):
            return wrong("the function changes the rows that it was given: work on a copy")
        if not torch.is_tensor(got) or got.shape != x.shape:
            return wrong(f"expected a tensor of the shape of x, {tuple(x.shape)}")
        if torch.allclose(got.double(), expected, rtol=0, atol=1e-7):
            continue
        omega = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        sine, cosine = x[..., 0::2], x[..., 1::2]

        def turn(angle, sine=sine, cosine=cosine):
            pair = sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()
            return torch.stack(pair, -1).flatten(-2)

        slips = {
            "turned the wrong way: the sign of sin(omega k) is exchanged": turn(-k * omega),
            "all hands were turned by the same angle; hand i turns by omega_i k": turn(
                torch.full_like(omega, float(k))
            ),
            "the exponent of omega is doubled": turn(k * omega**2),
            "pairs are neighbours, 2i and 2i + 1; yours are the two halves of the row": torch.cat(
                [
                    x[..., : d_model // 2] * (k * omega).cos() + x[..., d_model // 2 :] * (k * omega).sin(),
                    x[..., d_model // 2 :] * (k * omega).cos() - x[..., : d_model // 2] * (k * omega).sin(),
                ],
                -1,
            ),
            "PE(k) was added; the sum of two position vectors is no position vector: rotate": x
            + torch.stack([(k * omega).sin(), (k * omega).cos()], -1).flatten(-2),
            "k does not enter, or as 1": turn(omega),
            "each pair gives (sine', cosine') next to each other; yours come out as halves": torch.cat(
                [turn(k * omega)[..., 0::2], turn(k * omega)[..., 1::2]], -1
            ),
        }
        for words, slip in slips.items():
            if torch.allclose(got.double(), slip, rtol=0, atol=1e-7) and not torch.allclose(
                slip, expected, rtol=0, atol=1e-7
            ):
                return wrong(words)
        return wrong(f"for k = {k} the rows are others: sine' = sine cos(omega k) + cosine sin(omega k), and so on")
    mixed, expected = (
        torch.cat([sinusoidal_positions(3, 8, 20 + k)[:, :4], sinusoidal_positions(3, 8, 90 + k)[:, 4:]], 1).double()
        for k in (0, 7)
    )
    if not torch.allclose(answer(mixed, 7).double(), expected, rtol=0, atol=1e-7):
        return wrong("right for positions, but the place was read off some hands: turn each hand by itself")
    return right()


@exercise("8.6", expects="a function of (x, y)")
def distance(answer):
    for d_model, p, q in (
        (64, 10, 15),
        (64, 15, 10),
        (64, 1234, 234),
        (128, 0, 10_000),
        (512, 9_000, 40),
        (64, 7, 7),
        (64, 31, 4),
        (96, 777, 780),
        (64, 30_000, 22_000),  # far out, where the hands themselves have gone round
        (64, 1_000_000, 1_000_123),
        (128, 55_000, 45_500),
    ):
        x, y = (sinusoidal_positions(1, d_model, place)[0].double() for place in (p, q))
        got = answer(x.clone(), y.clone())
        if got is None:
            return wrong("the function returns nothing; end it with return")
        got = float(got)
        if got == q - p:  # whole: what was not rounded is off by a last digit somewhere
            continue
        if abs(got - (q - p)) < 0.4:
            return wrong(f"nearly: off by {abs(got - (q - p)):.1g}; round to the nearest whole number")
        if got == p - q and p < q:
            return wrong("the sign is exchanged: q - p is asked for, how far y lies ahead of x")
        if max(p, q) > 10_000:
            return wrong(
                f"right for early places, for {p} and {q} it says {got:.6g}: difference of two angles, or a table, "
                "goes wrong where a hand has gone round; take sine and cosine of the difference"
            )
        if got == abs(q - p):
            return wrong(
                "that is the distance without its sign: the inner product cannot tell ahead from back, the sines can"
            )
        if int(got) == got and abs(got - (q - p)) == 1:
            return wrong("off by one: int() cuts off; round() goes to the nearest whole number")
        if got == round(math.remainder(q - p, 2 * math.pi)) or got == round((q - p) % (2 * math.pi)):
            return wrong("the first hand knows the distance only up to whole turns of 6.28; ask the slowest")
        last = 10_000.0 ** (-(d_model - 2) / d_model)
        if abs(got - last * (q - p)) < 1e-6:
            return wrong("that is the angle, omega times the distance: divide it by the omega of the hand")
        if abs(got - last * (q - p) * 10_000) <= 0.51:
            return wrong("the slowest omega is not 1/10000: the last i is d_model / 2 - 1")
        return wrong(
            f"for places {p} and {q} it says {got:.6g}: the slowest hand turns by omega (q - p), less than half a turn"
        )
    return right()

"""The checks of chapter 09's exercises: a norm by hand, counting weights and layers, a test of parts, a decoder layer.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import torch
from torch import nn

from transformer_lib.models import Transformer
from transformer_lib.parts.attention import MultiHeadAttention
from transformer_lib.parts.layers import DecoderLayer, FeedForward, LayerNorm, PostNorm, PreNorm, layer_norm
from transformer_lib.parts.masks import causal_mask, padding_mask
from transformer_lib.show import close, exercise, right, wrong


@exercise("9.1", expects="four numbers, as (1, 2, 3, 4)")
def norm_by_hand(answer):
    x, gamma, beta = (torch.tensor(v, dtype=torch.float64) for v in ((2, 14, 2, -2), (3, 3, 6, 1), (1, 0, 0, 2)))
    ones, zeros, centred = torch.ones_like(x), torch.zeros_like(x), x - x.mean()
    if close(answer, layer_norm(x, gamma, beta, 0.0), 1e-3):
        return right()
    slips = {
        "that is the normalised vector; gamma and beta are still to come": layer_norm(x, ones, zeros, 0.0),
        "sigma squared divides by 4, the number of components, not by 3": gamma * centred / x.std() + beta,
        "you divided by the variance, 36; divide by its root, 6": gamma * centred / centred.pow(2).mean() + beta,
        "beta is added at the end, after gamma has multiplied": gamma * (centred / 6 + beta),
        "gamma multiplied before the norm; it comes after": layer_norm(gamma * x + beta, ones, zeros, 0.0),
        "beta is missing": layer_norm(x, gamma, zeros, 0.0),
        "gamma is missing": layer_norm(x, ones, beta, 0.0),
        "the mean was not taken off": gamma * x / 6 + beta,
        "the mean is taken off, but the division by sigma is missing": gamma * centred + beta,
    }
    for words, slip in slips.items():
        if close(answer, slip, 1e-3):
            return wrong(words)
    return wrong("mean 4, deviations from it, the root of the mean of their squares, then times gamma, plus beta")


def _matrices(part: nn.Module) -> int:
    return sum(W.numel() for name, W in part.named_parameters() if "norm" not in name and "bias" not in name)


@exercise("9.2", expects="three whole numbers")
def weights(answer):
    with torch.device("meta"):
        model = Transformer(30_000, 768, 12, 12, 3072)
    parts = model.encoder[0], model.decoder[0], model.source_embedding, model
    encoder, decoder, embedding, whole = map(_matrices, parts)
    if close(answer, (encoder, decoder, whole), 1e-9):
        return right()
    given = [float(number) for number in answer]
    if len(given) != 3:
        return wrong("three numbers are asked for: encoder layer, decoder layer, whole model")
    attention, ffn = 4 * 768**2, 2 * 768 * 3072
    if close(given[0], 12 * attention + ffn):
        return wrong("the heads do not multiply the weights: each is a twelfth as wide")
    if close(given[0], 3 * 768**2 + ffn):
        return wrong("attention has four matrices; the one after the heads, W^O, was left out")
    if close(given[0], attention + ffn // 2):
        return wrong("the FFN has two matrices, there and back")
    if not close(given[0], encoder):
        return wrong("an encoder layer has 4 d^2 in its attention and 2 d d_ff in its FFN")
    if close(given[1], encoder):
        return wrong("the encoder layer is right; a decoder layer has a second attention")
    if not close(given[1], decoder):
        return wrong("the encoder layer is right; a decoder layer has 4 d^2 more, its source-target attention")
    if close(given[2], whole + 2 * embedding) or close(given[2], whole + embedding):
        return wrong("the layers are right; the matrix is shared, so it counts once")
    if close(given[2], whole - embedding):
        return wrong("the layers are right; the embedding is missing")
    if close(given[2], 6 * (encoder + decoder) + embedding):
        return wrong("the layers are right; N = 12 means 12 in the encoder and 12 in the decoder")
    return wrong("the layers are right; the whole: 12 of each, and 30,000 rows of 768 once")


def _layers_until_seen(n: int, k: int, dilated: bool) -> int:
    seen, layers = 0, 0  # so far back the last token sees
    while seen < n - 1:
        seen, layers = seen + (k - 1) * (k**layers if dilated else 1), layers + 1
    return layers


@exercise("9.3", expects="three whole numbers")
def layers_needed(answer):
    stacked, dilated = _layers_until_seen(10_000, 5, False), _layers_until_seen(10_000, 5, True)
    if close(answer, (stacked, dilated, 1), 1e-9):
        return right()
    given = [float(number) for number in answer]
    if len(given) != 3:
        return wrong("three numbers are asked for: stacked, dilated, attention")
    if given[2] != 1:
        return wrong("one attention layer connects any two tokens")
    if given[0] == -(-10_000 // 5) or given[0] == 10_000 / 5:
        return wrong("a layer sees 5 tokens, its own included: it gets 4 further back, not 5")
    if given[0] == 9_999:
        return wrong("a window of 5 that ends at the token reaches 4 back, not 1")
    if given[0] != stacked:
        return wrong("stacked: each layer reaches 4 further back, and 9,999 are needed")
    if given[1] == dilated - 1:
        return wrong("dilated: with one layer less only 5^5 = 3,125 tokens are seen")
    if given[1] == _layers_until_seen(10_000, 2, True):
        return wrong("dilated: the gaps grow by the factor 5, not 2")
    return wrong("dilated: L layers see 5^L tokens")


class _Shift(nn.Module):
    def forward(self, x):
        return torch.cat([x[:1], x[:-1]])


class _Lambda(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


class _Mirror(nn.Module):
    def forward(self, x):
        return x.flip(0)


def _parts(d: int) -> list[tuple[str, nn.Module, bool]]:
    def far(x):  # whoever changes or watches one token alone may miss these two
        return torch.cat([x[:-1], x[-1:] + x[:1]])

    def batch_norm(x):  # as a formula, for nn.BatchNorm1d refuses a single row
        return (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()

    torch.manual_seed(0)
    return [
        ("a FeedForward", FeedForward(d, 2 * d), True),
        ("a layer norm", LayerNorm(d), True),
        ("the identity", nn.Identity(), True),
        ("self-attention", MultiHeadAttention(d, 2), False),
        ("a batch norm in training", _Lambda(batch_norm), False),
        ("a sum over the tokens so far", _Lambda(lambda x: x.cumsum(0)), False),
        ("a softmax down the tokens", nn.Softmax(dim=0), False),
        ("a part that hands each token the one before", _Shift(), False),
        ("a part in which the last token alone sees the first", _Lambda(far), False),
        ("a part in which the first token alone sees the last", _Lambda(lambda x: far(x.flip(0)).flip(0)), False),
        ("a part that turns the order round", _Mirror(), False),
    ]


@exercise("9.4", expects="a function of (part, n, d)")
def positionwise(answer):
    torch.set_default_dtype(torch.float64)
    for n, d in ((5, 4), (3, 8)):
        for name, part, expected in _parts(d):
            got = answer(part, n, d)
            if got is None:
                return wrong("the function returns nothing; end it with return")
            if isinstance(got, torch.Tensor):
                got = bool(got.all())
            if bool(got) == expected:
                continue
            if name == "self-attention":
                return wrong("it says that attention is positionwise: commuting with a reordering is not enough")
            if expected:
                return wrong(
                    f"it says that {name} is not positionwise; ask only whether the *other* outputs move, with a "
                    "tolerance as 1e-9: a layer norm does not move its own if all components grow alike"
                )
            if name in ("a part that hands each token the one before", "a part that turns the order round"):
                return wrong(f"it says that {name} is positionwise; output i has to move if and only if input i does")
            if "token alone" in name:
                return wrong(f"it overlooks {name}: change every token in turn, not just one")
            return wrong(f"it says that {name} is positionwise")
    return right()


def _post(layer, Y, H, mask, memory_mask):
    for wrapped, others in _steps(layer, H, mask, memory_mask):
        Y = wrapped.norm(Y + wrapped.sublayer(Y, *others))
    return Y


def _steps(layer, H, mask, memory_mask):
    return [
        (layer.attention, (None, mask)),
        (layer.source_attention, (H, memory_mask)),
        (layer.feed_forward, ()),
    ]


def _pre(layer, Y, steps, detour=True, norm_memory=None, norm=None):
    for wrapped, others in steps:
        inner = (norm or wrapped.norm)(Y)
        if norm_memory is not None and others and others[0] is not None:
            others = (norm_memory(others[0]), *others[1:])
        Y = (Y if detour is True else inner if detour == "normed" else 0) + wrapped.sublayer(inner, *others)
    return Y


@exercise("9.5", expects="a function of (layer, Y, H, mask, memory_mask)")
def decoder_layer(answer):
    torch.set_default_dtype(torch.float64)
    for seed, (n, m) in enumerate(((4, 5), (3, 3), (1, 6))):
        torch.manual_seed(seed)
        layer, given = (
            DecoderLayer(MultiHeadAttention(8, 2), MultiHeadAttention(8, 2), FeedForward(8, 16), wrap)
            for wrap in (PreNorm, PostNorm)
        )
        with torch.no_grad():
            for W in layer.parameters():
                W.copy_(torch.randn(W.shape))
        given.load_state_dict(layer.state_dict())  # the answer gets it in Post-LN: to call it whole is no solution
        Y, H, mask = torch.randn(n, 8), torch.randn(m, 8), causal_mask(n)
        memory_mask = padding_mask(torch.tensor([[1] * (m - 1) + [0]]), 0).expand(n, m)
        with torch.no_grad():
            expected, steps = layer(Y, H, mask, memory_mask), _steps(layer, H, mask, memory_mask)
            got = answer(given, Y.clone(), H.clone(), mask, memory_mask)
            if got is None:
                return wrong("the function returns nothing; end it with return")
            if torch.is_tensor(got) and got.shape == expected.shape and torch.allclose(got, expected):
                continue
            open_memory = [steps[0], (layer.source_attention, (H, None)), steps[2]]
            slips = {
                "that is Post-LN: in Pre-LN the norm is applied to what enters the sub-layer, not to the sum": _post(
                    layer, Y, H, mask, memory_mask
                ),
                "the detour is missing: x + sublayer(norm(x))": _pre(layer, Y, steps, detour=False),
                "what is added is the normed vector; the detour carries x itself": _pre(
                    layer, Y, steps, detour="normed"
                ),
                "the order is masked attention, source-target attention, FFN": _pre(
                    layer, Y, [steps[0], steps[2], steps[1]]
                ),
                "source-target attention came before the masked attention": _pre(
                    layer, Y, [steps[1], steps[0], steps[2]]
                ),
                "the source-target attention is missing": _pre(layer, Y, [steps[0], steps[2]]),
                "the target's mask is not used: the future is seen": _pre(
                    layer, Y, [(layer.attention, (None, None)), *steps[1:]]
                ),
                "the memory's mask is not used: padding is seen": _pre(layer, Y, open_memory),
                "the second attention looks at the target again; its keys and values come from H": _pre(
                    layer, Y, [steps[0], (layer.source_attention, (None, mask)), steps[2]]
                ),
                "the first attention's keys and values come from the normed vector too, not from Y itself": _pre(
                    layer, Y, [(layer.attention, (Y, mask)), *steps[1:]]
                ),
                "a norm too many at the end: that one stands once, at the end of the stack": layer.feed_forward.norm(
                    expected
                ),
                "one norm served all three; each sub-layer has its own": _pre(
                    layer, Y, steps, norm=layer.attention.norm
                ),
                "H was normed once more: the norm is for the target's vector alone": _pre(
                    layer, Y, steps, norm_memory=layer.source_attention.norm
                ),
            }
            for words, slip in slips.items():
                if torch.is_tensor(got) and got.shape == slip.shape and torch.allclose(got, slip):
                    return wrong(words)
        return wrong("three times Y = Y + sublayer(norm(Y), ...), each with its own sub-layer and its own norm")
    return right()


@exercise("9.6", expects="a function of (x, g)")
def norm_backwards(answer):
    for seed, (n, d) in enumerate(((2, 4), (3, 8), (1, 5))):
        chance = torch.Generator().manual_seed(seed)
        x, g = (3 * torch.randn(n, d, generator=chance, dtype=torch.float64) + 1 for _ in range(2))
        ones = torch.ones(d, dtype=torch.float64)
        leaf = x.clone().requires_grad_()
        (expected,) = torch.autograd.grad(layer_norm(leaf, ones, 0 * ones, 0.0), leaf, g)
        got = answer(x.clone(), g.clone())
        if got is None:
            return wrong("the function returns nothing; end it with return")
        if torch.is_tensor(got) and got.shape == expected.shape and torch.allclose(got, expected):
            continue
        sigma = x.std(-1, correction=0, keepdim=True)
        hat = (x - x.mean(-1, keepdim=True)) / sigma
        level, along = g.mean(-1, keepdim=True), (g * hat).mean(-1, keepdim=True)
        slips = {
            "mu and sigma were taken as constants; they depend on x too": g / sigma,
            "the part through mu is there, the part through sigma is missing": (g - level) / sigma,
            "the part through sigma is there, the part through mu is missing": (g - hat * along) / sigma,
            "the division by sigma is missing": g - level - hat * along,
            "a mean over the d components is needed, not a sum": (g - d * level - d * hat * along) / sigma,
            "the last term has x minus mu in it; it has to be the normalised vector": (
                g - level - (x - x.mean(-1, keepdim=True)) * along
            )
            / sigma,
            "sigma divides by d, not by d - 1": (g - level - hat * along) / x.std(-1, keepdim=True),
            "the means run over all tokens; each row is a vector of its own": (g - g.mean() - hat * (g * hat).mean())
            / sigma,
            "the signs of the two means are turned round: they are taken off": (g + level + hat * along) / sigma,
        }
        for words, slip in slips.items():
            if close(got, slip, 1e-7):
                return wrong(words)
        return wrong("(g - mean of g - normalised x times the mean of g times normalised x) / sigma, row by row")
    return right()

"""The checks of chapter 11's exercises: what is masked, a cut, a count, kept or random, masking, a pair as input.

What is expected is computed here, by the library where it has it; each likely wrong answer gets its own explanation.
"""

import torch

from transformer_lib.models import Bert
from transformer_lib.show import close, exercise, right, wrong
from transformer_lib.text import WordPieceTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@exercise("11.1", expects="four numbers, as (1, 2, 3, 4)")
def shares(answer):
    def of(n, share=0.15):
        return [share * n * part for part in (1, 0.8, 0.1, 0.1)]

    if close(answer, of(512 - 3), 7e-4):  # nearer than one place in 509
        return right()
    if close(answer, [round(number + 1e-9, 1) for number in of(512 - 3)]):
        return right()
    if close(answer, [round(number) for number in of(512 - 3)]):
        return wrong("expected numbers need not be whole: do not round")
    if close(answer, of(512), 7e-4):
        return wrong("special tokens are never chosen: 509 of the 512 places count")
    if close(answer, of(512 - 2), 7e-4) or close(answer, of(512 - 1), 7e-4):
        return wrong("three places are special: [CLS] once, [SEP] twice")
    if close(answer, [0.15 * 509, *(509 * part for part in (0.8, 0.1, 0.1))], 2e-3):
        return wrong("80, 10 and 10 per cent are shares of the chosen tokens, not of all")
    if close(answer, [0.8 * 0.15 * 509, *of(509)[1:]], 2e-3):
        return wrong("all chosen tokens are asked for, also those that are not replaced by [MASK]")
    if close(answer, [of(509)[0], of(509)[1], 2 * of(509)[2], 0], 2e-3):
        return wrong("a tenth of the chosen keep their token")
    return wrong("15 % of the ordinary tokens; of these 80, 10 and 10 per cent")


@exercise("11.2", expects="a list of pieces, as ['a', '##b']")
def cut(answer):
    tokens = "un unhe help ##lp ##help ##helpful ##ful ##fulness ##ness ##s".split()
    expected = WordPieceTokenizer([*SPECIALS, *tokens]).split("unhelpfulness")
    got = answer.split() if isinstance(answer, str) else [str(piece) for piece in answer]
    if got == expected:
        return right()
    if [piece.removeprefix("##") for piece in got] == [piece.removeprefix("##") for piece in expected]:
        return wrong("right cuts; a piece that continues a word is written with ## in front, the first one without")
    if got == ["un", "##helpful", "##ness"]:
        return wrong("that is how a person would cut; the rule takes the longest token that fits, from the left")
    if got[:1] == ["un"]:
        return wrong("the first piece: a longer token than 'un' begins this word")
    if got == expected[: len(got)]:
        return wrong("this does not reach the end of the word")
    if got[:2] == expected[:2] and got[2:3] == ["##ful"]:
        return wrong("the last part: after ##lp the longest token that fits is longer than ##ful")
    if got == ["[UNK]"]:
        return wrong("it can be cut to its end: try the longest token first, then go on from where it ends")
    unknown = [piece for piece in got if piece not in tokens]
    if unknown:
        return wrong(f"{unknown[0]} is no token of this vocabulary")
    return wrong("from the left, at each step the longest token that fits")


@exercise("11.3", expects="a whole number")
def count(answer):
    v, d, layers, d_ff, longest = 1000, 64, 2, 256, 128
    with torch.device("meta"):
        one = Bert(v, d, 4, layers, d_ff, longest)
    size = {name: sum(p.numel() for p in part.parameters()) for name, part in one.named_children()}
    total = sum(size.values())
    if close(answer, total, 1e-9):
        return right()
    biases = sum(p.numel() for name, p in one.named_parameters() if name.endswith("bias"))
    likely = {
        total - size["pooler"]: "the pooler is missing: a matrix d by d and its bias",
        total - size["positions"]: "the positions are learned as well: 128 rows",
        total + (512 - longest) * d: "the chapter's formula has 512 positions; here there are 128",
        total - size["segments"]: "2 d are missing: the rows of the segments, or the norm after the sum",
        total - d: "d are missing: the bias of the pooler, or half of the norm after the sum",
        total - size["layers"] // 2: "that is one layer; there are two",
        total - biases: "the dense layers have biases",
        total - layers * (d_ff + d): "the two dense layers of each feed-forward have biases too",
        total - 2 * layers * 2 * d: "4 d are missing in each layer: the biases of the attention, or its two norms",
        total - 2 * layers * d: "a norm has gamma and beta, so 2 d parameters",
        total + v * d: "the head of the words uses the embedding's matrix; besides, the heads were not asked for",
    }
    for number, what in likely.items():
        if close(answer, number, 1e-9):
            return wrong(what)
    return wrong(
        "use the formula of the chapter with d = 64, 128 positions, two layers; the number of heads is not in it"
    )


@exercise("11.4", expects="a number")
def kept(answer):
    p, v, keeps, draws = 0.0001, 5000, 0.15, 0.05
    if close(answer, keeps * p / (keeps * p + draws / v), 2e-3):
        return right()
    if close(answer, p / (p + 1 / v), 2e-3):
        return wrong("that is for equal shares; here a token is kept three times as often as it is drawn")
    if close(answer, keeps / (keeps + draws), 2e-3):
        return wrong("that is the share before one looks at the token; how well it fits counts too")
    if close(answer, keeps * p / (keeps * p + draws), 2e-3):
        return wrong("a random token is this very one with probability 1/v only")
    if close(answer, draws / v / (keeps * p + draws / v), 2e-3):
        return wrong("that is the probability that it was drawn at random")
    if close(answer, 100 * keeps * p / (keeps * p + draws / v), 2e-3):
        return wrong("a probability is at most 1; this is in per cent")
    if close(answer, keeps * p, 2e-3):
        return wrong("that is the numerator; divide by the probability to read this token in either way")
    return wrong("compare 0.15 p with 0.05 / v")


@exercise("11.5", expects="a function of (ids, u, w, random_ids, special_ids, mask_id) that returns (given, asked)")
def masking(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    special_ids, mask_id, v = [0, 1, 2, 3, 4], 4, 40
    for seed in range(4):
        chance = torch.Generator().manual_seed(seed)
        ids = torch.randint(5, v, (3, 60), generator=chance)
        ids[:, 0], ids[:, -1], ids[1, 40:] = 2, 3, 0
        u, w = (torch.rand(ids.shape, generator=chance) for _ in range(2))
        random_ids = torch.randint(5, v, ids.shape, generator=chance)
        chosen = (u < 0.15) & ~torch.isin(ids, torch.tensor(special_ids))
        blank, drawn = chosen & (w < 0.8), chosen & (w >= 0.8) & (w < 0.9)
        given = ids.where(~blank, mask_id).where(~drawn, random_ids)
        asked = ids.where(chosen, -100)
        before = ids.clone()
        result = answer(ids, u, w, random_ids, special_ids, mask_id)
        if not torch.equal(ids, before):
            return wrong("the text was changed for the caller too: work on a copy")
        if not isinstance(result, tuple | list) or len(result) != 2:
            return wrong("return two tensors: what the model reads, and what it is asked for")
        got, wanted = (torch.as_tensor(x) for x in result)
        if got.shape != ids.shape or wanted.shape != ids.shape:
            return wrong(f"both have the shape of the ids, {tuple(ids.shape)}; got {tuple(got.shape)}")
        if torch.equal(got, given) and torch.equal(wanted, asked):
            continue
        special = torch.isin(ids, torch.tensor(special_ids))
        if torch.equal(got, asked) and torch.equal(wanted, given):
            return wrong("the other way round: first what the model reads, then what it is asked for")
        if (wanted[u >= 0.15] != -100).any():
            return wrong("where a token was not chosen, asked is -100")
        if (got[special] != ids[special]).any() or (wanted[special] != -100).any():
            return wrong("special tokens are never chosen, padding included")
        if torch.equal(wanted, ids.where(blank, -100)):
            return wrong("all chosen tokens are asked for, not only those read as [MASK]")
        if torch.equal(wanted, ids.where(blank | drawn, -100)):
            return wrong("the tokens that stay as they are were chosen too, and are asked for")
        if torch.equal(wanted, given.where(chosen, -100)):
            return wrong("asked for is the original token, not what stands there now")
        if torch.equal(got, ids.where(~chosen, mask_id)):
            return wrong("only 80 % of the chosen become [MASK]: look at the second lot")
        if torch.equal(got, ids.where(~blank, mask_id).where(~(chosen & (w >= 0.8)), random_ids)):
            return wrong("from 0.9 on a chosen token stays as it is")
        if not torch.equal(wanted, asked):
            return wrong("asked is not right: the ids where u < 0.15 and the token is not special, -100 elsewhere")
        return wrong("what the model reads is not right: w < 0.8 [MASK], from 0.8 to below 0.9 random, else unchanged")
    return right()


@exercise("11.6", expects="a function of (first, second, longest, cls, sep) that returns (ids, segments)")
def as_input(answer):
    if not callable(answer):
        return wrong("write it as a function and give the function itself, not its result")
    letters = "abcdefghijklmnop"
    tokenizer = WordPieceTokenizer([*SPECIALS, *letters])
    cls, sep = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    for a, b, longest in ((3, 4, 20), (3, 4, 10), (9, 3, 10), (2, 12, 9), (6, 6, 10), (5, 4, 8)):
        texts = letters[:a], letters[-b:]
        first, second = (tokenizer.encode(" ".join(text)) for text in texts)
        expected = tokenizer.encode_pair(" ".join(texts[0]), " ".join(texts[1]), longest)
        given = list(first), list(second)
        result = answer(*given, longest, cls, sep)
        if given != (first, second):
            return wrong("the two texts were shortened for the caller too: work on copies")
        if not isinstance(result, tuple | list) or len(result) != 2:
            return wrong("return two lists: the ids and the segments")
        ids, segments = ([int(x) for x in part] for part in result)
        if (ids, segments) == expected:
            continue
        what = f"with {a} and {b} tokens and longest = {longest}"
        if len(ids) > longest:
            return wrong(f"{what} it returns {len(ids)} ids")
        if ids == expected[0]:
            if len(segments) != len(ids):
                return wrong("the ids are right; a segment is wanted for each of them, special tokens too")
            if set(segments) == {1, 2} or segments == [1 - x for x in expected[1]]:
                return wrong("the ids are right; the segments are 0 for the first text and 1 for the second")
            if segments[: expected[1].index(1)] != expected[1][: expected[1].index(1)]:
                return wrong("the ids are right; [CLS] and the first [SEP] belong to the first text, segment 0")
            return wrong("the ids are right; the second text and its [SEP] have segment 1")
        if ids.count(cls) > 1:
            return wrong("[CLS] stands in front of the whole and only there, not before the second text")
        if ids.count(sep) != 2 or ids[-1] != sep:
            return wrong(f"{what}: [SEP] closes both texts, also the second")
        if ids[0] != cls:
            return wrong("[CLS] stands in front")
        if len(ids) < len(expected[0]):
            return wrong(f"{what} it cuts more than it must")
        return wrong(f"{what} it cuts elsewhere: always the longer of the two loses its last token, the first in a tie")
    return right()

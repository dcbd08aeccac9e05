"""What the recipes for translation share: Tatoeba's pairs, one byte-pair vocabulary for both languages.

Chapters 04, 05 and 10: the same data, the same batches, about the same compute; the model differs.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from recipes.cards import options
from recipes.language_model import warm_up_then_down
from recipes.one_model import curve, train_and_keep
from transformer_lib.decoding import beam_search, greedy_all
from transformer_lib.evaluation import bleu
from transformer_lib.models import Seq2Seq, Transformer
from transformer_lib.models.trained import with_parts
from transformer_lib.text import END, PAD, START, BytePairTokenizer, load_corpus
from transformer_lib.training import History, batches_by_length, label_smoothed_cross_entropy, translation_loss

VOCABULARY = 4000
LONGEST = 40  # tokens a translation may have
SMOOTHING = 0.1  # of the Transformers' labels


def joint_tokenizer() -> BytePairTokenizer:
    """One vocabulary for Japanese and English, learned from the training pairs."""
    pairs = load_corpus("tatoeba").train
    texts = [text for pair in pairs for text in (pair.japanese, pair.english)]
    return BytePairTokenizer.train(texts, VOCABULARY, specials=(PAD, START, END))


def encoded_pairs(tokenizer: BytePairTokenizer) -> dict[str, list[tuple[list[int], list[int]]]]:
    """Source and target ids of the pairs of each part; the target with its start and end token."""
    corpus = load_corpus("tatoeba")
    return {
        part: [
            (tokenizer.encode(pair.japanese), tokenizer.encode(pair.english, start=True, end=True))
            for pair in getattr(corpus, part)
        ]
        for part in ("train", "validation", "test")
    }


def validation_loss(pairs: list[tuple[list[int], list[int]]], pad_id: int) -> Callable[[nn.Module], float]:
    """The loss of a model on ten batches of a hundred pairs, in nats a token."""
    batches = batches_by_length(pairs, 100, pad_id)
    return lambda model: sum(float(translation_loss(model, batches(i))) for i in range(10)) / 10


def train_recurrent(name: str, decoder: str, d_h: int, steps: int, learning_rate: float, dropout: float) -> None:
    """The GRU translators: AdamW, the learning rate up and then in a straight line down to 0."""
    arguments = {"d_x": 192, "d_h": d_h, "decoder": decoder, "cell": "GRUCell", "dropout": dropout}
    settings = {"batch_size": 64, "learning_rate": learning_rate, "weight_decay": 0.01, "optimizer": "AdamW"}
    settings["schedule"] = "200 steps up, then a straight line to 0"
    train_translator(
        name,
        Seq2Seq,
        arguments,
        steps,
        settings,
        lambda model: torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=0.01),
        lambda steps: warm_up_then_down(steps, min(200, steps // 2)),
    )


def train_transformer(name: str, d_model: int, d_ff: int, steps: int, learning_rate: float, dropout: float) -> None:
    """The Transformers, Pre-LN: Adam as in the paper, labels smoothed, the schedule of the GRU translators."""
    arguments = {"d_model": d_model, "heads": 4, "layers": 3, "d_ff": d_ff, "dropout": dropout, "wrap": "PreNorm"}
    arguments["positions"] = "SinusoidalPositions"
    settings = {"batch_size": 64, "learning_rate": learning_rate, "weight_decay": 0.01, "smoothing": SMOOTHING}
    settings |= {"optimizer": "AdamW, 0.9, 0.98, 1e-9", "schedule": "400 steps up, then a straight line to 0"}
    train_translator(
        name,
        Transformer,
        arguments,
        steps,
        settings,
        lambda model: torch.optim.AdamW(
            model.parameters(), learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01
        ),
        lambda steps: warm_up_then_down(steps, min(400, steps // 2)),
        partial(label_smoothed_cross_entropy, epsilon=SMOOTHING),
    )


def train_translator(
    name: str,
    kind: Callable[..., nn.Module],
    arguments: dict,
    steps: int,
    settings: dict,
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    make_schedule: Callable[[int], Callable[[int], float]],
    token_loss: Callable[..., Tensor] = nn.functional.nll_loss,
) -> None:
    """Train Japanese -> English, measure BLEU and chrF on the test pairs, write data/models/NAME.*."""
    chosen = options(f"Train {name}; goes on from its checkpoint if there is one.", steps)
    steps = chosen.steps
    torch.set_num_threads(1)  # so that CPU-seconds compare
    torch.manual_seed(0)
    corpus, tokenizer = load_corpus("tatoeba"), joint_tokenizer()
    pairs = encoded_pairs(tokenizer)
    arguments = {"vocab_size": tokenizer.vocab_size, **arguments}
    model = kind(**with_parts(arguments))

    def measure(model: nn.Module, history: History) -> dict:
        translations = [tokenizer.decode(ids) for ids in greedy_all(model, [s for s, _ in pairs["test"]], LONGEST)]
        references = [pair.english for pair in corpus.test]
        words = [len(pair.tokens) for pair in corpus.test]
        by_length = []
        for low, high in ((1, 5), (6, 8), (9, 11), (12, 99)):
            rows = [i for i, count in enumerate(words) if low <= count <= high]
            part = bleu(hypotheses=[translations[i] for i in rows], references=[references[i] for i in rows])
            by_length.append({"words": [low, high], "sentences": len(rows), "bleu": part["bleu"], "chrf": part["chrf"]})
        cats = torch.tensor(tokenizer.encode("猫は魚が好き"))
        return {
            "figures": {"decoding": "greedy", "sentences": len(references)}
            | bleu(hypotheses=translations, references=references, samples=1000),
            "by_source_words": by_length,
            "cats_like_fish": [tokenizer.decode(h.ids) for h in beam_search(model, cats, beam=4, length=LONGEST)],
            "translations": [
                {"japanese": corpus.test[i].japanese, "english": references[i], "model": translations[i]}
                for i in range(0, len(references), len(references) // 50)
            ][:50],
            "curve": curve(history, "validation loss, nats a token, on 1,000 pairs"),
        }

    train_and_keep(
        name,
        chosen,
        model,
        tokenizer,
        {
            "arguments": arguments,
            "data": "tatoeba, Japanese to English, one byte-pair vocabulary",
            "training": {"steps": steps, **settings, "clip": 1.0, "seed": 0},
        },
        batches_by_length(pairs["train"], settings["batch_size"], model.pad_id),
        make_optimizer(model),
        make_schedule(steps),
        validation_loss(pairs["validation"], model.pad_id),
        250,
        measure,
        partial(translation_loss, token_loss=token_loss),
    )

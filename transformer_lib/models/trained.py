"""The models that the recipes trained and the course ships: weights, tokenizer and card under data/models.

Chapter 02 onwards: a notebook loads what would take too long to train live.
"""

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..checks import require
from ..files import whole_file
from ..parts.attention import MultiHeadAttention, RotaryAttention
from ..parts.layers import PostNorm, PreNorm, squared_relu
from ..parts.positions import LearnedPositions, SinusoidalPositions
from ..parts.recurrent import GRUCell, LSTMCell, RNNCell
from ..paths import DATA
from ..text.tokenizers import Tokenizer
from ..weights import load_weights, own_tensors, read_weights, write_weights
from .bert import Bert, PretrainingHeads
from .gpt import GPT
from .recurrent import RecurrentLanguageModel
from .seq2seq import AttentionDecoder, ContextDecoder, Decoder, Seq2Seq
from .transformer import Transformer

CELLS = {cell.__name__: cell for cell in (RNNCell, LSTMCell, GRUCell)}
MODELS = {model.__name__: model for model in (RecurrentLanguageModel, Seq2Seq, GPT, Transformer)}
MODELS[PretrainingHeads.__name__] = lambda **arguments: PretrainingHeads(Bert(**arguments))
PARTS = {
    part: {getattr(kind, "__name__", kind): kind for kind in kinds}
    for part, kinds in {
        "cell": CELLS.values(),
        "decoder": (Decoder, ContextDecoder, AttentionDecoder),
        "positions": (LearnedPositions, SinusoidalPositions, None),
        "wrap": (PostNorm, PreNorm),
        "attention": (MultiHeadAttention, RotaryAttention),
        "f": (nn.functional.gelu, squared_relu),
    }.items()
}  # arguments that a card gives by name


def with_parts(arguments: dict[str, Any]) -> dict[str, Any]:
    """A card's arguments, with the parts themselves where the card has their names."""
    return arguments | {part: kinds[arguments[part]] for part, kinds in PARTS.items() if part in arguments}


def load_card(name: str, folder: Path | None = None) -> dict[str, Any]:
    """The card of a trained model: data, settings, steps, CPU-seconds, figures reached."""
    folder = folder or DATA / "models"
    path = folder / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.json") if not p.stem.endswith(".tokenizer"))) or "none"
        raise FileNotFoundError(f"{name}: expected a trained model under data/models (there: {there}); see recipes/")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        card = None
    if not isinstance(card, dict):
        raise ValueError(f"{path.name}: expected a card in JSON, got a damaged file; fetch it again")
    return card


def load_trained(name: str, folder: Path | None = None) -> tuple[nn.Module, Tokenizer, dict[str, Any]]:
    """A trained model in evaluation mode, in torch's default number format, with its tokenizer and its card."""
    folder = folder or DATA / "models"
    card = load_card(name, folder)
    arguments = card.get("arguments")
    try:
        model = MODELS[card.get("model")](**with_parts(arguments))
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{name}.json: expected a card with the arguments of a {' or '.join(MODELS)}, and of parts only "
            f"{', '.join(str(kind) for kinds in PARTS.values() for kind in kinds)}, "
            f"got {card.get('model')} with {arguments}; fetch it again"
        ) from error
    tokenizer = Tokenizer.load(folder / f"{name}.tokenizer.json")
    require(
        tokenizer.vocab_size == model.vocab_size,
        f"{name}.tokenizer.json: expected the model's {model.vocab_size} tokens, got {tokenizer.vocab_size}; "
        "fetch both again, or train the model anew",
    )
    weights = folder / f"{name}.safetensors"
    tensors, _ = read_weights(weights)
    found, named = sha256(weights.read_bytes()).hexdigest(), str(card.get("sha256"))
    require(
        found == named,
        f"{weights.name}: expected the weights that the card names (sha256 {named[:12]}), got {found[:12]}; "
        "fetch both again, or train the model anew",
    )
    load_weights(model, tensors, name)
    return model.eval(), tokenizer, card


def save_trained(
    name: str,
    model: nn.Module,
    tokenizer: Tokenizer,
    card: dict[str, Any],
    folder: Path | None = None,
    number_format: torch.dtype = torch.float32,
) -> None:
    """Write weights (float32, or float16 for space), tokenizer and card: none replaces the old before all are done.

    card: must hold "arguments", with which the model was made (a cell by its name), and whatever the notebooks read.
    """
    folder = folder or DATA / "models"
    require("arguments" in card, "card: expected the model's 'arguments', which load_trained needs, got none")
    tensors = {key: value.to(number_format) for key, value in own_tensors(model).items()}
    broken = [key for key, value in tensors.items() if not value.isfinite().all()]
    require(
        len(broken) == 0,
        f"model: expected finite weights in {number_format}, got NaN or infinity in {', '.join(broken[:3])}; "
        "save in float32, or train with a lower learning rate",
    )
    with (  # left in reverse: the card comes last, and so stands only beside a whole model
        whole_file(folder / f"{name}.json") as card_file,
        whole_file(folder / f"{name}.tokenizer.json") as tokenizer_file,
        whole_file(folder / f"{name}.safetensors") as weights_file,
    ):
        write_weights(weights_file, tensors, {})
        tokenizer.save(tokenizer_file)
        checksum = sha256(weights_file.read_bytes()).hexdigest()
        made = {"model": type(model).__name__, "sha256": checksum}  # in front, and never as an older card had it
        content = json.dumps(made | card | made, ensure_ascii=False, indent=2)
        card_file.write_text(content + "\n", encoding="utf-8", newline="\n")


def ladder(folder: Path | None = None) -> list[dict[str, Any]]:
    """The rungs there are so far, best last: name, parameters, training CPU-seconds, bits and nats a character.

    All on the same held-out plays of Shakespeare, read from the cards of the recipes.
    """
    folder = folder or DATA / "models"
    rungs = []
    for path in sorted(folder.glob("*-shakespeare.json")):
        card = load_card(path.stem, folder)
        rungs += card["rungs"] if "rungs" in card else [_rung(path.stem, card)]
    return sorted(rungs, key=lambda rung: -rung["bits"])


def _rung(stem: str, card: dict[str, Any]) -> dict[str, Any]:
    bits, (kind, *more) = card["figures"]["test_bits"], stem.removesuffix("-shakespeare").split("-")
    return {
        "name": " ".join([kind.upper(), *more]),
        "parameters": card["parameters"],
        "cpu_seconds": card["training_cpu_seconds"],
        "bits": bits,
        "nats": bits * math.log(2),
    }

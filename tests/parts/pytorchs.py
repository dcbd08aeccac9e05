"""Our layers' weights, copied into PyTorch's layers of the same architecture, and weights drawn anew.

For the tests of chapters 07 and 09, and for benchmarks.
"""

import torch
from torch import nn

from transformer_lib.models import Transformer
from transformer_lib.parts.attention import MultiHeadAttention
from transformer_lib.parts.layers import DecoderLayer, EncoderLayer, FeedForward, LayerNorm


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Three matrices into one."""
    parts = (ours.W_Q, ours.W_K, ours.W_V)
    theirs.in_proj_weight.copy_(torch.cat([W.weight for W in parts]))
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.copy_(torch.cat([W.bias for W in parts]))
    theirs.out_proj.load_state_dict(ours.W_O.state_dict())


@torch.no_grad()
def copy_norm(ours: LayerNorm, theirs: nn.LayerNorm) -> None:
    """Two vectors with other names."""
    theirs.weight.copy_(ours.gamma), theirs.bias.copy_(ours.beta)


def copy_feed_forward(ours: FeedForward, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    """Both linear layers."""
    theirs.linear1.load_state_dict(ours.W_1.state_dict())
    theirs.linear2.load_state_dict(ours.W_2.state_dict())


def copy_encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> None:
    """Everything of one encoder layer."""
    copy_attention(ours.attention.sublayer, theirs.self_attn)
    copy_norm(ours.attention.norm, theirs.norm1)
    copy_feed_forward(ours.feed_forward.sublayer, theirs)
    copy_norm(ours.feed_forward.norm, theirs.norm2)


def copy_decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> None:
    """Everything of one decoder layer."""
    copy_attention(ours.attention.sublayer, theirs.self_attn)
    copy_norm(ours.attention.norm, theirs.norm1)
    copy_attention(ours.source_attention.sublayer, theirs.multihead_attn)
    copy_norm(ours.source_attention.norm, theirs.norm2)
    copy_feed_forward(ours.feed_forward.sublayer, theirs)
    copy_norm(ours.feed_forward.norm, theirs.norm3)


def as_pytorchs(ours: Transformer, dropout: float = 0.0) -> nn.Transformer:
    """nn.Transformer with the weights of our stacks; the final norms that it adds to Post-LN are taken away again."""
    pre, layers = isinstance(ours.encoder_norm, LayerNorm), len(ours.encoder)
    d_model, heads = ours.d_model, ours.encoder[0].attention.sublayer.heads
    d_ff = ours.encoder[0].feed_forward.sublayer.W_1.out_features
    layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, dropout, batch_first=True, norm_first=pre)
    encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
    theirs = nn.Transformer(
        d_model, heads, layers, layers, d_ff, dropout, batch_first=True, norm_first=pre, custom_encoder=encoder
    )
    for mine, other in zip(ours.encoder, theirs.encoder.layers, strict=True):
        copy_encoder_layer(mine, other)
    for mine, other in zip(ours.decoder, theirs.decoder.layers, strict=True):
        copy_decoder_layer(mine, other)
    for stack, norm in ((theirs.encoder, ours.encoder_norm), (theirs.decoder, ours.decoder_norm)):
        if pre:
            copy_norm(norm, stack.norm)
        else:
            stack.norm = None
    return theirs


@torch.no_grad()
def shake(model: nn.Module, seed: int = 0) -> nn.Module:
    """Every weight drawn anew: what a start sets to 0 or 1 hides mistakes."""
    chance = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.copy_(0.4 * torch.randn(parameter.shape, generator=chance))
    return model

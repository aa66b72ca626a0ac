"""Small models of others, random weights and prime sizes, each with inputs; for tests of wrapped models."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def prepare_torchvision() -> None:
    """Both libraries import torchvision, whose operators may be built for another torch; they use none.

    Where they cannot be loaded they are declared, and only there: to declare one twice ends the process.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor boxes, Tensor scores, float iou) -> Tensor"
            )
        importlib.import_module("torchvision")


def import_timm() -> Any:
    prepare_torchvision()
    return importlib.import_module("timm")


def import_transformers() -> Any:
    prepare_torchvision()
    return importlib.import_module("transformers")


def timm_vit(**more: Any) -> nn.Module:
    settings = {"img_size": 16, "patch_size": 4, "in_chans": 3, "embed_dim": 35, "depth": 3, "num_heads": 5}
    return import_timm().models.VisionTransformer(**{**settings, "num_classes": 7, **more})


def bert(layers: int = 3) -> nn.Module:
    transformers = import_transformers()
    config = transformers.BertConfig(
        hidden_size=35, num_attention_heads=5, num_hidden_layers=layers, intermediate_size=17,
        vocab_size=101, num_labels=7, max_position_embeddings=64,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def hugging_vit() -> nn.Module:
    transformers = import_transformers()
    config = transformers.ViTConfig(
        hidden_size=35, num_attention_heads=5, num_hidden_layers=2, intermediate_size=17,
        image_size=16, patch_size=4, num_labels=7,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


def gpt2() -> nn.Module:
    transformers = import_transformers()
    config = transformers.GPT2Config(
        n_embd=35, n_head=5, n_layer=2, vocab_size=101, n_positions=64, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def llama() -> nn.Module:
    """Six heads of queries share three of keys and values."""
    transformers = import_transformers()
    config = transformers.LlamaConfig(
        hidden_size=60, num_attention_heads=6, num_key_value_heads=3, head_dim=10, num_hidden_layers=2,
        intermediate_size=17, vocab_size=101,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def torch_encoder(*, norm_first: bool, batch_first: bool) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        35, 5, dim_feedforward=17, norm_first=norm_first, batch_first=batch_first
    )
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)


def torch_decoder(*, norm_first: bool) -> nn.Module:
    layer = nn.TransformerDecoderLayer(35, 5, dim_feedforward=17, norm_first=norm_first, batch_first=True)
    return nn.TransformerDecoder(layer, 2)


class Plain(nn.Module):
    """Causal attention by torch's kernel, as people write it by hand."""

    def __init__(self, width: int = 35, heads: int = 5) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.mix(z.transpose(1, 2).flatten(2))


class PlainStack(nn.Module):
    """Tokens in, logits of a class out."""

    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 35)
        self.layers = nn.ModuleList(Plain() for _ in range(layers))
        self.readout = nn.Linear(35, 7)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.readout(x.mean(dim=1))


TOKENS = torch.arange(26).reshape(2, 13) % 11
IMAGES = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
ROWS = torch.randn(2, 13, 35, generator=torch.Generator().manual_seed(2))
MEMORY = torch.randn(2, 11, 35, generator=torch.Generator().manual_seed(3))

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "torch encoder, post-norm": (lambda: torch_encoder(norm_first=False, batch_first=True), (ROWS,)),
    "torch encoder, pre-norm": (lambda: torch_encoder(norm_first=True, batch_first=True), (ROWS,)),
    "torch encoder, batch second": (lambda: torch_encoder(norm_first=True, batch_first=False), (ROWS,)),
    "torch decoder, post-norm": (lambda: torch_decoder(norm_first=False), (ROWS, MEMORY)),
    "torch decoder, pre-norm": (lambda: torch_decoder(norm_first=True), (ROWS, MEMORY)),
    "torch transformer": (
        lambda: nn.Transformer(30, 6, 2, 2, 17, batch_first=True),
        (MEMORY[..., :30], ROWS[..., :30]),
    ),
    "timm": (timm_vit, (IMAGES,)),
    "timm, pooled": (lambda: timm_vit(class_token=False, global_pool="avg"), (IMAGES,)),
    "bert": (bert, (TOKENS,)),
    "hugging face vit": (hugging_vit, (IMAGES,)),
    "gpt2": (gpt2, (TOKENS,)),
    "llama": (llama, (TOKENS,)),
    "by hand": (PlainStack, (TOKENS,)),
}

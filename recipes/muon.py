"""Muon on the matrices of the layers, AdamW on everything else, as one optimizer that `fit` and checkpoints understand.

Chapters 11 and 13. Source: Jordan et al., Muon: An optimizer for hidden layers in neural networks (2024); torch's own.
"""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn


class MuonAndAdamW(torch.optim.Optimizer):
    """Two parameter groups: the matrices below `layers` (Muon), and all other parameters (AdamW)."""

    def __init__(
        self,
        model: nn.Module,
        muon_rate: float,
        adam_rate: float,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.98),
    ):
        named = list(model.named_parameters())
        matrices = [p for name, p in named if "layers." in name and p.dim() == 2]
        chosen = set(map(id, matrices))
        others = [p for _, p in named if id(p) not in chosen]
        self.muon = torch.optim.Muon(matrices, muon_rate, weight_decay)
        self.adamw = torch.optim.AdamW(others, adam_rate, betas, weight_decay=weight_decay)
        super().__init__([*self.muon.param_groups, *self.adamw.param_groups], {})
        self._link()

    def _link(self) -> None:
        """Both work on this optimizer's groups and state: what is saved and set here is what they use."""
        self.muon.param_groups, self.adamw.param_groups = self.param_groups[:1], self.param_groups[1:]
        self.muon.state = self.adamw.state = self.state

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """One step of both."""
        self.muon.step()
        self.adamw.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As of any optimizer."""
        super().load_state_dict(state_dict)
        self.state = defaultdict(dict[str, Tensor], self.state)
        self._link()

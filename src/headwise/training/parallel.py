"""One process or many, through `accelerate`.

Start several with `torchrun --nproc-per-node 2 ...`, or on GPUs `accelerate launch ...`. Each batch is shared
out to the processes by examples, so a step computes what one process computes with the whole batch.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.training.extras import need
from headwise.training.optimizer import gradient_norm, scale_gradients


class Processes:
    """This process among those that train together.

    With DistributedDataParallel every process holds the whole model; with `shard` (FSDP, `fully_shard`)
    weights, gradients and the optimizer's averages are cut over the processes, layer by layer.

    Args:
        device: "auto", or "cpu"
        shard: also where `accelerate launch --use_fsdp` asks for it

    Raises:
        MissingExtra: accelerate isn't installed.
        ValueError: another device.
    """

    def __init__(self, device: str = "auto", *, shard: bool = False) -> None:
        if device not in ("auto", "cpu"):
            raise ValueError(f"device is {device!r}: choose auto or cpu (CUDA_VISIBLE_DEVICES chooses GPUs)")
        module = need("accelerate", "training")
        shard = shard or os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
        self._accelerator: Any = module.Accelerator(cpu=device == "cpu", mixed_precision="no")
        self.device: torch.device = self._accelerator.device
        self.rank: int = self._accelerator.process_index
        self.world: int = self._accelerator.num_processes
        self.first: bool = self._accelerator.is_main_process
        self.sharded = shard and self.world > 1
        self._model: Any = None
        self._optimizer: Any = None

    def prepare(
        self, model: nn.Module, build: Callable[[nn.Module], torch.optim.Optimizer]
    ) -> tuple[nn.Module, torch.optim.Optimizer]:
        """The model as it is to be called (in its wrapper, for several processes), and its optimizer."""
        self._model = model.to(self.device)
        if self.sharded:
            self._model = _shard(model, self.device, self.world)
        elif self.world > 1:
            self._model = self._accelerator.prepare(model)
        self._optimizer = build(self.plain())
        return self._model, self._optimizer

    @contextmanager
    def backward_of(self, last: bool) -> Iterator[None]:
        """Around the backward pass of a batch: only that of a step's last batch shares gradients."""
        waits: AbstractContextManager[Any] = contextlib.nullcontext()
        if self.sharded:
            self._model.set_requires_gradient_sync(last)
        elif self.world > 1 and not last:
            waits = self._accelerator.no_sync(self._model)
        with waits:
            yield

    def sums(self, numbers: list[float]) -> list[float]:
        """The sums over processes of each number, in float64."""
        if self.world == 1:
            return numbers
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(tensor)
        summed: list[float] = tensor.tolist()
        return summed

    def finish_gradients(self, count: float, clip: float | None) -> float:
        """Divide the summed gradients by the step's count, clip them; their norm before clipping."""
        parameters = [one for one in self._model.parameters() if one.grad is not None]
        # The wrapper has averaged over processes: times their number it is the sum.
        scale_gradients(parameters, self.world / count)
        norm = float(_whole(gradient_norm(parameters)))
        if clip is not None and norm > clip and math.isfinite(norm):
            scale_gradients(parameters, clip / norm)
        return norm

    def tell_all(self, thing: Any) -> Any:
        """What the first process has, on every process."""
        if self.world == 1:
            return thing
        box = [thing]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, thing: Any) -> list[Any]:
        """What every process has, in order of rank."""
        if self.world == 1:
            return [thing]
        everything: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(everything, thing)
        return everything

    def first_does(self, action: Callable[[], Any]) -> Any:
        """Run this on the first process alone; all get its result, or raise its error."""
        result, error = None, None
        if self.first:
            try:
                result = action()
            except Exception as raised:
                if self.world == 1:
                    raise
                error = raised
        result, error = self.tell_all((result, error))
        if error is not None:
            raise error
        return result

    def plain(self) -> nn.Module:
        """The model without its wrapper."""
        model: nn.Module = self._model if self.sharded else self._accelerator.unwrap_model(self._model)
        return model

    @contextmanager
    def whole_model(self) -> Iterator[nn.Module]:
        """The plain model with all its weights in place, so that its parts may be called too."""
        if not self.sharded:
            yield self.plain()
            return
        parts = [one for one in self._model.modules() if hasattr(one, "unshard")]
        for one in parts:
            one.unshard()
        try:
            yield self._model
        finally:
            for one in parts:
                one.reshard()

    def weights(self) -> dict[str, Tensor]:
        """All weights and buffers by name. Every process must ask."""
        return {name: _whole(one) for name, one in self.plain().state_dict().items()}

    def optimizer_state(self) -> dict[str, Tensor]:
        """The optimizer's tensors as "exp_avg/name of the weight". Every process must ask."""
        state = self._optimizer.state
        return {
            f"{entry}/{name}": _whole(value)
            for name, one in self.plain().named_parameters()
            for entry, value in sorted(state.get(one, {}).items())  # processes must ask in one order
        }

    def restore_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `optimizer_state` gave."""
        found: dict[str, dict[str, Tensor]] = {}
        for path, tensor in tensors.items():
            entry, _, name = path.partition("/")
            found.setdefault(name, {})[entry] = tensor
        for name, one in self.plain().named_parameters():
            if name in found:
                self._optimizer.state[one] = {
                    entry: _like(one, tensor.to(one.device, copy=True))
                    for entry, tensor in sorted(found[name].items())
                }


def _shard(model: nn.Module, device: torch.device, world: int) -> nn.Module:
    """Cut the layers of the model's stacks over the processes, each by itself, and then the rest."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (world,))
    for stack in model.modules():
        if isinstance(stack, nn.ModuleList):
            for layer in stack:
                fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def _whole(tensor: Tensor) -> Tensor:
    """The tensor itself, put together where it is cut over processes."""
    whole: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def _like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """Cut the tensor as the parameter is cut; Adam's count of steps never is."""
    if not hasattr(parameter, "full_tensor") or tensor.ndim == 0:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    cut: Any = parameter
    return distribute_tensor(tensor, cut.device_mesh, cut.placements)

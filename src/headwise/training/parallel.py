"""One process or many: what the loop needs of `accelerate`, and of nothing else.

Start several with `torchrun --nproc-per-node 2 ...` or `accelerate launch ...`. Each batch is shared out to
the processes by examples, so a step computes what one process computes with the whole batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.training.extras import need
from headwise.training.optimizer import gradient_norm, scale_gradients


class Processes:
    """This process among those that train together."""

    def __init__(self, device: str = "auto") -> None:
        """Args:
            device: "auto", or "cpu"

        Raises:
            MissingExtra: accelerate isn't installed.
            ValueError: another device.
        """
        if device not in ("auto", "cpu"):
            raise ValueError(f"device is {device!r}: choose auto or cpu (CUDA_VISIBLE_DEVICES chooses GPUs)")
        module = need("accelerate", "training")
        self._accelerator: Any = module.Accelerator(cpu=device == "cpu", mixed_precision="no")
        self.device: torch.device = self._accelerator.device
        self.rank: int = self._accelerator.process_index
        self.world: int = self._accelerator.num_processes
        self.first: bool = self._accelerator.is_main_process
        self.sharded = "FSDP" in str(self._accelerator.distributed_type)
        self._model: Any = None
        self._optimizer: Any = None

    def prepare(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[nn.Module, Any]:
        """The model in its wrapper (none for one process) and the optimizer for it."""
        if self.world == 1:
            self._model, self._optimizer = model.to(self.device), optimizer
        else:
            self._model, self._optimizer = self._accelerator.prepare(model, optimizer)
        return self._model, self._optimizer

    def last_of_step(self, last: bool) -> AbstractContextManager[Any]:
        """Around the backward pass of a batch: only the last one of a step shares gradients."""
        if last or self.world == 1:
            return contextlib.nullcontext()
        context: AbstractContextManager[Any] = self._accelerator.no_sync(self._model)
        return context

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
        if self.sharded:
            norm = self._accelerator.clip_grad_norm_(self._model.parameters(), clip or float("inf"))
            return float(norm)
        norm = gradient_norm(parameters)
        if clip is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, clip, norm)
        return float(norm)

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
        """The model for validation: without the wrapper, unless its weights are sharded over processes."""
        model: nn.Module = self._model if self.sharded else self._accelerator.unwrap_model(self._model)
        return model

    def weights(self) -> dict[str, Tensor]:
        """All weights by name; on the first process, where they are sharded."""
        if self.sharded:
            from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

            options = StateDictOptions(full_state_dict=True, cpu_offload=True)
            whole_model: Any = get_model_state_dict(self._model, options=options)
            return dict(whole_model)
        return dict(self.plain().state_dict())

    def optimizer_state(self) -> dict[str, Tensor]:
        """The optimizer's tensors as "exp_avg/name of the weight"; on the first process, where sharded."""
        found: Mapping[str, Mapping[str, Any]]
        if self.sharded:
            from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

            options = StateDictOptions(full_state_dict=True, cpu_offload=True)
            inner = getattr(self._optimizer, "optimizer", self._optimizer)
            whole: Any = get_optimizer_state_dict(self._model, inner, options=options)
            found = whole.get("state", {})
        else:
            state = self._inner_state()
            found = {name: state[one] for name, one in self.plain().named_parameters() if one in state}
        return {
            f"{entry}/{name}": value if isinstance(value, Tensor) else torch.tensor(value)
            for name, entries in found.items()
            for entry, value in entries.items()
        }

    def restore_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `optimizer_state` gave."""
        found: dict[str, dict[str, Tensor]] = {}
        for path, tensor in tensors.items():
            entry, _, name = path.partition("/")
            found.setdefault(name, {})[entry] = tensor
        if self.sharded:
            from torch.distributed.checkpoint.state_dict import StateDictOptions, set_optimizer_state_dict

            inner = getattr(self._optimizer, "optimizer", self._optimizer)
            names = [name for name, _ in self._model.named_parameters()]
            groups: list[Any] = [dict(group) for group in inner.param_groups]
            taken = iter(names)
            for group, own in zip(groups, inner.param_groups, strict=True):
                group["params"] = [next(taken) for _ in own["params"]]
            options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
            whole: Any = {"state": found, "param_groups": groups}
            set_optimizer_state_dict(self._model, inner, whole, options=options)
            return
        state = self._inner_state()
        for name, one in self.plain().named_parameters():
            if name in found:
                state[one] = {
                    entry: tensor.to(one.device, copy=True) for entry, tensor in found[name].items()
                }

    def _inner_state(self) -> Any:
        return getattr(self._optimizer, "optimizer", self._optimizer).state

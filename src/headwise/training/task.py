"""What is trained: the face that `train` expects of an application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from torch import Tensor, nn

Better = Literal["higher", "lower"]


# The loss of a batch: the sum of its losses (a scalar with gradients), what the sum is to be divided by
# (tokens, or examples), and further sums to show, divided likewise.
#
# Sums, so that batches of unequal size add up exactly: a step divides the sums of all its batches, on all
# processes, by the sum of their counts. Accumulating and sharing out give the gradient of the whole batch.
# (Averaging the batches' means, as training loops often do, weighs the tokens of short batches more.)
Loss = tuple[Tensor, int | Tensor, Mapping[str, float | Tensor]]


class Task(Protocol):
    """A model, its data, its loss and its validation.

    `loss` must call the model itself (`self.model(...)`), not its parts (`self.model.encode(...)`): with
    several processes `train` puts a wrapper in its place, which shares gradients when it is called.

    Attributes:
        model: what is trained
        config: goes to the run's config.json: "application" (its name) and all that is needed to build the
            model again. JSON only.
        metric: the entry of what `validate` returns that chooses the best checkpoint
        better: whether a "higher" or a "lower" metric is better

    A task may have a further one, `counted`: what the counts of its losses are of ("images"), see `counted`.
    """

    model: nn.Module

    @property
    def config(self) -> Mapping[str, Any]: ...

    @property
    def metric(self) -> str: ...

    @property
    def better(self) -> Better: ...

    def batches(self, split: str, epoch: int, seed: int) -> Iterable[Any]:
        """The batches of an epoch, the same for the same arguments; `Collated` starts in the middle for free.

        A batch is a dict, list, tuple or dataclass of tensors whose first dimension counts examples, so that
        several processes can share it out; or has a method `part(rank, world)` that does.
        """

    def loss(self, batch: Any) -> Loss:
        """The loss of a batch: sum, count, further sums."""

    def validate(self) -> Mapping[str, float]:
        """Figures on held-out data, by name. Called with the model in eval mode and without gradients."""


@runtime_checkable
class WritesFiles(Protocol):
    """A task that writes further files into the run's folder when it starts, such as tokenizer.json."""

    def write_files(self, run: Any) -> None: ...


def counted(task: Task) -> str:
    """What the counts of the task's losses are of, by its attribute `counted`; tokens, if it has none."""
    return str(getattr(task, "counted", "tokens"))


def width(task: Task) -> int | None:
    """d_model of the task's model, which the paper's schedule needs."""
    for holder in (task.model, getattr(task.model, "config", None)):
        found = getattr(holder, "d_model", None)
        if isinstance(found, int):
            return found
    return None

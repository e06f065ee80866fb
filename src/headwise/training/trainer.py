"""The loop itself: steps, validations, checkpoints, lines of metrics."""

from __future__ import annotations

import errno
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from headwise.training.checkpoint import (
    checkpoint_folders,
    latest_checkpoint,
    load_checkpoint,
    prune,
    update_state,
)
from headwise.training.checkpoint import save_checkpoint as write_checkpoint
from headwise.training.files import sweep
from headwise.training.metrics import Metrics
from headwise.training.optimizer import make_optimizer
from headwise.training.parallel import Processes
from headwise.training.position import Position
from headwise.training.precision import autocast, choose_precision
from headwise.training.progress import Progress, duration
from headwise.training.random_state import random_state, seed_everything, set_random_state
from headwise.training.recipe import Recipe
from headwise.training.report import Report
from headwise.training.runs import RunError, check_same, write_config
from headwise.training.sharing import part, skip, to_device
from headwise.training.stop import StopRequests, TrainingStopped
from headwise.training.task import Task, WritesFiles, counted, width
from headwise.training.tensors import load_weights

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Trainer:
    """What `train` does, in the order in which it happens."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        run: Path,
        processes: Processes,
        progress: Progress,
        requests: StopRequests,
    ) -> None:
        self.task, self.recipe, self.run = task, recipe, run
        self.processes, self.progress, self.requests = processes, progress, requests
        self.schedule = recipe.make_schedule(width(task))
        self.position = Position()
        self.metrics: Metrics | None = None
        self.saved = -1
        self.random: dict[str, Any] | None = None  # put back again once the first batch is found
        self.asked_to_stop = self.over_budget = False
        self.began = self.since = time.perf_counter()
        self.before = 0.0  # seconds of earlier sessions
        self.epoch_length: int | None = None

    # -- start and end

    def start(self, resume: bool) -> None:
        task, recipe, processes = self.task, self.recipe, self.processes
        name = processes.first_does(lambda: self._open_folder(resume))
        task.model.to(processes.device)
        seed_everything(recipe.seed, processes.rank)
        found = load_checkpoint(self.run / "checkpoints" / name) if name else None
        if found:
            load_weights(task.model, found.weights, f"checkpoint {found.folder}")
            self.position = Position.from_state(found.state)
            self.before = self.position.seconds
            states = found.state["random"]
            if len(states) == processes.world:
                self.random = states[processes.rank]
            else:
                self.progress.say(
                    f"note: {len(states)} processes wrote this checkpoint and {processes.world} read it: "
                    "dropout draws anew"
                )
                seed_everything(recipe.seed + self.position.step, processes.rank)
        else:
            self.position.precision = processes.tell_all(self._choose_precision())
        self.model, self.optimizer = processes.prepare(
            task.model, lambda model: make_optimizer(model, recipe)
        )
        self.parameters = sum(one.numel() for one in task.model.parameters())
        if found:
            processes.restore_optimizer(found.optimizer)
            self.saved = self.position.step
            self.progress.say(f"continuing {self.run} after step {self.position.step}")
            if self.random is not None:
                set_random_state(self.random)
        if processes.first:
            with self._writing():
                position = self.position
                self.metrics = Metrics(
                    self.run, position.lines, position.step, tensorboard=recipe.tensorboard
                )
        if not found:
            self.save()  # a full disk is found out before the work, and the first weights are kept
        self.began = self.since = time.perf_counter()

    def _open_folder(self, resume: bool) -> str | None:
        """Make or check the run's folder; the name of the checkpoint to go on with."""
        run, config = self.run, dict(self.task.config)
        if (run / "config.json").exists() or checkpoint_folders(run):
            if not resume:
                raise RunError(
                    f"{run} holds a run already: continue it with --resume, or choose another folder"
                )
            check_same(run, config, self.recipe)
            sweep(run)
            if (run / "checkpoints").is_dir():
                sweep(run / "checkpoints")
            found = latest_checkpoint(run, warn=self.progress.say)
            return found.folder.name if found else None
        if run.exists() and not run.is_dir():
            raise RunError(f"{run} is a file: choose a folder")
        with self._writing():
            (run / "checkpoints").mkdir(parents=True, exist_ok=True)
            if isinstance(self.task, WritesFiles):
                self.task.write_files(run)
            write_config(run, config, self.recipe)
        return None

    def _choose_precision(self) -> str:
        if self.recipe.precision != "auto":
            return self.recipe.precision
        before = random_state()
        some = list(itertools.islice(iter(self.task.batches("train", 0, self.recipe.seed)), 2))
        some = [to_device(batch, self.processes.device) for batch in some]
        set_random_state(before)
        if not self.processes.first:
            return "float32"  # the first process says
        return choose_precision("auto", self.task, some, self.processes.device, self.progress.say)

    def close(self) -> None:
        if self.metrics is not None:
            self.metrics.close()
        if hasattr(self, "model") and self.processes.world > 1:
            self.task.model = self.processes.plain()

    def stopped(self, what: str, exit_code: int = 1) -> TrainingStopped:
        """The error of an early end, which says what stays."""
        last = checkpoint_folders(self.run)
        stays = f"the last good checkpoint is {last[-1].name}" if last else "there is no checkpoint yet"
        return TrainingStopped(
            f"{what}; {stays} in {self.run}" + ("; go on with --resume" if last else ""), exit_code
        )

    # -- the loop

    def go(self) -> Report:
        while (reason := self.position.reason_to_end(self.recipe, self.over_budget)) is None:
            self._epoch()
            if self.asked_to_stop:
                self.save()
                number = self.requests.asked
                what, code = StopRequests.words(number) if number else ("stopped on another process", 1)
                raise self.stopped(f"{what} after step {self.position.step}", code)
        self._line()
        if self.recipe.validate_at_end and self.position.validated != self.position.step:
            self._validate()
        self.save()
        position = self.position
        best = position.best
        words = f", best {best['metric']} {best['value']:.6g} at step {best['step']}" if best else ""
        self.progress.say(
            f"{reason}: step {position.step}, {duration(position.seconds)}{words}; all of it is in {self.run}"
        )
        return Report(
            self.run,
            position.step,
            position.epoch,
            position.seconds,
            reason,
            best,
            position.metrics,
            self.parameters,
            position.precision,
        )

    def _epoch(self) -> None:
        """Go on with an epoch, to its end or to that of the run."""
        position, recipe = self.position, self.recipe
        whole = self.task.batches("train", position.epoch, recipe.seed)
        self.epoch_length = len(whole) if isinstance(whole, Sized) else None
        batches = skip(whole, position.batch)
        if self.random is not None:
            set_random_state(self.random)
            self.random = None
        while group := list(itertools.islice(batches, recipe.accumulate)):
            self._step(group)
            position.batch += len(group)
            position.seconds = self.before + time.perf_counter() - self.began
            self._after_step()
            if self.asked_to_stop or position.reason_to_end(recipe, self.over_budget):
                return
        if position.batch == 0:
            raise ValueError(f"epoch {position.epoch} has no batches: there is nothing to train on")
        position.epoch += 1
        position.batch = 0
        if recipe.validate_every is None and position.validated != position.step:
            self._validate()
            self.save()

    def _step(self, group: Sequence[Any]) -> None:
        """Sum the gradients of the step's batches, divide them by the count of all, and move the weights."""
        processes, position = self.processes, self.position
        rate = self.schedule(position.step + 1)
        sums: dict[str, float] = {"loss": 0.0, "count": 0.0}
        self.model.train()
        self.task.model = self.model
        for number, batch in enumerate(group, 1):
            mine, empty = part(batch, processes.rank, processes.world)
            mine = to_device(mine, processes.device)
            with processes.backward_of(number == len(group)):
                with autocast(processes.device, position.precision):
                    loss, count, metrics = self.task.loss(mine)
                (loss * 0 if empty else loss).backward()
            found = {"loss": float(loss.detach()), "count": float(count)}
            found |= {name: float(value) for name, value in metrics.items()}
            for name, value in found.items():
                sums[name] = sums.get(name, 0.0) + (0.0 if empty else value)
        asked = float(self.requests.asked is not None)
        names = sorted(sums)
        *values, stop, late = processes.sums([*(sums[name] for name in names), asked, self._late()])
        self.asked_to_stop, self.over_budget = stop > 0, late > 0
        sums = dict(zip(names, values, strict=True))
        if not math.isfinite(sums["loss"]):
            raise self._not_finite("loss", sums["loss"], rate)
        if sums["count"] <= 0:
            raise ValueError(
                f"the batches of step {position.step + 1} count {sums['count']:g} tokens: nothing to learn"
            )
        norm = processes.finish_gradients(sums["count"], self.recipe.clip)
        if not math.isfinite(norm):
            raise self._not_finite("gradient's norm", norm, rate)
        for settings in self.optimizer.param_groups:
            settings["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        position.step += 1
        position.rate, position.norm = rate, norm
        now = time.perf_counter()
        position.add({**sums, "seconds": now - self.since})
        self.since = now

    def _late(self) -> float:
        budget = self.recipe.budget_minutes
        spent = self.before + time.perf_counter() - self.began
        return float(self.processes.first and budget is not None and spent >= 60 * budget)

    def _not_finite(self, what: str, value: float, rate: float) -> TrainingStopped:
        return self.stopped(
            f"the {what} is {value} at step {self.position.step + 1} (epoch {self.position.epoch}, "
            f"rate {rate:.3g}): nothing of this step was kept; "
            "try a lower rate, clip=1 or precision=float32 in a new run"
        )

    def _after_step(self) -> None:
        recipe, step = self.recipe, self.position.step
        if step % recipe.log_every == 0:
            self._line()
        if recipe.validate_every is not None and step % recipe.validate_every == 0:
            self._validate()
            self.save()
        elif recipe.checkpoint_every is not None and step % recipe.checkpoint_every == 0:
            self.save()

    def _line(self) -> None:
        """A line of metrics: means since the last one."""
        position = self.position
        if not position.window:
            return
        sums, position.window = position.window, {}
        count, seconds = sums.pop("count"), sums.pop("seconds")
        figures: dict[str, Any] = {name: value / count for name, value in sums.items()}
        figures |= {"rate": position.rate, "norm": position.norm, "epoch": position.epoch, "count": count}
        figures |= {"per_second": count / seconds, "seconds": position.seconds}
        self._write("train", figures)
        speed = {f"{counted(self.task)}/s": figures["per_second"]}
        share = position.share_done(self.recipe, self.epoch_length)
        left = position.seconds * (1 - share) / share if share else None
        shown = {"loss": figures["loss"], "rate": position.rate, **speed}
        self.progress.step(position.step, share, shown, left)

    def _validate(self) -> None:
        """Validate without leaving a trace: random states and the model's mode are as before."""
        position, task = self.position, self.task
        before = random_state()
        with self.processes.whole_model() as task.model, torch.no_grad():
            task.model.eval()
            metrics = self.processes.tell_all(dict(task.validate()))
        set_random_state(before)
        improved = position.note_validation(metrics, task.metric, task.better)
        position.seconds = self.before + time.perf_counter() - self.began
        self.since = time.perf_counter()
        self._write("valid", {**position.metrics, "seconds": position.seconds})
        words = "  ".join(f"{name} {value:.6g}" for name, value in position.metrics.items())
        self.progress.say(
            f"step {position.step}  validation  {words}" + ("  (best so far)" if improved else "")
        )

    # -- writing

    def save(self) -> None:
        """Write a checkpoint, then drop old ones. Where this step has one, only its state is written anew."""
        position, processes = self.position, self.processes
        again = self.saved == position.step
        weights, optimizer = ({}, {}) if again else (processes.weights(), processes.optimizer_state())
        if self.metrics is not None:
            with self._writing():
                position.lines = self.metrics.sync()
        state = {**position.to_state(), "random": processes.gather(random_state()), "world": processes.world}

        def write() -> None:
            with self._writing():
                step = position.step
                if again:
                    update_state(self.run / "checkpoints" / f"step-{step}", state)
                else:
                    write_checkpoint(self.run, step, weights=weights, optimizer=optimizer, state=state)
                prune(self.run, self.recipe.keep, [position.best["name"]] if position.best else [])

        processes.first_does(write)
        self.saved = position.step

    def _write(self, split: str, figures: Mapping[str, Any]) -> None:
        if self.metrics is not None:
            with self._writing():
                self.metrics.write(self.position.step, split, figures)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = " (make room first)" if error.errno in FULL else ""
            what = error.strerror or str(error)
            raise self.stopped(
                f"can't write to {self.run} at step {self.position.step}: {what}{full}"
            ) from None

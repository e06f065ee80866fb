"""Decoding with one hypothesis for each input: the most probable token at each step, or a drawn one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.models.decoding.hypothesis import Hypothesis
from headwise.models.decoding.limits import limits_of, precise
from headwise.models.decoding.steppers import Stepper
from headwise.models.decoding.support import keep_likely


@torch.no_grad()
def greedy(stepper: Stepper, *, max_extra: int = 50, max_length: int | None = None) -> list[Hypothesis]:
    """The most probable token at each step, until the end of the text or the limit.

    Inputs may be of unequal length; an output that has ended costs nothing more.

    Args:
        stepper: from `model.stepper(...)`. It is used up.
        max_extra: tokens that an output may have beyond the length of its input (the paper, 6.1: 50).
        max_length: tokens that any output may have. Default: as max_extra says.

    Returns: one hypothesis for each input, in their order.
    """
    return _one_each(stepper, lambda log_p: log_p.argmax(-1), limits_of(stepper, max_extra, max_length))


@torch.no_grad()
def sample(
    stepper: Stepper,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    max_extra: int = 50,
    max_length: int | None = None,
) -> list[Hypothesis]:
    """A token drawn at each step, from the distribution of `keep_likely`.

    `log_probability` is that of the model itself, whatever was cut off. What is drawn for one input depends
    on the others of its batch, since they draw from one generator.

    Args:
        temperature: below 1 makes probable tokens more probable, above 1 less.
        top_k: draw from this many most probable tokens.
        top_p: draw from the fewest most probable tokens that have this share of probability.
        generator: of the draws, on the model's device.

    The rest: see `greedy`.

    Raises:
        ValueError: options out of range, see `keep_likely`.
    """

    def draw(log_p: Tensor) -> Tensor:
        likely = keep_likely(log_p, temperature=temperature, top_k=top_k, top_p=top_p)
        return torch.multinomial(likely.exp(), 1, generator=generator).squeeze(-1)

    keep_likely(torch.zeros(1, 1), temperature=temperature, top_k=top_k, top_p=top_p)  # refuse before work
    return _one_each(stepper, draw, limits_of(stepper, max_extra, max_length))


def _one_each(stepper: Stepper, choose: Callable[[Tensor], Tensor], limits: Tensor) -> list[Hypothesis]:
    n, longest = limits.numel(), int(limits.max()) if limits.numel() else 0
    device = limits.device
    tokens = stepper.first
    written: list[
        tuple[Tensor, list[Tensor]]
    ] = []  # runs of steps with the same rows: [rows], tokens of each
    log_probability = torch.zeros(n, dtype=precise(device), device=device)
    ended = torch.zeros(n, dtype=torch.bool, device=device)
    # Of the rows that are left: their inputs, limits, log-probabilities, and whether they ended just now.
    active = torch.arange(n, device=device)
    most, total, now = limits, log_probability.clone(), ended.clone()
    stays, shortest = limits > 0, int(limits.min()) if n else 0
    for step in range(longest):
        if not bool(stays.all()):  # finished rows leave
            log_probability[active], ended[active] = total, now
            rows = stays.nonzero().squeeze(1)
            active, tokens, most = active[rows], tokens[rows], most[rows]
            total, now = total[rows], now[rows]
            if not rows.numel():
                break
            stepper.keep(rows, rows)
            written.append((active, []))
        elif not written:
            written.append((active, []))
        log_p = stepper.step(tokens)  # [rows, V]
        tokens = choose(log_p)  # [rows]
        written[-1][1].append(tokens)
        total += log_p.gather(1, tokens[:, None]).squeeze(1)
        now = tokens == stepper.eos_id
        stays = ~now if step + 1 < shortest else ~now & (most > step + 1)
    log_probability[active], ended[active] = total, now
    lines: list[list[int]] = [[] for _ in range(n)]
    for rows, steps in written:
        for row, line in zip(rows.tolist(), torch.stack(steps, 1).tolist(), strict=True):
            lines[row] += line
    return [
        Hypothesis(line[: len(line) - done], one, one, done)
        for line, one, done in zip(lines, log_probability.tolist(), ended.tolist(), strict=True)
    ]

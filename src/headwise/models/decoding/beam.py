"""Beam search, with the paper's length penalty."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from headwise.models.decoding.hypothesis import Hypothesis
from headwise.models.decoding.limits import limits_of, precise
from headwise.models.decoding.steppers import Stepper


def length_penalty(length: float, alpha: float) -> float:
    """((5 + length) / 6)^alpha (Wu et al. 2016, equation 14): what a log-probability is divided by, so that
    longer outputs aren't put at a disadvantage. `length` counts the token that ends the output."""
    return math.pow((5 + length) / 6, alpha)


@torch.no_grad()
def beam_search(
    stepper: Stepper,
    *,
    beam: int = 4,
    alpha: float = 0.6,
    max_extra: int = 50,
    max_length: int | None = None,
    early_stop: bool = True,
) -> list[list[Hypothesis]]:
    """The outputs of highest score that a search finds which keeps `beam` hypotheses for each input.

        score = log p(output | input) / ((5 + length) / 6)^alpha

    At each step, the `beam` best continuations that don't end go on, and those that end among the `beam`
    best of all are finished. The search for an input stops at `beam` finished hypotheses or at the limit.
    (The paper, 6.1: beam 4, alpha 0.6, limit input + 50, "terminate early when possible".) With beam 1 that
    is `greedy`.

    Inputs may be of unequal length; an input whose search has stopped costs nothing more.

    Args:
        stepper: from `model.stepper(...)`. It is used up.
        beam: hypotheses for each input.
        alpha: of the length penalty; 0 ranks by probability alone.
        max_extra, max_length: see `greedy`.
        early_stop: False goes on after `beam` finished hypotheses, until no other can still beat the worst
            of them.

    Returns: for each input, in their order, up to `beam` hypotheses, best first. Finished ones stand before
        those that the limit cut off.

    Raises:
        ValueError: beam below 1, an alpha below 0.
    """
    if beam < 1:
        raise ValueError(f"beam={beam}: the number of hypotheses for each input, 1 or more")
    if not 0 <= alpha < math.inf:
        raise ValueError(f"alpha={alpha}: the exponent of the length penalty, 0 or more")
    search = _Search(stepper, beam, alpha, limits_of(stepper, max_extra, max_length), early_stop)
    return search.run()


class _Search:
    """State of a search. Letters: g inputs that go on, w hypotheses of each, b = beam, t tokens so far."""

    def __init__(self, stepper: Stepper, beam: int, alpha: float, limits: Tensor, early_stop: bool) -> None:
        self.stepper = stepper
        self.beam = beam
        self.alpha = alpha
        self.early_stop = early_stop
        self.limits = limits  # [g]
        self.device = limits.device
        n = limits.numel()
        self.found: list[list[Hypothesis]] = [[] for _ in range(n)]
        self.input = torch.arange(n, device=self.device)  # [g], which input each is
        self.next = stepper.first[:, None]  # [g, w], the last token of each hypothesis
        self.tokens = torch.zeros(n, 1, 0, dtype=torch.int64, device=self.device)  # [g, w, t]
        exact: dict[str, Any] = {"dtype": precise(self.device), "device": self.device}
        self.total = torch.zeros(n, 1, **exact)  # [g, w], log-probabilities
        # finished hypotheses, best first; a score of -inf marks a free place
        longest = int(limits.max()) if n else 0
        self.done_score = torch.full((n, beam), -torch.inf, **exact)
        self.done_total = torch.full((n, beam), -torch.inf, **exact)
        self.done_length = torch.zeros(n, beam, dtype=torch.int64, device=self.device)
        self.done_tokens = torch.zeros(n, beam, longest, dtype=torch.int64, device=self.device)

    def run(self) -> list[list[Hypothesis]]:
        step = 0
        stays = self.limits > 0
        rows = torch.arange(self.limits.numel(), device=self.device)[:, None]  # [g, w], those that go on
        while True:
            inputs = None
            if not bool(stays.all()):
                self._leave(~stays)
                inputs = stays.nonzero().squeeze(1)
                rows = rows[inputs]
                self._select(inputs)
            if not self.input.numel():
                return self.found
            if step or inputs is not None:
                self.stepper.keep(rows.flatten(), inputs)
            step += 1
            log_p = self.stepper.step(self.next.flatten())  # [g w, V]
            rows = self._grow(log_p.view(*self.next.shape, -1), step)
            stays = (self.limits > step) & ~self._settled()

    def _grow(self, log_p: Tensor, step: int) -> Tensor:
        """Choose the next hypotheses; returns which row each continues, [g, w]."""
        g, w, vocabulary = log_p.shape
        # The best of all are among the best of each. One of each may end, w <= beam at most, so that of twice
        # `beam` enough go on.
        most = 2 * self.beam
        gain, token = log_p.topk(min(most, vocabulary), dim=-1)  # [g, w, c]
        total = (self.total[..., None] + gain).flatten(1)  # [g, w c]
        total, choice = total.topk(min(most, total.shape[1]), dim=1)  # [g, c'], best first
        parent, token = choice // token.shape[-1], token.flatten(1).gather(1, choice)
        ends = token == self.stepper.eos_id
        among_best = torch.arange(total.shape[1], device=self.device) < self.beam
        self._finish(total.masked_fill(~(ends & among_best), -torch.inf), parent, step)

        # those that go on, in their order, then those that end
        width = min(self.beam, max(w * (vocabulary - 1), 1))
        order = ends.long().argsort(dim=1, stable=True)[:, :width]
        self.total = total.masked_fill(ends, -torch.inf).gather(1, order)  # [g, w']
        parent = parent.gather(1, order)
        self.next = token.gather(1, order)
        before = self.tokens.gather(1, parent[..., None].expand(-1, -1, step - 1))
        self.tokens = torch.cat((before, self.next[..., None]), dim=2)
        rows: Tensor = parent + w * torch.arange(g, device=self.device)[:, None]
        return rows

    def _finish(self, total: Tensor, parent: Tensor, step: int) -> None:
        """Add hypotheses that end here to the finished ones, and keep the `beam` best. total [g, c] is -inf
        where none ends."""
        score = torch.cat((self.done_score, total / length_penalty(step, self.alpha)), dim=1)
        self.done_score, best = score.topk(self.beam, dim=1)
        self.done_total = torch.cat((self.done_total, total), dim=1).gather(1, best)
        new_length = torch.full_like(parent, step - 1)
        self.done_length = torch.cat((self.done_length, new_length), dim=1).gather(1, best)
        new = self.done_tokens.new_zeros(*parent.shape, self.done_tokens.shape[2])
        new[..., : step - 1] = self.tokens.gather(1, parent[..., None].expand(-1, -1, step - 1))
        every = torch.cat((self.done_tokens, new), dim=1)
        self.done_tokens = every.gather(1, best[..., None].expand(-1, -1, every.shape[2]))

    def _settled(self) -> Tensor:
        """bool [g]: whether nothing that could still come would change what is kept."""
        full = self.done_score[:, -1] > -torch.inf
        alive = self.total.amax(1)
        if self.early_stop:
            early: Tensor = full | (alive == -torch.inf)
            return early
        # log-probabilities only fall; the divisor is largest at the limit
        bound = alive / ((5 + self.limits) / 6) ** self.alpha
        settled: Tensor = (full & (bound <= self.done_score[:, -1])) | (alive == -torch.inf)
        return settled

    def _leave(self, leaving: Tensor) -> None:
        """Write down what was found for inputs whose search has stopped."""
        divisor = length_penalty(self.tokens.shape[2], self.alpha)
        finished = (self.done_tokens, self.done_length, self.done_total, self.done_score)
        columns = (self.input, *finished, self.tokens, self.total)
        for index, *done, tokens, totals in zip(*(one[leaving].tolist() for one in columns), strict=True):
            found = self.found[index]
            for line, length, total, score in zip(*done, strict=True):
                if score > -math.inf:
                    found.append(Hypothesis(line[:length], total, score, True))
            for line, total in zip(tokens, totals, strict=True):
                if len(found) < self.beam and total > -math.inf:
                    found.append(Hypothesis(line, total, total / divisor, False))

    def _select(self, left: Tensor) -> None:
        for name in (
            "limits",
            "input",
            "next",
            "tokens",
            "total",
            "done_score",
            "done_total",
            "done_length",
            "done_tokens",
        ):
            setattr(self, name, getattr(self, name)[left])

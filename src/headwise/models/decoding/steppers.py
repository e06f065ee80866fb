"""What decoding asks of a model: the log-probabilities of the next token, step by step."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from headwise.models.checks import check_ids, check_lengths
from headwise.models.decoder_caches import DecoderCaches
from headwise.models.stack_config import TokenConfig


class Stepper(Protocol):
    """A batch of outputs being written, one row each; at the start one row for each input.

    Attributes:
        first: int64 [n], the token that each output begins after: what `step` is given first.
        eos_id: the token that ends an output.
    """

    first: Tensor
    eos_id: int

    def limits(self, max_extra: int) -> Tensor:
        """int64 [n]: how many tokens each output may have at most; `max_extra` more than its input has."""

    def step(self, tokens: Tensor) -> Tensor:
        """Each row goes on by one token: int64 [n] -> log-probabilities of what follows it, [n, V]."""

    def keep(self, rows: Tensor, inputs: Tensor | None) -> None:
        """Go on with these rows alone (int64 [m], perhaps repeated), in this order.

        Args:
            inputs: int64 [g], which of the present inputs they are for: the first m / g rows are the
                hypotheses of inputs[0], and so on. None: all inputs go on.
        """


class MemoryModel(Protocol):
    """What `MemoryStepper` needs: a decoder that reads a memory (`Transformer`, `SpeechTransformer`)."""

    training: bool

    @property
    def config(self) -> TokenConfig: ...

    def decode(
        self,
        target: Tensor,
        memory: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        *,
        caches: DecoderCaches | None = None,
    ) -> Tensor: ...

    def caches(self) -> DecoderCaches: ...


class TokenModel(Protocol):
    """What `TokenStepper` needs: a decoder without a memory (`LanguageModel`)."""

    training: bool

    @property
    def config(self) -> TokenConfig: ...

    def __call__(
        self, ids: Tensor, *, lengths: Tensor | None = None, caches: DecoderCaches | None = None
    ) -> Tensor: ...

    def caches(self) -> DecoderCaches: ...


class MemoryStepper:
    """Outputs of an encoder-decoder, with all keys and values kept.

    The hypotheses of one input read one copy of its memory. Padding and the beginning of a text are no
    tokens that can follow another; their probability is 0.

    Args:
        memory: the encoder's output, [n, S, d_model].
        memory_lengths: int64 [n], how much of each is real. Default: all.
        source: int64 [n, S], the tokens that a model copies from; it is then given to `decode` as well.
        cached: False computes all earlier tokens anew at each step (the same numbers, slower).

    Raises:
        ValueError: a model that is training, since dropout would change what it writes.
    """

    def __init__(
        self,
        model: MemoryModel,
        memory: Tensor,
        memory_lengths: Tensor | None = None,
        *,
        source: Tensor | None = None,
        cached: bool = True,
    ) -> None:
        check_mode(model)
        check_lengths("memory_lengths", memory_lengths, memory.shape[0])
        self.model = model
        self.eos_id = model.config.eos_id
        self.first = torch.full((memory.shape[0],), model.config.bos_id, device=memory.device)
        self.input_lengths = (
            torch.full_like(self.first, memory.shape[1]) if memory_lengths is None else memory_lengths
        )
        if memory_lengths is not None and bool((memory_lengths == memory.shape[1]).all()):
            memory_lengths = None  # no padding to hide: the faster case
        self._caches = model.caches() if cached else None
        self._memory: Tensor | None = memory
        self._memory_lengths = memory_lengths
        self._source = source
        self._written = self.first.new_zeros(memory.shape[0], 0)  # without caches

    def limits(self, max_extra: int) -> Tensor:
        limits = self.input_lengths.to(self.first.device) + max_extra
        most = position_limit(self.model.config)
        return limits if most is None else limits.clamp(max=most)

    def step(self, tokens: Tensor) -> Tensor:
        target = tokens[:, None]
        if self._caches is None:
            target = self._written = torch.cat((self._written, target), dim=1)
        copied = {} if self._source is None else {"source": self._source}
        logits = self.model.decode(target, self._memory, self._memory_lengths, caches=self._caches, **copied)
        if self._caches is not None:
            self._memory = self._memory_lengths = self._source = None  # what is needed of them is kept
        return log_probabilities(logits[:, -1], self.model.config)

    def keep(self, rows: Tensor, inputs: Tensor | None) -> None:
        if self._caches is not None:
            self._caches.select(rows, inputs)
        else:
            self._written = self._written[rows]
        if self._memory is not None:  # one copy for each input, or one for each row
            mine = inputs if self._caches is not None and self._caches.shared else rows
            if mine is not None:
                self._memory = self._memory[mine]
            if mine is not None and self._memory_lengths is not None:
                self._memory_lengths = self._memory_lengths[mine]
            if mine is not None and self._source is not None:
                self._source = self._source[mine]


class TokenStepper:
    """Continuations of prompts by a decoder-only model, with all keys and values kept.

    Args:
        prompts: int64 [n, length], padded at their ends; each begins with config.bos_id where the model was
            trained so.
        lengths: int64 [n], how many tokens of each are real, 1 or more. Default: all.

    Raises:
        ValueError: an empty prompt, a model that is training.
    """

    def __init__(self, model: TokenModel, prompts: Tensor, lengths: Tensor | None = None) -> None:
        check_mode(model)
        check_ids("prompts", prompts, model.config.vocab_size)
        check_lengths("lengths", lengths, prompts.shape[0])
        n, longest = prompts.shape
        if not longest or (lengths is not None and n and int(lengths.min()) < 1):
            raise ValueError("a prompt needs at least one token: let an empty one be bos_id alone")
        if lengths is not None and n and int(lengths.max()) > longest:
            raise ValueError(f"lengths go up to {int(lengths.max())}, but the prompts have {longest} tokens")
        if lengths is not None and n and bool((lengths == longest).all()):
            lengths = None  # equal prompts are the faster case
        self.model = model
        self.eos_id = model.config.eos_id
        self._lengths = torch.full((n,), longest, device=prompts.device) if lengths is None else lengths
        self.first = prompts.gather(1, self._lengths[:, None] - 1).squeeze(1)
        self._caches = model.caches()
        if longest > 1 and n:
            before = None if lengths is None else lengths - 1
            with torch.no_grad():
                model(prompts[:, :-1], lengths=before, caches=self._caches)

    def limits(self, max_extra: int) -> Tensor:
        limits = torch.full_like(self._lengths, max_extra)
        most = position_limit(self.model.config)
        return limits if most is None else torch.minimum(limits, most + 1 - self._lengths).clamp(min=0)

    def step(self, tokens: Tensor) -> Tensor:
        logits = self.model(tokens[:, None], caches=self._caches)
        return log_probabilities(logits[:, -1], self.model.config)

    def keep(self, rows: Tensor, inputs: Tensor | None) -> None:
        self._caches.select(rows, inputs)


def log_probabilities(logits: Tensor, config: TokenConfig) -> Tensor:
    """log softmax in float32 (or better) over the tokens that can follow: [n, V] -> [n, V]. The logits are
    used up."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    for never in {config.pad_id, config.bos_id} - {config.eos_id}:
        logits[..., never] = -torch.inf
    return logits.log_softmax(-1)


def position_limit(config: TokenConfig) -> int | None:
    """How many positions a model has, None where there is no end."""
    return config.max_length if config.positions == "learned" else None


def check_mode(model: Any) -> None:
    """Raise ValueError where dropout would change what a model writes."""
    if model.training:
        raise ValueError("the model is training, so dropout would change what it writes: call model.eval()")

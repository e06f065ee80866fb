"""What tests of the kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from headwise.kernels.native_build import native


@pytest.fixture
def native_as_it_was() -> Iterator[None]:
    """Instruction set and threads of the compiled kernel may be changed: afterwards they are as before."""
    used, threads = native.isa(), torch.get_num_threads()
    yield
    native.use_isa(used)
    torch.set_num_threads(threads)

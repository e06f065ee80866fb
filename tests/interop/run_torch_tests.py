"""Run PyTorch's own test file for nn.MultiheadAttention on headwise's drop-in.

    python tests/interop/run_torch_tests.py PATH/test_multihead_attention.py [--torch] [-v]

The file is PyTorch's and stays so: take test/nn/test_multihead_attention.py from a PyTorch checkout of
the installed version. It needs numpy and expecttest, and torch.testing._internal, which PyTorch's
wheels hold. `--torch` leaves torch's own class in place, for comparison.

Exit code 0 where every test passes, is skipped by the file itself, or fails by necessity (below).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import unittest
from pathlib import Path
from types import ModuleType

import torch

from headwise.interop.torch import MultiheadAttention

# tests that no other implementation can pass: name without the device, and why
BY_NECESSITY = {
    "test_multihead_self_attn_two_masks_fast_path_mock": (
        "asserts that torch's private fused kernel torch._native_multi_head_attention was called; the "
        "drop-in exists so that it isn't"
    ),
}


def patch() -> None:
    """Put the drop-in wherever torch keeps its class, nn.TransformerEncoderLayer's module included."""
    torch.nn.MultiheadAttention = MultiheadAttention  # type: ignore[misc]
    torch.nn.modules.MultiheadAttention = MultiheadAttention  # type: ignore[misc]
    torch.nn.modules.activation.MultiheadAttention = MultiheadAttention  # type: ignore[misc]
    torch.nn.modules.transformer.MultiheadAttention = MultiheadAttention  # type: ignore[misc]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("torch_multihead_attention_tests", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def necessary(test: unittest.TestCase) -> str | None:
    method = test.id().rsplit(".", 1)[-1]
    return next((reason for name, reason in BY_NECESSITY.items() if method.startswith(name)), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="your copy of PyTorch's test/nn/test_multihead_attention.py")
    parser.add_argument("--torch", action="store_true", help="leave torch's own class in place")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    if not options.file.is_file():
        print(f"no such file: {options.file}", file=sys.stderr)
        return 2
    if not options.torch:
        patch()
    try:
        module = load(options.file)
    except ModuleNotFoundError as error:
        print(f"PyTorch's test needs {error.name}: pip install {error.name}", file=sys.stderr)
        return 2
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2 if options.verbose else 1).run(suite)

    broken = [*result.failures, *result.errors]
    excused = [] if options.torch else [(test, why) for test, _ in broken if (why := necessary(test))]
    passed = result.testsRun - len(broken) - len(result.skipped)
    whose = "torch's own class" if options.torch else "headwise's drop-in"
    print(f"\n{whose}, torch {torch.__version__}: {passed} passed, {len(broken) - len(excused)} failed,")
    print(f"{len(excused)} failed by necessity, {len(result.skipped)} skipped by the file")
    for test, why in excused:
        print(f"  {test.id().rsplit('.', 1)[-1]}: {why}")
    return 0 if len(broken) == len(excused) and passed else 1


if __name__ == "__main__":
    sys.exit(main())

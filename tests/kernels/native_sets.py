"""The instruction sets that the compiled kernel was built for and that this CPU has."""

from headwise.kernels.native_build import native

SETS = [] if native is None else [name for name, here in native.builds() if here]

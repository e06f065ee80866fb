"""Ways to compute attention: one specification, and kernels that are tested against it."""

from headwise.kernels.base import Kernel
from headwise.kernels.choose import KERNELS, Choice, choose
from headwise.kernels.merge import merge
from headwise.kernels.pair import Grads, PairKernel
from headwise.kernels.problem import Problem

__all__ = ["KERNELS", "Choice", "Grads", "Kernel", "PairKernel", "Problem", "choose", "merge"]

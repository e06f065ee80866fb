"""An installation leaves the compiled kernel out where it can't be built, and says nothing: so this does."""

import shutil

import pytest

from headwise.kernels.native_build import MISSING, build


@pytest.mark.skipif(
    not any(shutil.which(one) for one in ("g++", "clang++")), reason="no C++ compiler to build it with"
)
def test_the_compiled_kernel_is_there_where_a_compiler_is():
    assert build() is not None, f"{MISSING}: pip install -v . shows the compiler's errors"

"""What all tests share: property tests that draw the same examples every time.

HYPOTHESIS_PROFILE=random draws new ones in each run, and HEADWISE_EXAMPLES=20 draws twenty times as many
(tests of the kernels only).
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

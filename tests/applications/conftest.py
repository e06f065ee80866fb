"""One small translation run, trained once for all tests that use a trained model."""

import pytest
import torch
from corpus import QUICK, write_corpus

from headwise.applications import find, train_application


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("numbers"))


@pytest.fixture(scope="session")
def translation_run(numbers, tmp_path_factory):
    torch.set_num_threads(1)
    run = tmp_path_factory.mktemp("runs") / "numbers"
    train_application(find("translation"), run, [numbers], changes=QUICK, show=False)
    return run

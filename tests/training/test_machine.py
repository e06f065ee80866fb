"""A run says on what machine it began."""

import torch
from toys import Digits, quick

from headwise.training import read_config, train
from headwise.training.machine import machine, processor


def test_the_processor_is_called_by_its_name(tmp_path):
    facts = tmp_path / "cpuinfo"
    facts.write_text(
        "processor\t: 0\nmodel name\t: Some CPU: 7 @ 3 GHz\nflags\t: avx2\nmodel name\t: other\n"
    )
    assert processor(facts) == "Some CPU: 7 @ 3 GHz"
    assert isinstance(processor(tmp_path / "nothing"), str)


def test_a_runs_config_has_threads_and_versions(tmp_path):
    train(Digits(), quick(steps=2), tmp_path, show=False)
    found = read_config(tmp_path)["machine"]
    assert found == machine()
    assert found["threads"] == torch.get_num_threads()
    assert found["torch"] == torch.__version__
    assert found["cores"] >= 1

from __future__ import annotations

import math

import pytest

from headwise.training import ConstantSchedule, CosineSchedule, PaperSchedule, make_schedule


@pytest.mark.parametrize(
    ("d_model", "step", "printed"),
    [
        (512, 1, "1.747e-07"),
        (512, 4000, "6.988e-04"),
        (512, 100_000, "1.398e-04"),
        (1024, 4000, "4.941e-04"),
        (1024, 300_000, "5.705e-05"),
    ],
)
def test_figures_of_the_paper(d_model, step, printed):
    assert f"{PaperSchedule(d_model)(step):.3e}" == printed


def test_the_papers_rate_is_its_formula_and_peaks_at_warmup():
    schedule = PaperSchedule(16, warmup=25, factor=3)
    for step in range(1, 200):
        assert schedule(step) == pytest.approx(3 * 16**-0.5 * min(step**-0.5, step * 25**-1.5), rel=1e-12)
    assert max(range(1, 200), key=schedule) == 25
    assert schedule(25) == pytest.approx(3 / (4 * 5), rel=1e-12)


def test_cosine_rises_falls_by_half_a_cosine_and_stays():
    schedule = CosineSchedule(peak=2.0, steps=110, warmup=10, floor=0.1)
    assert [schedule(1), schedule(5), schedule(10)] == pytest.approx([0.2, 1.0, 2.0])
    assert schedule(60) == pytest.approx(2 * (0.1 + 0.9 / 2))  # half-way
    assert schedule(35) == pytest.approx(2 * (0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2))
    assert schedule(110) == schedule(500) == pytest.approx(0.2)


def test_constant_rises_and_stays():
    schedule = ConstantSchedule(0.3, warmup=3)
    assert [schedule(step) for step in (1, 2, 3, 4, 99)] == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3])
    assert ConstantSchedule(0.3)(1) == 0.3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PaperSchedule(0), "d_model is 0"),
        (lambda: PaperSchedule(8, warmup=0), "warmup is 0"),
        (lambda: PaperSchedule(8)(0), "step is 0"),
        (lambda: PaperSchedule(8, factor=math.inf), "factor is inf"),
        (lambda: CosineSchedule(1.0, 5, warmup=5), "less than the 5 steps"),
        (lambda: CosineSchedule(1.0, 5, floor=2), "floor is 2"),
        (lambda: ConstantSchedule(0), "rate is 0"),
        (lambda: make_schedule("paper", rate=1, warmup=1, steps=None, d_model=None), "give d_model"),
        (lambda: make_schedule("cosine", rate=1, warmup=1, steps=None, d_model=3), "give steps"),
        (lambda: make_schedule("linear", rate=1, warmup=1, steps=2, d_model=3), "paper, cosine, constant"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()

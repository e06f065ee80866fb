from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from headwise.training import Recipe, SettingError, setting_names, with_settings


@dataclass(frozen=True)
class Inner:
    width: int = 8
    kind: Literal["post", "pre"] = "post"


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    other: Inner = field(default_factory=Inner)
    rate: float = 0.5
    limit: int | None = None
    flag: bool = False
    sizes: tuple[int, ...] = ()
    name: str = "x"
    kind: float | None = 1.0


def test_values_are_read_by_type():
    changes = ["rate=3e-4", "limit=4_000", "flag=yes", "sizes=2, 3,5", "name = a=b", "inner.width=16"]
    found = with_settings(Outer(), changes)
    assert found == Outer(
        inner=Inner(width=16), rate=3e-4, limit=4000, flag=True, sizes=(2, 3, 5), name="a=b"
    )
    assert with_settings(found, ["limit=none", "limit=3", "limit=none"]).limit is None
    assert with_settings(Outer(), ["inner.kind=pre"]).inner.kind == "pre"


def test_a_bare_name_will_do_where_it_is_the_only_one():
    @dataclass(frozen=True)
    class Application:
        recipe: Recipe = field(default_factory=Recipe)
        model: Inner = field(default_factory=Inner)

    found = with_settings(Application(), ["warmup=7", "width=3"])
    assert (found.recipe.warmup, found.model.width) == (7, 3)
    assert "recipe.warmup" in setting_names(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("warmpu=3", "there is no setting 'warmpu': did you mean warmup"),
        ("warmup", "write key=value"),
        ("=3", "write key=value"),
        ("warmup=many", "warmup=many: it must be a whole number"),
        ("warmup=1.5", "whole number"),
        ("rate=fast", "rate=fast: it must be a number"),
        ("rate=-1", "rate=-1: rate is -1.0: it must be a positive number"),
        ("tensorboard=maybe", "true or false"),
        ("schedule=step", "paper, cosine, constant"),
        ("clip=no", "it must be a number, or none"),
        ("xyzzy=3", "known are accumulate, beta1"),
    ],
)
def test_mistakes_are_named(change, words):
    with pytest.raises(SettingError, match=words):
        with_settings(Recipe(), [change])


@dataclass(frozen=True)
class Span:
    steps: int = 100
    warmup: int = 40

    def __post_init__(self):
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}")
        if self.warmup > self.steps:
            raise ValueError(f"warmup is {self.warmup} and steps {self.steps}")


@dataclass(frozen=True)
class Around:
    span: Span = field(default_factory=Span)
    most: int = 200

    def __post_init__(self):
        if self.most < self.span.steps:
            raise ValueError(f"most is {self.most}")


@pytest.mark.parametrize("order", [1, -1])
def test_what_fits_only_together_is_changed_together(order):
    changes = ["steps=30", "warmup=5"][::order]
    assert with_settings(Span(), changes) == Span(30, 5)
    assert with_settings(Around(), ["most=20", "steps=20", "warmup=0"][::order]) == Around(Span(20, 0), 20)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["steps=30"], "steps=30: warmup is 40 and steps 30"),
        (["steps=0", "most=300"], "steps=0: steps is 0"),
        (["most=150", "steps=30", "warmup=50"], "steps=30: warmup is 50 and steps 30"),
        (["steps=30", "most=1", "warmup=5"], "most=1: most is 1"),
        (["steps=300", "warmup=7"], "steps=300: most is 200"),
        (["steps=30", "warmup=5", "most=many"], "most=many: it must be a whole number"),
        (["warmup=300", "most=1"], "warmup=300: warmup is 300 and steps 100|most=1: most is 1"),
    ],
)
def test_the_change_that_does_not_fit_is_named(changes, words, order):
    with pytest.raises(SettingError, match=f"^{words}") as found:
        with_settings(Around(), changes[::order])
    assert "warmup=7" not in str(found.value)


def test_of_two_changes_the_later_one_wins():
    assert with_settings(Around(), ["steps=7", "span.steps=50"]).span.steps == 50


def test_ambiguous_names_are_refused():
    with pytest.raises(SettingError, match=r"inner\.width or other\.width"):
        with_settings(Outer(), ["width=3"])
    with pytest.raises(SettingError, match=r"did you mean inner\.width"):
        with_settings(Outer(), ["inner.widht=3"])
    with pytest.raises(TypeError, match="dataclasses"):
        with_settings({"width": 1}, ["width=3"])


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"keep": 0},
        {"beta2": 1.0},
        {"clip": 0.0},
        {"weight_decay": -1},
        {"precision": "float16"},
        {"steps": None},
        {"schedule": "cosine", "steps": None, "epochs": 3},
        {"log_every": 0},
    ],
)
def test_recipes_that_cannot_be_are_refused(changes):
    with pytest.raises(ValueError, match=r"is |never end|give steps"):
        Recipe(**changes)


def test_the_papers_recipe_is_the_default():
    recipe = Recipe()
    assert (recipe.beta1, recipe.beta2, recipe.epsilon) == (0.9, 0.98, 1e-9)
    assert recipe.steps == 100_000
    assert f"{recipe.make_schedule(512)(4000):.3e}" == "6.988e-04"

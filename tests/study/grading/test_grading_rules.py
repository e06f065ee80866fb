"""Grading of the six kinds of questions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.study.answers_text import NotAnAnswer, number, shape, words
from headwise.study.content import GuideError, Item, Mistake, Option, Question
from headwise.study.grading import grade
from headwise.study.keys import answer_key, names, shown_items, shown_options

BASE = {"id": "q", "prompt": "?", "explain": "because", "block": "a#b"}


def choice(kind="single", right=(0,), count=4):
    options = [Option(text=f"t{n}", correct=n in right, why=f"w{n}") for n in range(count)]
    return Question(kind=kind, options=options, **BASE)


def numeric(answer=64, **more):
    return Question(kind="numeric", answer=answer, **{**BASE, **more})


@pytest.mark.parametrize("chosen", range(4))
def test_one_choice(chosen):
    question = choice(right=(2,))
    result = grade(question, [names(question)[chosen]])
    assert result.correct == (chosen == 2)
    assert result.score == float(chosen == 2)
    assert sorted(one["why"] for one in result.options) == ["w0", "w1", "w2", "w3"]
    assert [one["key"] for one in result.options if one["chosen"]] == [names(question)[chosen]]
    assert (result.explain, result.again, result.right) == ("because", "a#b", "t2")


@given(*[st.sets(st.integers(0, 4), min_size=1, max_size=5)] * 2)
def test_several_choices_count_each_judgement(right, chosen):
    question = choice("multiple", right, 5)
    result = grade(question, [names(question)[place] for place in sorted(chosen)])
    agreed = sum((place in right) == (place in chosen) for place in range(5))
    assert result.score == agreed / 5
    assert result.correct == (right == chosen)
    assert str(agreed) in result.verdict or result.correct


@given(st.permutations(range(4)))
def test_orders(order):
    question = Question(kind="order", items=[Item(text=f"t{n}", why=f"w{n}") for n in range(4)], **BASE)
    known = names(question)
    result = grade(question, [known[place] for place in order])
    assert result.correct == (list(order) == [0, 1, 2, 3])
    assert result.score == sum(place == n for n, place in enumerate(order)) / 4
    for item in result.items:
        place = known.index(item["key"])
        assert (item["right_place"], item["place"]) == (place + 1, list(order).index(place) + 1)


@pytest.mark.parametrize("given_names", [[], ["zzzzzz"], ""])
def test_choices_that_are_none_are_no_answers(given_names):
    with pytest.raises(NotAnAnswer):
        grade(choice(), given_names)
    with pytest.raises(NotAnAnswer):
        grade(choice("multiple", (0, 1)), given_names)


def test_two_choices_where_one_is_asked_are_no_answer():
    question = choice()
    with pytest.raises(NotAnAnswer, match="Choose one answer; 2 are chosen"):
        grade(question, names(question)[:2])
    with pytest.raises(NotAnAnswer, match="reload"):
        grade(choice("multiple", (0,)), [names(question)[0]] * 2)


@given(st.integers(2, 7), st.text("abcdefgh-", min_size=1, max_size=12))
def test_the_order_on_the_page_is_not_that_of_the_file(count, id):
    question = Question(kind="order", id=id, prompt="?", items=[Item(text=str(n)) for n in range(count)])
    shown = [item.text for _, item in shown_items(question)]
    assert sorted(shown) == [str(n) for n in range(count)]
    assert shown != [str(n) for n in range(count)]


@given(st.permutations([*"abcd", "d"]))
def test_what_a_page_shows_of_an_order_says_nothing_of_the_places(texts):
    def asked(order):
        return Question(kind="order", id="q", prompt="?", items=[Item(text=text) for text in order])

    sorted_names = sorted(zip(names(asked("abcdd")), "abcdd", strict=True))
    assert sorted(zip(names(asked(texts)), texts, strict=True)) == sorted_names


def test_names_of_options_stay_when_words_change_and_differ_between_questions():
    first, reworded = choice(), choice()
    reworded = Question(**{**_fields(reworded), "options": [Option(text="new", why="x") for _ in range(4)]})
    assert names(first) == names(reworded)
    other = Question(**{**_fields(first), "id": "other"})
    assert not set(names(first)) & set(names(other))
    assert [key for key, _ in shown_options(first)] == sorted(names(first))


def _fields(question):
    return {name: getattr(question, name) for name in question.__struct_fields__}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        (" 64 ", 64),
        ("+64", 64),
        ("64.0", 64),
        ("64.", 64),
        (".5", 0.5),
        ("-2.5", -2.5),
        ("−2.5", -2.5),
        ("1,048,576", 1048576),
        ("1 048 576", 1048576),
        ("1\N{NO-BREAK SPACE}048\N{NO-BREAK SPACE}576", 1048576),
        ("1_048_576", 1048576),
        ("1'048'576", 1048576),
        ("1,048,576.5", 1048576.5),
        ("0,1", 0.1),
        ("0,512", 0.512),
        ("1,5", 1.5),
        ("1e-9", 1e-9),
        ("1E-9", 1e-9),
        ("10^-9", 1e-9),
        ("10^(-9)", 1e-9),
        ("10⁻⁹", 1e-9),
        ("3.3 × 10¹⁸", 3.3e18),
        ("3.3x10^18", 3.3e18),
        ("3.3*10**18", 3.3e18),
        ("2^20", 1048576),
        ("2 ** 20", 1048576),
        ("1/8", 0.125),
        ("4 · 512 · 512", 1048576),
        ("512/8", 64),
        ("6 4", None),
        ("1,04", 1.04),
        ("1,0485,76", None),
        ("１２", 12),
        ("64 %", 0.64),
        ("", None),
        ("abc", None),
        ("64 dims", None),
        ("nan", None),
        ("inf", None),
        ("1/0", None),
        ("0/0", None),
        ("9^999", None),
        ("10^400", None),
        ("(-8)^0.5", None),
        ("-8^0.5", -(8**0.5)),
        ("-2^2", -4),
        ("-2²", -4),
        ("(-2)^2", 4),
        ("3 × -2^2", -12),
        ("--2^2", None),
        ("(^2", None),
        ("\ufeff64\u0085", 64),
        ("64\x1c", None),
        ("\u0663", None),
        ("0^-1", None),
        ("1e999", None),
        ("--5", None),
        ("5*", None),
        ("1" * 300, None),
    ],
)
def test_numbers_as_people_write_them(text, value):
    if value is None:
        with pytest.raises(NotAnAnswer):
            number(text)
    else:
        assert number(text) == pytest.approx(value, rel=1e-12)


@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.sampled_from(["", "tokens", "%"]))
def test_every_number_is_read_as_it_is_printed(value, unit):
    if abs(value) > 1e290:
        return
    assert number(f"{value!r} {unit}", unit) == value
    assert grade(numeric(value, unit=unit), repr(value)).correct


def test_units_may_follow_or_not():
    question = numeric(64, unit="tokens")
    for text in ("64", "64 tokens", "64tokens", "64 TOKENS"):
        assert grade(question, text).correct
    with pytest.raises(NotAnAnswer, match="alone or with the unit of this question, tokens"):
        grade(question, "64 heads")
    assert grade(numeric(28.4, unit="%"), "28.4 %").correct
    assert not grade(numeric(28.4, unit="%"), "0.284").correct


def test_a_tolerance_ends_where_it_says():
    question = numeric(10, tolerance=0.5)
    for text, right in (("10.5", True), ("9.5", True), ("10.51", False), ("9.49", False)):
        assert grade(question, text).correct is right
    assert grade(numeric(0.1 + 0.2), "0.3").correct
    assert not grade(numeric(1e-9), "2e-9").correct


def test_mistakes_that_were_foreseen_say_why():
    question = numeric(64, mistakes=[Mistake(value=512, why="of all heads")])
    assert grade(question, "512").why == "of all heads"
    assert grade(question, "8").why == ""
    typed = Question(
        kind="text", accept=["softmax"], mistakes=[Mistake(text="sigmoid", why="of one")], **BASE
    )
    assert grade(typed, "The Sigmoid!").why == "of one"
    shaped = Question(
        kind="shape",
        code="x = torch.zeros(2, 3)",
        ask="x.shape",
        mistakes=[Mistake(shape=[3, 2], why="turned")],
        **BASE,
    )
    assert grade(shaped, "3 x 2").why == "turned"
    assert grade(shaped, "(2, 3)").correct
    assert not grade(shaped, "2").correct


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("softmax", "The SoftMax."),
        ("multi-head attention", "Multi Head  Attention"),
        ("multi-head", "multihead"),
        ("naïve", "naive"),
        ("the key's", "keys"),
        ("layer norm", "LayerNorm"),
        ("n²", "n^2"),
        ("10⁻⁹", "10^-9"),
        ("10⁻⁹", "10^(−9)"),
        ("0.5.", "0.5"),
        ("about\ufeff-1", "about -1"),
        ("the", "a the"),
    ],
)
def test_words_that_count_as_the_same(one, other):
    assert words(one) == words(other) or {words(one), words(other)} <= {"the", "athe"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-∞", "∞"),
        ("-1", "1"),
        ("x+y", "xy"),
        ("a/b", "ab"),
        ("theory", "ory"),
        ("n", "m"),
        ("10^-9", "10^9"),
        ("10⁻⁹", "10⁹"),
        ("0.5", "05"),
        ("1.5", "15"),
    ],
)
def test_words_that_differ(one, other):
    assert words(one) != words(other)


@given(st.text(max_size=60))
def test_words_are_a_normal_form(text):
    assert words(words(text)) == words(text)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("2, 7, 512", [2, 7, 512]),
        ("(2, 7, 512)", [2, 7, 512]),
        ("[2,7,512]", [2, 7, 512]),
        ("2 x 7 x 512", [2, 7, 512]),
        ("2×7×512", [2, 7, 512]),
        ("2 7 512", [2, 7, 512]),
        ("torch.Size([2, 7, 512])", [2, 7, 512]),
        ("(2,)", [2]),
        ("()", []),
        ("[]", []),
        ("torch.Size([])", []),
        ("", None),
        ("  ", None),
        ("two", None),
        ("2, -7", None),
        ("2.5", None),
        ("2; 7", [2, 7]),
        ("9" * 13, None),
    ],
)
def test_shapes_as_people_write_them(text, sizes):
    if sizes is None:
        with pytest.raises(NotAnAnswer):
            shape(text)
    else:
        assert shape(text) == sizes


@given(st.text(max_size=80))
def test_any_text_is_graded_or_refused(text):
    for question in (
        numeric(),
        Question(kind="text", accept=["softmax"], **BASE),
        Question(kind="shape", code="x = torch.zeros(2, 3)", ask="x.shape", **BASE),
    ):
        try:
            result = grade(question, text)
        except NotAnAnswer:
            continue
        assert result.score in (0.0, 1.0)


def test_a_key_is_plain_and_finite():
    key = answer_key(numeric(1048576.0), None, lambda text: f"<p>{text}</p>")
    assert key["right"] == "<p>1,048,576</p>"
    assert math.isfinite(key["answer"])


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (choice(right=()), "q: 0 options are correct: exactly one must be"),
        (choice(right=(0, 2)), "q: 2 options are correct: exactly one must be"),
        (choice("multiple", ()), "q: no option is correct: at least one must be"),
        (Question(kind="text", **BASE), 'q: accept = ["..."] is missing'),
        (numeric(None), "q: it needs answer = a number, or fact = the id of one"),
        (Question(kind="shape", code="x = 5", ask="x", **BASE), "q: ask = 'x' gives 5: it must give a shape"),
    ],
    ids=["none right", "two right", "nothing right", "nothing accepted", "no number", "no shape"],
)
def test_what_cannot_be_graded_has_no_key(question, said):
    with pytest.raises(GuideError) as refused:
        answer_key(question, None, str, file="a.quiz.toml")
    assert refused.value.message.startswith(said)
    assert refused.value.file == "a.quiz.toml"

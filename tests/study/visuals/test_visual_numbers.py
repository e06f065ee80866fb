"""The numbers in Python: against formulas, the paper's figures and runs of the library by another way."""

import dataclasses
import json
import math

import pytest
import torch
from input_grids import GRIDS
from visual_page import definitions

from headwise.models.parameters import count_row
from headwise.models.table3 import TABLE_3, find_row
from headwise.multihead import MultiHeadAttention
from headwise.study.visuals import (
    NAMES,
    Table,
    cost_bleu,
    crossovers,
    label_smoothing,
    load,
    make,
    position_waves,
    saturation,
    sentence_heads,
    split_join,
    table3,
)
from headwise.study.visuals.facts import optional, value
from headwise.study.visuals.wording import count, fixed, listing, percent, power, size


@pytest.mark.parametrize("name", NAMES)
def test_a_visual_has_data_for_json_a_table_and_words(name):
    made = make(name)
    assert json.loads(json.dumps(made.data)) == made.data
    assert made.data["defaults"] == load(name).DEFAULTS
    assert len(made.table.rows) > 1
    assert all(len(row) == len(made.table.columns) for row in made.table.rows)
    assert all(isinstance(cell, str) for row in made.table.rows for cell in row)
    assert made.words.endswith(".")
    assert len(json.dumps(made.data)) < 150_000


def test_every_visual_stands_in_the_guide_with_the_first_values_of_its_inputs():
    visuals = definitions()
    assert sorted(visuals) == sorted(NAMES)
    for name, visual in visuals.items():
        values = {given["name"]: given["value"] for given in visual["inputs"]}
        assert values == dict(load(name).DEFAULTS), name
        for given in visual["inputs"]:
            if given["kind"] == "range":
                assert given["min"] <= given["value"] <= given["max"], (name, given["name"])
            if given["kind"] == "select":
                options = [one["value"] if isinstance(one, dict) else one for one in given["options"]]
                assert given["value"] in options, (name, given["name"])


def test_an_unknown_visual_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"no visual 'masks'.*dot_product_by_hand"):
        load("masks")


def test_a_missing_fact_is_named():
    with pytest.raises(ValueError, match=r"no fact 'model\.base\.d_model'"):
        value({}, "model.base.d_model")
    assert optional({}, "model.base.d_model") is None
    assert value({"a": 3}, "a") == 3
    assert value({"a": dataclasses.make_dataclass("Fact", ["value"])(5)}, "a") == 5


def test_a_table_whose_rows_are_uneven_is_refused():
    with pytest.raises(ValueError, match="row 2 has 1 cells for 2 columns"):
        Table("t", ("a", "b"), (("1", "2"), ("3",)))


def test_wording():
    assert [fixed(1234567.25, 1), fixed(2.675, 2), fixed(-0.5, 0), fixed(0.125, 2), fixed(-0.001, 2)] == [
        "1,234,567.3",
        "2.67",  # the float lies below the half
        "−1",
        "0.13",
        "0.00",
    ]
    assert [count(1000), percent(0.125), percent(0.5, 1)] == ["1,000", "13\u00a0%", "50.0\u00a0%"]
    assert [power(3.25e18), power(9.96e-5), power(0)] == [
        "3.3\u00a0×\u00a010¹⁸",
        "1.0\u00a0×\u00a010⁻⁴",
        "0",
    ]
    assert [size(7.0), size(2.345), size(123.4), size(2.5e9)] == [
        "7",
        "2.35",
        "123",
        "2.50\u00a0×\u00a010⁹",
    ]
    assert [listing(["a"]), listing(["a", "b", "c"])] == ["a", "a, b and c"]


def test_saturation_has_the_gradient_that_autograd_finds():
    scores = torch.tensor([[3.0, -1.0, 0.5], [0.0, 0.0, 0.0]], dtype=torch.float64)
    for row in scores:
        jacobian = torch.autograd.functional.jacobian(lambda one: one.softmax(-1), row)
        assert float(saturation.jacobian_norm(row.softmax(-1))) == pytest.approx(float(jacobian.norm()))


def test_saturation_shows_what_the_footnote_says():
    lines = saturation.averages()
    for line in lines:
        assert line["variance"] == pytest.approx(line["d_k"], rel=0.1)
    plain, scaled = ([line[way]["gradient"] for line in lines] for way in ("plain", "scaled"))
    assert plain[-1] < plain[0] / 5
    assert min(scaled) > 0.9 * max(scaled[1:]) > 0.3


def test_split_join_counts_the_parameters_of_a_real_layer():
    inputs = {"n": 3, "d_model": 48, "heads": 5, "free": True, "width": 7}
    layer = MultiHeadAttention(48, 5, d_k=7, d_v=7)
    assert split_join.compute(inputs)["parameters"] == sum(one.numel() for one in layer.parameters())


def test_the_products_of_heads_cost_the_same_and_softmax_grows_with_them():
    one, eight = (
        split_join.compute({"n": 11, "d_model": 64, "heads": heads, "free": False, "width": 8})
        for heads in (1, 8)
    )
    assert one["products"] == eight["products"]
    assert one["parameters"] == eight["parameters"]
    assert eight["softmax"] == 8 * one["softmax"]


def test_a_shift_is_the_rotation():
    for inputs in GRIDS["position_waves"]():
        found = position_waves.compute(inputs)
        assert found["turned"] == pytest.approx(found["there"], abs=1e-9)


def test_the_floor_of_label_smoothing_lies_at_the_target():
    for smoothing in (0.05, 0.1, 0.3):
        found = label_smoothing.compute({"smoothing": smoothing, "vocabulary": "100", "confidence": 0.5})
        at_target = label_smoothing.loss(found["right"], smoothing, 100)
        assert at_target == pytest.approx(found["floor"])
        beside = [label_smoothing.loss(found["right"] + step, smoothing, 100) for step in (-1e-3, 1e-3)]
        assert min(beside) > at_target


def test_lines_of_table_1_cross_where_it_is_said():
    for n, layer in ((512, "recurrent"), (3 * 512, "convolutional")):
        own = [crossovers.cost("self-attention", "operations", n + more, 512, 3, 64) for more in (-1, 0, 1)]
        other = [crossovers.cost(layer, "operations", n + more, 512, 3, 64) for more in (-1, 0, 1)]
        assert own[0] < other[0]
        assert own[1] == other[1]
        assert own[2] > other[2]
    assert crossovers.cost("convolutional", "path", 9, 512, 1, 64) is None


def test_table_3_is_linear_in_the_vocabulary_as_counted():
    for name in ("A h=4", "C d_model=1024", "E learned", "big"):
        found = table3.compute({**table3.DEFAULTS, "vocabulary": 33_000, "row": name})
        counted = next(row["counted"] for row in found["rows"] if row["name"] == name)
        counts = count_row(find_row(name), 33_000)
        assert counted == counts.total
        assert {one["name"]: one["parameters"] for one in found["parts"]} == {
            part.name: part.parameters for part in counts.parts
        }


def test_table_3_has_every_row_in_the_wanted_order():
    assert [row["name"] for row in table3.compute(table3.DEFAULTS)["rows"]] == [row.name for row in TABLE_3]
    by_bleu = table3.compute({**table3.DEFAULTS, "sort": "bleu"})["rows"]
    assert by_bleu[0]["name"] == "big"
    printed = table3.compute({**table3.DEFAULTS, "sort": "printed"})["rows"]
    assert printed[0]["name"] == "big"
    assert [row["matches"] for row in printed[-9:]] == [None] * 9
    met = table3.compute({**table3.DEFAULTS, "vocabulary": 41_100})
    assert (met["matching"], met["stated"]) == (10, 11)  # all but "big"


def test_table_2_says_what_a_budget_buys():
    cheap = cost_bleu.compute({**cost_bleu.DEFAULTS, "budget": 18.0})
    assert cheap["best"] is None
    base = value(None, "table2.transformer-base.cost")
    enough = cost_bleu.compute({**cost_bleu.DEFAULTS, "budget": math.log10(base) + 1e-9})
    assert enough["best"] == "Transformer (base)"
    assert enough["days"] == pytest.approx(0.5, rel=0.02)  # 12 hours of eight P100
    rich = cost_bleu.compute({**cost_bleu.DEFAULTS, "language": "en-fr", "budget": 21.2})
    assert rich["best"] == "Transformer (big)"
    assert len(rich["points"]) == 9  # ByteNet has no BLEU for French


def test_weights_of_the_sentence_add_up():
    held = sentence_heads.carried()
    n = len(held["tokens"])
    rows = torch.tensor(held["weights"], dtype=torch.float64).view(held["layers"], held["heads"], n, n)
    assert float((rows.sum(-1) / held["unit"] - 1).abs().max()) < n * 0.5 / held["unit"]


def test_the_sentence_can_be_made_again():
    from headwise.models.bert_weights import find_bert, load_bert

    try:
        find_bert("minilm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    model = load_bert("minilm")
    held = sentence_heads.carried()
    again = sentence_heads.look(sentence_heads.SENTENCE, model)
    assert again["tokens"] == held["tokens"]
    apart = [abs(one - other) for one, other in zip(again["weights"], held["weights"], strict=True)]
    assert max(apart) <= 2  # ten-thousandths: another machine rounds otherwise
    kinds = [[head["kind"] for head in layer] for layer in again["facts"]]
    assert kinds == [[head["kind"] for head in layer] for layer in held["facts"]]
    for text, wrong in (("", "no words"), ("word " * 60, "62 tokens: give a sentence of at most 48")):
        with pytest.raises(ValueError, match=wrong):
            sentence_heads.look(text, model)


def test_facts_of_heads_are_those_of_the_weights():
    held = sentence_heads.carried()
    n = len(held["tokens"])
    weights = torch.tensor(held["weights"], dtype=torch.float64).view(6, 12, n, n) / held["unit"]
    words = slice(1, n - 1)
    entropy = -(weights * weights.clamp(min=1e-12).log2()).sum(-1)[..., words].mean(-1)
    places = torch.arange(n)
    distance = (weights * (places[:, None] - places).abs()).sum(-1)[..., words].mean(-1)
    for layer in range(6):
        for head in range(12):
            facts = held["facts"][layer][head]
            assert facts["entropy"] == pytest.approx(float(entropy[layer, head]), abs=0.02)
            assert facts["distance"] == pytest.approx(float(distance[layer, head]), abs=0.02)
            first = float(weights[layer, head, words, 0].mean())
            assert facts["shares"]["first"] == pytest.approx(first, abs=1e-3)

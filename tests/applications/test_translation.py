"""Translation: from two text files to a model that translates, and every mistake on the way."""

import json
import shutil

import pytest
import torch
from corpus import COUNTS, QUICK, english, german, write_corpus

from headwise.applications import DataError, application_of, find, train_application
from headwise.applications.pair_task import EncodedPairs
from headwise.applications.text_files import Pairs
from headwise.applications.tokens import SMALLEST, Tokens
from headwise.applications.translation import translate
from headwise.applications.writing import write, write_texts
from headwise.models import Transformer, TransformerConfig
from headwise.training import RunError, SettingError, load_run

APPLICATION = find("translation")
FEW = [*QUICK, "steps=3", "validate_every=3", "d_model=16"]


def train(run, *data, changes=FEW, **options):
    return train_application(APPLICATION, run, data, changes=changes, show=False, **options)


def test_a_trained_run_beats_copying_the_source(translation_run):
    found = application_of(translation_run).open(translation_run, "best", print).evaluate("test", None, {})
    assert found.examples == len(found.outputs) == COUNTS["test"]
    assert found.figures["bleu"] > 10 * found.baselines["source copied"]["bleu"]
    assert found.baselines["nearest neighbour"]["bleu"] > found.baselines["source copied"]["bleu"]
    assert found.figures["bleu_low"] <= found.figures["bleu"] <= found.figures["bleu_high"]
    right = sum(one["output"] == one["reference"] for one in found.outputs)
    assert right > 0
    assert any("tok:13a" in note for note in found.notes)


def test_the_nearest_neighbour_is_of_the_training_texts(translation_run, numbers, tmp_path):
    translator = APPLICATION.open(translation_run)
    lines = {side: (numbers / f"train.{side}").read_text().splitlines() for side in ("en", "de")}
    found = translator.nearest([lines["en"][17], f"  {lines['en'][3].upper()}"])
    assert found == [lines["de"][lines["en"].index(lines["en"][row])] for row in (17, 3)]
    moved = dict(translator.config)
    moved["data"] = {**moved["data"], "paths": [str(tmp_path / "gone")]}
    translator.config = moved
    told = translator.evaluate("test", [numbers], {"limit": 3, "beam": 1})
    assert set(told.baselines) == {"source copied"}
    assert any("no nearest neighbour" in note and "gone" in note for note in told.notes)


def test_a_run_translates_what_the_model_in_memory_does(translation_run):
    texts = [english(digits) for digits in ([1, 2, 3], [7], [5, 0, 9, 4])]
    loaded = load_run(translation_run)
    model = Transformer(TransformerConfig.from_dict(loaded.config["model"]))
    loaded.load_into(model)
    tokens = Tokens.load(translation_run)
    for beam in (1, 4):
        expected = write_texts(model.eval(), tokens, texts, beam=beam)
        assert translate(translation_run, texts, beam=beam) == expected
    assert any(expected)


def test_texts_come_out_in_their_order_whatever_is_read_with_them(translation_run):
    translator = APPLICATION.open(translation_run)
    texts = [english(digits) for digits in ([1, 2, 3, 4], [5], [6, 7], [8, 9, 0, 1], [2])]
    texts.insert(2, "  ")
    together = translator.translate(texts)
    assert together == [translator.translate([text])[0] for text in texts]
    assert together[2] == ""
    sources = [[*ids, translator.tokens.eos_id] for ids in translator.tokens.encode(texts)]
    for cells in (1, 23, 10_000):  # one at a time, a few, all
        found = write(translator.model, sources, beam=2, cells=cells)
        again = write(translator.model, sources, beam=2)
        assert [one[0].tokens for one in found] == [one[0].tokens for one in again]
    assert translator.translate([]) == []


def test_letters_never_seen_are_translated_to_something(translation_run):
    assert len(translate(translation_run, ["żółw 🐢", "\u202eone"], beam=2)) == 2


def test_batches_hold_each_pair_once_with_its_ends():
    pairs = Pairs([english([number % 10]) for number in range(11)], [german([1, 2])] * 11)
    tokens = Tokens.train([*pairs.sources, *pairs.targets], SMALLEST)
    encoded = EncodedPairs(pairs, tokens)
    batch = encoded.collate([3, 5])
    for row, number in enumerate((3, 5)):
        length = int(batch["source_lengths"][row])
        source = batch["source"][row, :length].tolist()
        assert source == [*tokens.encode([pairs.sources[number]])[0], tokens.eos_id]
        target = tokens.encode([pairs.targets[number]])[0]
        assert batch["before"][row].tolist() == [tokens.bos_id, *target]
        assert batch["after"][row].tolist() == [*target, tokens.eos_id]
        assert encoded.lengths[number] == (length, len(target) + 1)


def test_the_loss_is_that_of_the_paper(numbers):
    settings = APPLICATION.settings()
    task = APPLICATION.task(
        [numbers], _with(settings, "num_layers=1", "d_model=8", "num_heads=2"), None, print
    )
    task.model.eval()
    batch = next(iter(task.batches("train", 0, 0)))
    loss, count, sums = task.loss(batch)
    logits = task.model(batch["source"], batch["before"], batch["source_lengths"]).double()
    log_p = logits.log_softmax(-1)
    real = batch["after"] != task.tokens.pad_id
    nll = -log_p.gather(-1, batch["after"][..., None]).squeeze(-1)[real].sum()
    even = -log_p.mean(-1)[real].sum()
    eps = settings.model.label_smoothing
    assert count == int(real.sum())
    torch.testing.assert_close(sums["nll"].double(), nll, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        loss.detach().double(), ((1 - eps) * nll + eps * even).detach(), rtol=1e-5, atol=0
    )


def _with(settings, *changes):
    from headwise.training import with_settings

    return with_settings(settings, changes)


def test_epochs_differ_and_are_the_same_for_the_same_seed(numbers):
    task = APPLICATION.task([numbers], _with(APPLICATION.settings(), *FEW), None, print)
    first = [batch["source"].tolist() for batch in task.batches("train", 0, 7)]
    assert first == [batch["source"].tolist() for batch in task.batches("train", 0, 7)]
    assert first != [batch["source"].tolist() for batch in task.batches("train", 1, 7)]
    assert sum(map(len, first)) == COUNTS["train"]


def test_long_pairs_are_left_out_and_counted(numbers):
    said = []
    settings = _with(APPLICATION.settings(), *FEW)
    lengths = [max(of_one) for of_one in APPLICATION.task([numbers], settings, None, print).training.lengths]
    longest = max(lengths) - 1
    settings = _with(settings, f"longest={longest}")
    task = APPLICATION.task([numbers], settings, None, said.append)
    assert task.left_out == sum(length > longest for length in lengths)
    rows = sum(len(batch["source"]) for batch in task.batches("train", 0, 0))
    assert 0 < rows == COUNTS["train"] - task.left_out < COUNTS["train"]
    assert f"{task.left_out:,} pairs longer than {longest} left out" in said[-1]
    with pytest.raises(DataError, match="longest=1"):
        APPLICATION.task([numbers], _with(settings, "longest=1"), None, print)


def test_a_run_goes_on_with_its_own_settings_and_data(numbers, tmp_path):
    whole = train(tmp_path / "whole", numbers, changes=[*FEW, "steps=5", "validate_every=5"])
    train(tmp_path / "parts", numbers, changes=[*FEW, "validate_every=5", "validate_at_end=false"])
    again = train(tmp_path / "parts", resume=True, changes=["steps=5", "validate_at_end=true"])
    assert again.step == whole.step == 5
    assert again.metrics == whole.metrics
    one, other = (load_run(tmp_path / name, "last").weights for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_data_may_move_but_not_change(numbers, tmp_path):
    data = shutil.copytree(numbers, tmp_path / "data")
    run = tmp_path / "run"
    train(run, data)
    data = data.rename(tmp_path / "moved")
    assert train(run, data, resume=True, changes=["steps=4"]).step == 4
    write_corpus(data, seed=6)
    with pytest.raises(RunError, match="data"):
        train(run, data, resume=True, changes=["steps=5"])


def test_a_run_is_never_overwritten(numbers, tmp_path):
    train(tmp_path / "run", numbers)
    with pytest.raises(RunError, match="holds a run already"):
        train(tmp_path / "run", numbers)
    with pytest.raises(RunError, match="d_model"):
        train(tmp_path / "run", numbers, resume=True, changes=["d_model=32"])


def test_mistakes_in_settings_and_data_are_named(numbers, tmp_path):
    with pytest.raises(DataError, match="--data"):
        train(tmp_path / "run")
    with pytest.raises(SettingError, match="make no model"):
        train(tmp_path / "run", numbers, changes=[*FEW, "d_model=17"])
    with pytest.raises(SettingError, match="vocab_size is 100"):
        train(tmp_path / "run", numbers, changes=[*FEW, "vocab_size=100"])
    with pytest.raises(SettingError, match="longest is 100 and max_tokens 50"):
        train(tmp_path / "run", numbers, changes=["max_tokens=50"])
    with pytest.raises(SettingError, match="eos_id is 0"):
        train(tmp_path / "run", numbers, changes=["eos_id=0"])
    with pytest.raises(SettingError, match="both 'de'"):
        train(tmp_path / "run", numbers, changes=["source=de"])
    with pytest.raises(DataError, match=r"train\.fr is missing"):
        train(tmp_path / "run", numbers, changes=["target=fr"])
    assert not (tmp_path / "run").exists()


def test_runs_that_cannot_be_used_are_named(translation_run, tmp_path):
    with pytest.raises(RunError, match="no run"):
        translate(tmp_path / "none", ["one"])
    run = shutil.copytree(translation_run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    for change, words in (
        ({"application": "chess"}, "application 'chess'"),
        ({"settings": {"colour": "red"}}, "colour"),
        ({"model": {**config["model"], "d_model": 48}}, "can't be used|another|shape"),
    ):
        (run / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(ValueError, match=words):
            application_of(run).open(run, "best", print)
    with pytest.raises(DataError, match="did you mean translation"):
        find("translatoin")

"""The whole of it: the paper's Transformer, in small, learns to copy what it has never seen, exactly."""

from __future__ import annotations

import random

import torch

from headwise.models.decoding import greedy
from headwise.models.transformer import Transformer
from headwise.models.transformer_config import TransformerConfig
from headwise.training import Collated, Recipe, load_run, seed_everything, token_batches, token_loss, train

PAD, BOS, EOS, FIRST, SYMBOLS = 0, 1, 2, 3, 8


class Copying:
    """Copy strings of 1 to 7 symbols."""

    metric, better = "exact", "higher"

    def __init__(self):
        self.settings = TransformerConfig(
            vocab_size=FIRST + SYMBOLS, num_layers=1, d_model=32, d_ff=64, num_heads=4, dropout=0.0
        )
        self.model = Transformer(self.settings)
        self.config = {"application": "copying"}
        chance = random.Random(7)
        strings = {
            tuple(chance.randrange(FIRST, FIRST + SYMBOLS) for _ in range(chance.randint(1, 7)))
            for _ in range(1400)
        }
        ordered = sorted(strings, key=lambda string: chance.random())
        self.training, self.held_out = ordered[100:], ordered[:100]

    def collate(self, strings):
        longest = max(map(len, strings))
        rows = [list(string) + [PAD] * (longest - len(string)) for string in strings]
        source = torch.tensor(rows)
        lengths = torch.tensor([len(string) for string in strings])
        before = torch.cat([torch.full((len(rows), 1), BOS), source], 1)
        after = torch.cat([source, torch.full((len(rows), 1), PAD)], 1)
        after[torch.arange(len(rows)), lengths] = EOS
        return {"source": source, "lengths": lengths, "before": before, "after": after}

    def batches(self, split, epoch, seed):
        plan = token_batches([len(string) + 1 for string in self.training], 640, seed=seed, epoch=epoch)
        return Collated(plan, lambda rows: self.collate([self.training[row] for row in rows]))

    def loss(self, batch):
        logits = self.model(batch["source"], batch["before"], batch["lengths"])
        found = token_loss(logits, batch["after"], smoothing=0.1, pad_id=PAD)
        return found.loss_sum, found.tokens, {"nll": found.nll_sum}

    def validate(self):
        batch = self.collate(self.held_out)
        written = greedy(self.model.stepper(batch["source"], batch["lengths"]), max_extra=3)
        right = sum(tuple(one.tokens) == other for one, other in zip(written, self.held_out, strict=True))
        return {"exact": right / len(self.held_out)}


def test_the_papers_transformer_copies_exactly(tmp_path):
    recipe = Recipe(steps=400, schedule="cosine", rate=5e-3, warmup=50, validate_every=200, device="cpu")
    seed_everything(recipe.seed)
    task = Copying()
    task.model.eval()
    assert task.validate()["exact"] < 0.1
    report = train(task, recipe, tmp_path, show=False)
    assert report.best["value"] == 1.0
    other = Copying()
    load_run(tmp_path).load_into(other.model)
    other.model.eval()
    assert other.validate() == {"exact": 1.0}

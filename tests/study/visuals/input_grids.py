"""What the readers of each visual might choose: the ends of every input, and primes in between."""

from itertools import product

from headwise.study.visuals import load


def grid(name, **choices):
    """Every combination of the choices, the rest being as at first."""
    names = list(choices)
    defaults = load(name).DEFAULTS
    return [{**defaults, **dict(zip(names, values, strict=True))} for values in product(*choices.values())]


def dot_product():
    name = "dot_product_by_hand"
    changed = {
        "q": [[2.0, -3.0, 5.0, 0.5], [-7.0, 1.0, 0.0, 2.0], [9.0, 9.0, 9.0, 9.0]],
        "k": [[-5.0, 2.0, 0.25, 3.0], [9.0, 9.0, 9.0, 9.0], [0.0, -1.0, 7.0, 2.0]],
        "v": [[3.0, -2.0], [5.0, 7.0], [-9.0, 1.5]],
    }
    plain = grid(name, query=["0", "1", "2"], scale=[True, False], causal=[True, False])
    return plain + [{**inputs, **changed} for inputs in plain]


def masks():
    name = "mask"
    return (
        grid(name, queries=[1, 7, 16], keys=[1, 5, 16], align=["end", "start"], causal=[True, False])
        + grid(name, queries=[11], keys=[7, 13], prefix=[2, 16], window=[True, False], before=[0, 3])
        + grid(name, queries=[3, 13], keys=[11], lengths=[True], length=[0, 5, 16], causal=[True, False])
        + grid(
            name, prefix=[3], window=[True], before=[5], after=[0, 1], lengths=[True], length=[7],
            align=["start", "end"], queries=[2, 13],
        )
    )  # fmt: skip


def sentences():
    return grid("sentence_heads", layer=["0", "5"], head=["0", "7", "11"], token=[0, 3, 16, 99])


def splits():
    return grid("split_join", n=[1, 13], d_model=[64, 192, 1024], heads=[1, 7, 32]) + grid(
        "split_join", n=[5], d_model=[128], heads=[3], free=[True], width=[8, 56, 256]
    )


def smoothings():
    name = "label_smoothing"
    return grid(
        name, smoothing=[0, 0.03, 0.1, 0.5], vocabulary=["2", "10", "1000"], confidence=[0.01, 0.37, 0.99]
    ) + grid(name, smoothing=[0.1, 0.29], confidence=[0.97])


def rows():
    name = "table3"
    sorts = ["paper", "bleu", "perplexity", "counted", "printed"]
    return grid(
        name, vocabulary=[32_000, 37_000, 41_100], group=["all", "C", "E"], row=["E learned", "big"]
    ) + grid(name, sort=sorts, group=["all", "A"])


def layers():
    return grid(
        "crossovers",
        cost=["operations", "sequential", "path"],
        reach=[0, 41, 100],
        width=["64", "2048"],
        kernel=[1, 3, 31],
        near=[1, 13, 512],
    )


def positions():
    name = "position_waves"
    return grid(name, width=["8", "32", "512"], pair=[0, 3, 255], position=[0, 11, 64], shift=[0, 7, 32])


def budgets():
    budget = [18, 18.6, 19.4, 20.1, 21.2]
    return grid("cost_bleu", language=["en-de", "en-fr"], ensembles=[True, False], budget=budget)


def rates():
    return grid("schedule", width=[64, 512, 2048], warmup=[500, 3500, 20000], reach=[0, 37, 72, 100])


GRIDS = {
    "dot_product_by_hand": dot_product,
    "saturation": lambda: grid("saturation", exponent=list(range(11)), row=[1, 3, 6]),
    "mask": masks,
    "split_join": splits,
    "sentence_heads": sentences,
    "position_waves": positions,
    "schedule": rates,
    "label_smoothing": smoothings,
    "crossovers": layers,
    "table3": rows,
    "cost_bleu": budgets,
}

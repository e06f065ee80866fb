"""What a head mostly does, told from a few averages.

Every number here is an average over the text's ordinary tokens as queries: special tokens such as
[CLS] and [SEP] are left out, since what they look at says little about language (Voita et al. 2019
leave out the end of the sentence for the same reason).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOSTLY = 0.4
"""A head that gives at least this share of its attention to one kind of key mostly does that."""
ALSO = 0.2
"""A second kind that receives at least this share is named too."""
TIMES_EVEN = 2.0
"""A kind counts only where it gets this many times what a head that attends evenly would give it."""
SINGLE = 0.8
"""In the views of trained runs, a head that would be mixed looks at single keys where the largest weights of
its queries are this on average."""
BROAD = 0.8
"""A head is broad where its entropy is at least this part of log2(number of keys), the largest possible."""

NAMES = {
    "previous": "previous token",
    "next": "next token",
    "itself": "itself",
    "nearby": "nearby tokens",
    "same": "same token",
    "first": "first token",
    "separator": "separators",
    "punctuation": "punctuation",
    "single": "single keys",
    "broad": "broad",
    "mixed": "mixed",
}

SHORT = {
    **NAMES,
    "previous": "previous",
    "next": "next",
    "same": "same",
    "first": "first",
}
"""Names of the further kinds."""

BRIEF = {
    **NAMES,
    "previous": "prev",
    "next": "next",
    "nearby": "near",
    "same": "same",
    "first": "1st",
    "separator": "sep",
    "punctuation": "punct",
}
"""Names of all kinds in a narrow terminal."""

PLURALS = {
    **{kind: f"{name} heads" for kind, name in NAMES.items()},
    "previous": "previous-token heads",
    "next": "next-token heads",
    "itself": "heads on the token itself",
    "nearby": "nearby-token heads",
    "same": "same-token heads",
    "first": "first-token heads",
    "separator": "separator heads",
    "single": "heads on single keys",
}
"""Several heads of one kind."""

FEW = 8
"""A text of fewer tokens, special ones aside, says little about what a head does in general."""

MEANINGS = {
    "previous": "the token just before",
    "next": "the token just after",
    "itself": "the token itself",
    "same": "other places where the same token stands",
    "first": "the first token, [CLS]: often a place to rest when there is nothing to look for",
    "separator": "the separators, [SEP]: often a place to rest as well",
    "punctuation": "punctuation marks and symbols",
    "nearby": "itself and two tokens on either side",
    "single": "one key at a time, whichever that is",
    "broad": "nearly all tokens, nearly evenly",
    "mixed": "none of the above stands out",
}

SPECIFIC = ("previous", "next", "itself", "same", "first", "separator", "punctuation")
"""Kinds in order of precedence where shares are equal. "nearby" contains three of them: it comes last."""

NEARBY = "2 tokens either side and itself"
RULES = (
    f"A head is named after the kind of key that receives most of its attention, if that is at least "
    f"{MOSTLY:.0%} and at least {TIMES_EVEN:g} times what an even spread would give. "
    f"Further kinds from {ALSO:.0%} on are listed after it. Nearby: {NEARBY}, by the "
    f"same rule. Broad: entropy at least {BROAD:.0%} of the largest possible. Otherwise mixed. "
    f"Averages run over all tokens but the special ones, and for the same token over those that occur more "
    f"than once; a special token counts as first token or separator, never as previous, next or nearby."
)


def rules_over(unit: str) -> str:
    """The rules in the words that fit tokens, patches or frames."""
    return (
        RULES.replace(NEARBY, "itself and the patches beside, above and below") if unit == "patch" else RULES
    )


@dataclass(frozen=True)
class Verdict:
    """What a head does. `kind` is a key of NAMES; `also` are further kinds, strongest first."""

    kind: str
    share: float | None
    also: tuple[tuple[str, float], ...] = ()
    unit: str = "token"

    @property
    def name(self) -> str:
        return worded(NAMES[self.kind], self.unit)

    @property
    def words(self) -> str:
        """Such as "first token 47%, previous 37%"; a mixed head names what it does most."""
        return self._say(NAMES, SHORT)

    @property
    def brief(self) -> str:
        """The same for a narrow terminal: "1st 47%, prev 37%"."""
        return self._say(BRIEF, BRIEF)

    def _say(self, names: Mapping[str, str], further: Mapping[str, str]) -> str:
        name = worded(names[self.kind], self.unit)
        own = name if self.share is None else f"{name} {self.share:.0%}"
        also = ", ".join(f"{worded(further[kind], self.unit)} {share:.0%}" for kind, share in self.also)
        if not also:
            return own
        return f"{own}: {also}" if self.share is None else f"{own}, {also}"


def worded(words: str, unit: str) -> str:
    """Words about tokens, said of patches or frames: "nearby frames", "class token"."""
    if unit == "token":
        return words
    if unit == "patch":
        words = {"first token": "class token", "first": "class token", "1st": "class"}.get(words, words)
        return words.replace("tokens", "patches")
    return words.replace("token", unit)


def classify(
    shares: Mapping[str, float | None], even: Mapping[str, float | None], evenness: float
) -> Verdict:
    """Name a head.

    Args:
        shares: share of attention that each kind of key receives, 0 to 1; None where the text has no
            such key (no token occurs twice).
        even: what each kind would receive from a head that attends evenly to all keys.
        evenness: entropy divided by its largest possible value, 0 to 1.
    """

    def stands_out(kind: str, least: float) -> bool:
        share, base = shares.get(kind), even.get(kind)
        # as it is shown, in whole per cent: "40%" must not fall short of 40%
        return share is not None and round(share, 2) >= least and share >= TIMES_EVEN * (base or 0.0)

    ranked = sorted(
        ((kind, shares[kind] or 0.0) for kind in SPECIFIC if stands_out(kind, ALSO)),
        key=lambda pair: -pair[1],
    )
    if ranked and round(ranked[0][1], 2) >= MOSTLY:
        return Verdict(*ranked[0], also=tuple(ranked[1:]))
    if stands_out("nearby", MOSTLY):
        outside = tuple(pair for pair in ranked if pair[0] not in ("previous", "next", "itself"))
        return Verdict("nearby", shares["nearby"], also=outside)
    if evenness >= BROAD:
        return Verdict("broad", None, also=tuple(ranked))
    return Verdict("mixed", None, also=tuple(ranked))

r"""A formula as text in one line, for search and its excerpts: \frac{QK^\top}{\sqrt{d_k}} is QK^T/√d_k.

What one types is near to it: a sign is itself, an index comes after _ and an exponent after ^, a Greek letter
is the letter. An exponent is put before an index, so that W^Q_i and W_i^Q are one.
"""

from __future__ import annotations

import re

from markupsafe import escape

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[^\\]", re.DOTALL)


def _pairs(text: str) -> dict[str, str]:
    """Names of TeX with their signs, both in turn."""
    parts = text.split()
    return dict(zip(parts[::2], parts[1::2], strict=True))


_LETTERS = _pairs(
    "alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ "
    "nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ "
    "Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω top T infty ∞ partial ∂ nabla ∇ sum Σ prod Π dots … "
    "ldots … cdots …"
)
_OPERATORS = _pairs("cdot · times × approx ≈ le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ in ∈ sim ~ to → pm ± mid |")
_SIGNS = _LETTERS | {name: f" {sign} " for name, sign in _OPERATORS.items()} | {"quad": " ", "qquad": " "}
_DROPPED = frozenset(
    ("left", "right", "big", "Big", "bigg", "Bigg", "text", "hat", "bar", "tilde", "vec", "mathbb")
) | frozenset(("mathrm", "mathbf", "mathit", "mathsf", "mathcal", "operatorname"))
_SPACES = {r"\,": " ", r"\;": " ", r"\:": " ", r"\ ": " ", r"\!": "", "~": " ", r"\\": "; ", "&": " "}
_ONE = re.compile(r"√?[^\W_]+|\([^()]*\)|\[[^\[\]]*\]")  # what needs no brackets around it


def read_tex(tex: str) -> str:
    """A formula in one line of plain text."""
    tokens = _TOKEN.findall(re.sub(r"\\(begin|end)\{([a-z]*)\}", _fence, tex.replace("{,}", ",")))
    return _tidy(_run(tokens, 0, "")[0])


class ReadMaths:
    """Formulas as `read_tex` reads them."""

    def __call__(self, tex: str, *, display: bool, file: str, line: int) -> str:
        return str(escape(read_tex(tex)))


def _fence(match: re.Match[str]) -> str:
    """A matrix stands in brackets: rows end with ; as \\\\ does."""
    opened, closed = "[]" if match[2] == "bmatrix" else "()"
    return opened if match[1] == "begin" else closed


def _tidy(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"([(\[]) | ([)\],;])", r"\1\2", text)
    return re.sub(r"\s*([=<>])\s*", r" \1 ", text).strip()


def _run(tokens: list[str], at: int, end: str) -> tuple[str, int]:
    """The tokens up to `end`, read; and the place after it."""
    text = ""
    while at < len(tokens) and tokens[at] != end:
        if tokens[at] in ("^", "_"):
            marks = {"^": "", "_": ""}
            while at < len(tokens) and tokens[at] in marks:
                mark = tokens[at]
                marks[mark], at = _argument(tokens, at + 1)
            text = text.rstrip() + "".join(
                mark + (f"({one})" if mark == "^" and "_" in one else _bracketed(one))
                for mark, one in marks.items()
                if one
            )
        else:
            one, at = _atom(tokens, at)
            text += one
    return text, at + 1


def _atom(tokens: list[str], at: int) -> tuple[str, int]:
    """The reading of what begins here, and the place after it."""
    token = tokens[at]
    if token == "{":
        return _run(tokens, at + 1, "}")
    if token == r"\frac":
        above, at = _argument(tokens, at + 1)
        below, at = _argument(tokens, at)
        return f"{_bracketed(above, product=True)}/{_bracketed(below)}", at
    if token == r"\sqrt":
        under, at = _argument(tokens, at + 1)
        return f"√{under if _plain(under) else f'({under})'}", at
    if token in _SPACES:
        return _SPACES[token], at + 1
    if token.startswith("\\"):
        name = token[1:]
        if name in _DROPPED:
            return "", at + 1
        return _SIGNS.get(name, name), at + 1
    return token, at + 1


def _argument(tokens: list[str], at: int) -> tuple[str, int]:
    """What a command or mark is applied to."""
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    if at >= len(tokens):
        return "", at
    text, at = _atom(tokens, at)
    return _tidy(text), at


def _plain(text: str) -> bool:
    """Is it one name or number, with its index: d_k, 512, d_model?"""
    return re.fullmatch(r"[^\W_]+(?:_[^\W_]+)?", text) is not None


def _bracketed(text: str, *, product: bool = False) -> str:
    """Brackets around what isn't one thing; a product above a fraction's line needs none."""
    if _ONE.fullmatch(text) or _plain(text) or re.fullmatch(r"[-−]?[\w.]+|√\w+", text):
        return text
    if product and not re.search(r"[-+=/,]|\s", text):
        return text
    return f"({text})"

"""The static export grades in the browser, and gives what Python gives: verdicts, reasons and refusals."""

import random

import pytest
from browser_modules import modules

from headwise.study.answers_text import NotAnAnswer, number, shape, words
from headwise.study.content import Item, Mistake, Option, Question
from headwise.study.grading import grade_by_key
from headwise.study.keys import answer_key, names

pytestmark = pytest.mark.browser

BASE = {"id": "q", "prompt": "?", "explain": "because", "block": "a#b"}
OPTIONS = [Option(text=f"t{n}", correct=n in (0, 2), why=f"w{n}") for n in range(4)]
SINGLE = [Option(text=f"t{n}", correct=n == 1, why=f"w{n}") for n in range(4)]
QUESTIONS = [
    Question(kind="single", options=SINGLE, **BASE),
    Question(kind="multiple", options=OPTIONS, **BASE),
    Question(kind="order", items=[Item(text=f"t{n}", why=f"w{n}") for n in range(4)], **BASE),
    Question(
        kind="numeric", answer=1048576, unit="parameters", mistakes=[Mistake(value=4096, why="one")], **BASE
    ),
    Question(kind="numeric", answer=0.1, tolerance=0.02, unit="%", **BASE),
    Question(kind="text", accept=["softmax", "the soft max"], mistakes=[Mistake(text="-∞", why="x")], **BASE),
    Question(
        kind="shape",
        code="x = torch.zeros(2, 7, 13)",
        ask="x.shape",
        mistakes=[Mistake(shape=[2, 7], why="one short")],
        **BASE,
    ),
]
TYPED = [
    *(
        "",
        " ",
        "64",
        "1,048,576",
        "1 048 576 parameters",
        "2^20",
        "2**20",
        "4·512·512",
        "4 × 512 × 512",
        "1e6",
    ),
    *("10⁻⁹", "3.3 × 10¹⁸", "0,1", "0.1 %", "10%", "12 %", "−5", "--5", "1/0", "9^999", "(-8)^0.5", "-8^0.5"),
    *(
        "-2^2",
        "-2²",
        "(-2)^2",
        "--2^2",
        "(^2",
        "\ufeff64",
        "64\u0085",
        "64\x1c",
        "\u0663",
        "10^-9",
        "10^9",
        "0.5",
        "05",
    ),
    *(
        "nan",
        "inf",
        "Infinity",
        "0x10",
        "1e999",
        "１２",
        "½",
        "²",
        "5^",
        "^5",
        "*",
        "/",
        "4096 parameters",
        "1_000",
    ),
    *(
        "SoftMax.",
        "the soft-max",
        "Soft  Max",
        "-∞",
        "∞",
        "- inf",
        "naïve",
        "İ",
        "ß",
        "ǅ",
        "𝑨",
        "a",
        "the",
        "…",
    ),
    *(
        "2, 7, 13",
        "(2,7,13)",
        "2x7x13",
        "2×7×13",
        "torch.Size([2, 7, 13])",
        "()",
        "[]",
        "2, 7",
        "2.7",
        "-2",
        "{2}",
    ),
    *("x" * 200, "x" * 201, "9" * 12, "9" * 13, "é" * 300, "1 2", "1,04", "1,0485,76", "5 %%", "%", "tokens"),
]

GRADE = """async ([key, answers]) => {
  const { grade } = await import("/grade.js");
  const tried = (given) => { try { return grade(key, given); } catch (error) { return error.message; } };
  return answers.map(tried);
}"""


def answers_of(question):
    if not (question.options or question.items):
        return TYPED
    known = names(question)
    draw = random.Random(5)
    lists = [draw.sample(known, draw.randint(0, len(known))) for _ in range(60)]
    return [*lists, [*known], [*known, known[0]], ["zzzzzz"], known[:3], "", known[0]]


def by_python(key, given):
    try:
        return grade_by_key(key, given).to_dict()
    except NotAnAnswer as error:
        return str(error)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.kind)
def test_the_same_answers_get_the_same_results(chromium, question):
    key = answer_key(question, None, lambda text: f"<p>{text}</p>")
    answers = answers_of(question)
    with modules(chromium) as page:
        found = page.evaluate(GRADE, [key, answers])
    for given, result in zip(answers, found, strict=True):
        assert result == by_python(key, given), given


TYPE = """async ([name, texts]) => {
  const typed = await import("/answers-text.js");
  return texts.map((text) => { try { return typed[name](text); } catch { return null; } });
}"""


@pytest.mark.parametrize("read", [words, number, shape], ids=lambda read: read.__name__)
def test_drawn_texts_are_read_alike(chromium, read):
    draw = random.Random(11)
    letters = "0123456789,.'_ +-−*/^x×eE%()[]⁻⁰⁵aäßİ∞√'’ theΣς𝑨\u00a0\t\u0085\x1c\ufeff\u2007\u0663"
    texts = ["".join(draw.choices(letters, k=draw.randint(0, 12))) for _ in range(3000)]
    with modules(chromium) as page:
        found = page.evaluate(TYPE, [read.__name__, texts])
    for text, result in zip(texts, found, strict=True):
        try:
            wanted = read(text)
        except NotAnAnswer:
            wanted = None
        if isinstance(wanted, float):
            assert result == pytest.approx(wanted, rel=1e-12), repr(text)
        else:
            assert result == wanted, repr(text)


HOSTILE = """
<p onclick="window.hit = 1">text<script>window.hit = 2</script><img src="x" onerror="window.hit = 3">
<a href="javascript:window.hit=4">a</a><a href="https://example.org/" rel="noreferrer">b</a>
<a href="../first/#x">c</a><iframe src="https://example.org"></iframe><style>p { color: red }</style>
<svg><script>window.hit = 5</script></svg><math display="block"><mi mathvariant="normal">x</mi>
<annotation-xml encoding="text/html"><b>n</b></annotation-xml></math>
<form action="https://example.org"><input name="n"></form><b style="color:red" class="k">bold</b></p>
"""


def test_html_that_is_brought_in_is_text_and_formulas_alone(chromium):
    with modules(chromium) as page:
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        found = page.evaluate(
            """async (html) => {
              const { safe } = await import("/safe.js");
              const box = document.createElement("div");
              document.body.append(box);
              box.append(safe(html));
              for (const link of box.querySelectorAll("a")) if (!link.href) link.click();
              box.querySelector("p").click();
              await new Promise((done) => setTimeout(done, 200));
              return {
                hit: window.hit ?? null,
                html: box.innerHTML,
                math: box.querySelector("math mi").namespaceURI,
                links: [...box.querySelectorAll("a")].map((link) => link.getAttribute("href")),
              };
            }""",
            HOSTILE,
        )
    assert found["hit"] is None
    assert found["math"] == "http://www.w3.org/1998/Math/MathML"
    assert found["links"] == [None, "https://example.org/", "../first/#x"]
    for forbidden in ("<script", "<img", "<svg", "<iframe", "<style", "<form", "<input", " on", "style="):
        assert forbidden not in found["html"].lower()
    assert '<b class="k">bold</b>' in found["html"]
    assert [url for url in requests if "example.org" in url] == []

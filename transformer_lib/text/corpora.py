"""The corpora of data/: each comes in three splits, and each file is compared with its checksum when it is read.

Met in chapter 00, used from chapter 01 on; data/README.md tells where every text comes from.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import NamedTuple

from .. import paths

__all__ = ["Corpus", "Pair", "load_corpus"]

FILES = {
    "shakespeare": "shakespeare/{}.txt",
    "moby-dick": "moby-dick/{}.txt",
    "bible": "bible/{}.txt",
    "tatoeba": "tatoeba/{}.tsv",
    "tatoeba-ja": "tatoeba/{}.tsv",
    "tatoeba-en": "tatoeba/{}.tsv",
}


class Pair(NamedTuple):
    """A Japanese sentence and its English translation.

    `id` is the Japanese sentence's number at Tatoeba, where https://tatoeba.org/sentences/show/ID names its authors and
    links the translation; `tokens` are the Japanese sentence's words (joined without blanks they give `japanese`).
    """

    id: int
    japanese: str
    english: str
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """A text in three parts that share no passage: fit on `train`, choose on `validation`, report on `test`.

    data/README.md says how each was split. Each part is a str, or a tuple of `Pair` for the corpus "tatoeba".
    """

    name: str
    train: str | tuple[Pair, ...]
    validation: str | tuple[Pair, ...]
    test: str | tuple[Pair, ...]


def load_corpus(name: str) -> Corpus:
    """A corpus by its name.

    - "shakespeare", "moby-dick", "bible": the running text (plays, chapters, one verse a line);
    - "tatoeba": pairs of a Japanese and an English sentence;
    - "tatoeba-ja", "tatoeba-en": one side of these pairs, a sentence a line, words and punctuation separated by blanks.

    Raises ValueError for an unknown name, FileNotFoundError where data/ or a file is missing, and ValueError for a file
    that is not, byte for byte, the committed one.
    """
    if name not in FILES:
        raise ValueError(f"expected the name of a corpus, one of {', '.join(FILES)}; got {name!r}")
    splits = {split: _read(FILES[name].format(split)) for split in ("train", "validation", "test")}
    if name.startswith("tatoeba"):
        pairs = {split: tuple(map(_pair, text.splitlines())) for split, text in splits.items()}
        if name == "tatoeba":
            return Corpus(name, **pairs)
        line = _japanese_line if name == "tatoeba-ja" else _english_line
        splits = {split: "".join(line(pair) + "\n" for pair in pairs[split]) for split in pairs}
    return Corpus(name, **splits)


def _pair(line: str) -> Pair:
    number, japanese, english, tokens = line.split("\t")
    return Pair(int(number), japanese, english, tuple(tokens.split(" ")))


def _japanese_line(pair: Pair) -> str:
    return " ".join(pair.tokens)


def _english_line(pair: Pair) -> str:
    return " ".join(re.findall(r"\w+(?:['.,:-]\w+)*|\S", pair.english))


def _read(name: str) -> str:
    """One file below data/ as text, after its bytes were compared with data/checksums.json."""
    if not (paths.DATA / "checksums.json").is_file():
        raise FileNotFoundError(
            f"expected the corpora in {paths.DATA}, found none: the library reads them from a clone of the repository, "
            "so install it there with `pip install -e .`"
        )
    expected = json.loads((paths.DATA / "checksums.json").read_text(encoding="utf-8"))[name]
    mend = f"restore it with `git checkout -- data/{name}` or `make data`"
    try:
        raw = (paths.DATA / name).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"expected the file data/{name}, found none: {mend}") from None
    if hashlib.sha256(raw).hexdigest() != expected["sha256"]:
        if b"\r\n" in raw:
            what = "its line ends were turned into CRLF"
        elif len(raw) != expected["bytes"]:
            what = f"expected {expected['bytes']} bytes, came {len(raw)}"
        else:
            what = f"expected sha256 {expected['sha256'][:16]}..., came {hashlib.sha256(raw).hexdigest()[:16]}..."
        raise ValueError(f"data/{name} is not the committed file: {what}; {mend}")
    return raw.decode("utf-8")

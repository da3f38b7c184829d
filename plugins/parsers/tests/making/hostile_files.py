"""A thousand files that mean harm or are broken, the same ones in each run."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator

from made_files import FILES, archive, pdf, xlsx

__all__ = ["HOSTILE", "MUTATIONS", "hostile_files", "mutated_files"]

ZEROS = bytes(1 << 20)


def _zip_bomb(name: str, mebibytes: int) -> bytes:
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
        target.open(name, "w", force_zip64=True) as file,
    ):
        for _ in range(mebibytes):
            file.write(ZEROS)
    return content.getvalue()


def _lying_zip(kind: str) -> bytes:
    """An archive whose directory says that each member is a byte long."""
    data = bytearray(FILES[kind]())
    at = 0
    while (at := data.find(b"PK\x01\x02", at)) >= 0:
        data[at + 24 : at + 28] = struct.pack("<I", 1)
        at += 4
    return bytes(data)


def _with_member(kind: str, member: str, text: str) -> bytes:
    """An office document of which one member is another one."""
    with zipfile.ZipFile(io.BytesIO(FILES[kind]())) as source:
        members = {name: source.read(name) for name in source.namelist()}
    members[member] = text.encode()
    return archive(members, first="mimetype")


LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "lol">'
    + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    + "]><a>&l9;</a>"
)
QUADRATIC = '<!DOCTYPE a [<!ENTITY b "' + "x" * 50_000 + '">]><a>' + "&b;" * 50_000 + "</a>"
EXTERNAL = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
REMOTE = '<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1:9/x.dtd"> %b;]><a/>'


def _xml_nested(levels: int) -> bytes:
    return b"<a>" * levels + b"</a>" * levels


def _yaml_bomb() -> bytes:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join(lines).encode()


def _yaml_merges() -> bytes:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 10)]
    return "\n".join(lines).encode()


def _png(width: int, height: int, data: bytes, more: bytes = b"") -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _packed(first: bytes, mebibytes: int) -> bytes:
    packer = zlib.compressobj(9)
    return (
        packer.compress(first) + b"".join(packer.compress(ZEROS) for _ in range(mebibytes)) + packer.flush()
    )


def _png_text_bomb() -> bytes:
    packed = b"Comment\0\0" + _packed(b"", 100)
    chunk = (
        struct.pack(">I", len(packed)) + b"zTXt" + packed + struct.pack(">I", zlib.crc32(b"zTXt" + packed))
    )
    return _png(8, 8, zlib.compress(bytes(200)), chunk)


def _tiff_loop() -> bytes:
    """A directory whose next directory is itself, as are the directories of EXIF and of positions."""
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, 8) for tag in (256, 257, 0x8769, 0x8825))
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 4) + entries + struct.pack("<I", 8)


def _tiff_huge_tag() -> bytes:
    return b"II*\0" + struct.pack("<IH", 8, 1) + struct.pack("<HHII", 270, 2, 0xFFFFFFFF, 8) + bytes(4)


def _pdf_changed(old: bytes, new: bytes) -> bytes:
    data = pdf(["one", "two"], "/Title (x)")
    assert old in data
    return data.replace(old, new)


def _pdf_flate_bomb() -> bytes:
    packed = zlib.compress(_packed(b"BT /F1 1 Tf (x) Tj ET ", 200), 9)
    stream = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(packed) + packed
    data = pdf(["x"])
    start = data.index(b"<< /Length")
    return data[:start] + stream + data[data.index(b"\nendstream") :]


def _mp4_nested(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = struct.pack(">I", len(data) + 8) + b"moov" + data
    return struct.pack(">I", 16) + b"ftypisom\0\0\0\0" + data


def _mail_nested(levels: int) -> bytes:
    parts = [b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(levels)]
    return b"Subject: deep\n" + b"".join(parts) + b"\nend\n"


def _mail_in_mail(levels: int) -> bytes:
    return b"Subject: x\nContent-Type: message/rfc822\n\n" * levels + b"Subject: end\n\nend\n"


def _far_cell() -> bytes:
    return xlsx(
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    )


def _repeated_cells() -> bytes:
    cell = (
        '<table:table-cell table:number-columns-repeated="16384" office:value-type="float" office:value="1"/>'
    )
    with zipfile.ZipFile(io.BytesIO(FILES["books.ods"]())) as source:
        text = source.read("content.xml").decode()
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row></table:table>'
    return _with_member("books.ods", "content.xml", text.replace("</table:table>", row))


def _odf_spaces() -> bytes:
    with zipfile.ZipFile(io.BytesIO(FILES["letter.odt"]())) as source:
        text = source.read("content.xml").decode()
    return _with_member("letter.odt", "content.xml", text.replace("come", '<text:s text:c="2000000000"/>'))


HOSTILE: dict[str, Callable[[], bytes]] = {
    "deep.json": lambda: b"[" * 1_000_000,
    "deep-closed.json": lambda: b"[" * 100_000 + b"]" * 100_000,
    "deep-objects.json": lambda: b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "wide.json": lambda: b"[" + b"0," * 2_000_000 + b"0]",
    "empty-lists.json": lambda: b"[" + b"[]," * 1_000_000 + b"[]]",
    "digits.json": lambda: b"1" * 1_000_000,
    "exponent.json": lambda: b"[1e999999999, -1e400]",
    "surrogates.json": lambda: b'{"\\ud800": "\\udfff"}',
    "nul.json": lambda: b"\0" * 100_000,
    "same-keys.json": lambda: b"{" + b'"a":1,' * 200_000 + b'"a":1}',
    "wide.jsonl": lambda: b"{}\n" * 1_000_000,
    "laughs.yaml": _yaml_bomb,
    "merges.yaml": _yaml_merges,
    "itself.yaml": lambda: b"a: &a [*a]",
    "itself-2.yaml": lambda: b"&a {b: &b {c: *a}}",
    "deep.yaml": lambda: b"[" * 200_000,
    "deep-mappings.yaml": lambda: b"{a: " * 50_000,
    "deep-indented.yaml": lambda: "".join(f"{' ' * n}a:\n" for n in range(3_000)).encode(),
    "deep-dashes.yaml": lambda: b"- " * 50_000 + b"x",
    "python.yaml": lambda: b"!!python/object/apply:os.system ['exit 3']",
    "python-2.yaml": lambda: b"a: !!python/object/new:subprocess.Popen [['true']]",
    "many.yaml": lambda: b"--- a\n" * 300_000,
    "digits.yaml": lambda: b"a: " + b"9" * 200_000,
    "sixties.yaml": lambda: b"a: " + b"1:" * 20_000 + b"1",
    "keys.yaml": lambda: b"? [a, b]\n: c\n? {d: e}\n: f\n",
    "date.yaml": lambda: b"a: 9999-99-99\nb: 2024-02-31",
    "deep.toml": lambda: b"a = " + b"[" * 100_000,
    "dotted.toml": lambda: b".".join([b"a"] * 20_000) + b" = 1",
    "tables.toml": lambda: b"\n".join(b"[a.b%d.c]" % n for n in range(30_000)),
    "columns.csv": lambda: b"a," * 1_000_000,
    "columns-rows.csv": lambda: (b"," * 300_000 + b"x\n") * 3,
    "rows.csv": lambda: b"a,b\n" * 1_000_000,
    "quotes.csv": lambda: b'a,b\n"' + b'""' * 2_000_000,
    "open-quote.csv": lambda: b'a,b\n"' + b"x,\n" * 1_000_000,
    "same-names.csv": lambda: b"a," * 50_000 + b"\n1,2\n",
    "one-line.csv": lambda: b"x" * 12_000_000,
    "regex.csv": lambda: b'"' * 50_001 + b"," * 50_000 + b'\n"',
    "fences.md": lambda: b"```\n~~~\n" * 200_000,
    "brackets.md": lambda: b"[" * 2_000_000,
    "hashes.md": lambda: b"#" * 2_000_000 + b"\n" + b"# a\n" * 300_000,
    "underlines.md": lambda: b"a\n=\n" * 300_000,
    "matter.md": lambda: b"---\n" + _yaml_bomb() + b"\n---\ntext",
    "open-matter.md": lambda: b"---\n" * 300_000,
    "deep.html": lambda: b"<div>" * 200_000,
    "deep-inline.html": lambda: b"<b><i>" * 100_000 + b"x",
    "attributes.html": lambda: b"<a " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b">",
    "entities.html": lambda: b"&amp;&#x110000;&#0;" * 200_000,
    "tables.html": lambda: b"<table><tr><td>" * 30_000,
    "comment.html": lambda: b"<!--" * 500_000,
    "laughs.xml": LAUGHS.encode,
    "quadratic.xml": QUADRATIC.encode,
    "external.xml": EXTERNAL.encode,
    "remote.xml": REMOTE.encode,
    "deep.xml": lambda: _xml_nested(200_000),
    "wide.xml": lambda: b"<a>" + b"<b/>" * 500_000 + b"</a>",
    "attributes.xml": lambda: b"<a " + b" ".join(b'a%d="1"' % n for n in range(200_000)) + b"/>",
    "laughs.svg": LAUGHS.replace("<a>", "<svg>").replace("</a>", "</svg>").encode,
    "laughs.docx": lambda: _with_member("report.docx", "word/document.xml", LAUGHS),
    "external.docx": lambda: _with_member("report.docx", "word/document.xml", EXTERNAL),
    "deep.docx": lambda: _with_member("report.docx", "word/document.xml", _xml_nested(50_000).decode()),
    "laughs.pptx": lambda: _with_member("talk.pptx", "ppt/presentation.xml", LAUGHS),
    "laughs.odt": lambda: _with_member("letter.odt", "content.xml", LAUGHS),
    "external.odt": lambda: _with_member("letter.odt", "content.xml", EXTERNAL),
    "spaces.odt": _odf_spaces,
    "laughs.xlsx": lambda: _with_member("books.xlsx", "xl/worksheets/sheet1.xml", LAUGHS),
    "bomb.docx": lambda: _zip_bomb("word/document.xml", 260),
    "bomb.xlsx": lambda: _zip_bomb("xl/workbook.xml", 260),
    "bomb.odt": lambda: _zip_bomb("content.xml", 260),
    "lying.docx": lambda: _lying_zip("report.docx"),
    "lying.xlsx": lambda: _lying_zip("books.xlsx"),
    "lying.odt": lambda: _lying_zip("letter.odt"),
    "members.docx": lambda: archive({f"{n}": "" for n in range(20_000)}),
    "absent.docx": lambda: archive({"a": ""}),
    "absent.pptx": lambda: archive({"[Content_Types].xml": "<Types/>"}),
    "far.xlsx": _far_cell,
    "repeated.ods": _repeated_cells,
    "loop.pdf": lambda: _pdf_changed(b"/Kids [4 0 R 6 0 R]", b"/Kids [2 0 R 2 0 R]"),
    "count.pdf": lambda: _pdf_changed(b"/Count 2", b"/Count 2000000000"),
    "length.pdf": lambda: _pdf_changed(b"/Length", b"/Length 99999999999 /Old"),
    "font-loop.pdf": lambda: _pdf_changed(
        b"/BaseFont /Helvetica", b"/BaseFont /Helvetica /DescendantFonts [3 0 R]"
    ),
    "deep.pdf": lambda: _pdf_changed(b"/Title (x)", b"/Title " + b"[" * 100_000),
    "flate.pdf": _pdf_flate_bomb,
    "huge.png": lambda: _png(0x7FFFFFFF, 0x7FFFFFFF, zlib.compress(b"")),
    "pixels.png": lambda: _png(100_000, 100_000, zlib.compress(ZEROS)),
    "text.png": _png_text_bomb,
    "loop.tiff": _tiff_loop,
    "tag.tiff": _tiff_huge_tag,
    "frames.gif": lambda: FILES["a.gif"]()[:-1] * 2_000,
    "nested.mp4": lambda: _mp4_nested(5_000),
    "box.mp4": lambda: struct.pack(">I", 16) + b"ftypisom\0\0\0\0" + b"\0\0\0\1moov" + b"\xff" * 8,
    "zero-boxes.mp4": lambda: struct.pack(">I", 16) + b"ftypisom\0\0\0\0" + bytes(1_000_000),
    "huge.mp3": lambda: b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + b"TIT2\x7f\x7f\x7f\x7f\0\0\x03x",
    "syncs.mp3": lambda: b"\xff\xfb" * 1_000_000,
    "riff.wav": lambda: b"RIFF\xff\xff\xff\xffWAVE" + b"fmt \0\0\0\0" * 100_000,
    "nested.eml": lambda: _mail_nested(3_000),
    "in-mail.eml": lambda: _mail_in_mail(3_000),
    "headers.eml": lambda: b"X-A: b\n" * 200_000 + b"\ntext",
    "words.eml": lambda: b"Subject: " + b"=?utf-8?b?" * 20_000 + b"\n\ntext",
    "addresses.eml": lambda: b"To: " + b"<a@b>, (" * 50_000 + b"\n\ntext",
    "parts.eml": lambda: b'Content-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n\nx\n" * 50_000,
    "charset.eml": lambda: b"Content-Type: text/plain; charset=unicode_escape\n\n\\ud800\\x41",
    "deep.rtf": lambda: rb"{\rtf1 " + b"{" * 300_000,
    "words.rtf": lambda: rb"{\rtf1 " + rb"\a" * 300_000 + b"}",
    "bin.rtf": lambda: rb"{\rtf1 \bin99999999999 x \u99999999 ? \'zz}",
    "nul.txt": lambda: b"text\0text",
    "random.txt": lambda: random.Random(1).randbytes(200_000),
    "utf16.txt": lambda: b"\xff\xfe" + b"\x00\xd8" * 100_000,
    "long.txt": lambda: b"x" * 12_000_000,
    "combining.txt": lambda: "a\u0301".encode() * 1_000_000,
}
"""Files that somebody thought about, by name."""

MUTATIONS = 36
"""How many broken ones are made of each good file."""


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(1, len(data)) :]


def _flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 3, 30))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    length = chance.choice((2, 4, 64))
    data[at : at + length] = chance.choice((bytes(length), b"\xff" * length, chance.randbytes(length)))


def _remove(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    del data[at : at + chance.choice((1, 7, 200))]


def _repeat(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    part = data[at : at + chance.choice((4, 100, 2_000))]
    data[at:at] = part * chance.choice((1, 10, 200))


def _scramble(data: bytearray, chance: random.Random) -> None:
    kept = chance.choice((0, 4, 64))
    data[kept:] = chance.randbytes(max(len(data) - kept, 16))


_WAYS = (_cut, _flip, _overwrite, _remove, _repeat, _scramble)


def mutated_files(every: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yields each good file, broken in different ways; of which every so manieth."""
    for number, (name, make) in enumerate(FILES.items()):
        good = make()
        for mutation in range(MUTATIONS):
            if (number + mutation) % every:
                continue
            chance = random.Random(f"{name} {mutation}")
            data = bytearray(good)
            _WAYS[mutation % len(_WAYS)](data, chance)
            if mutation % 4 == 3 and data:
                _WAYS[chance.randrange(len(_WAYS) - 1)](data, chance)
            yield f"{mutation}-{name}", bytes(data)


def hostile_files(every: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yields (name, content): what somebody thought about, and what chance broke."""
    for number, (name, make) in enumerate(HOSTILE.items()):
        if not number % every or every == 1:
            yield name, make()
    yield from mutated_files(every)

"""Makes a WebM video out of still pictures: just enough EBML for a player that seeks.

Each picture is a lossy WebP image, whose VP8 bit stream is a key frame of a VP8 video. The frames are
written into one cluster a second, with an index of the clusters (cues), so that a player which jumps
asks for the bytes of that second.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence


def vp8_frame(webp: bytes) -> bytes:
    """Returns the VP8 bit stream of a lossy WebP image (a RIFF file)."""
    assert webp[:4] == b"RIFF", "not a RIFF file"
    assert webp[8:12] == b"WEBP", "not a WebP image"
    position = 12
    while position < len(webp):
        name, size = webp[position : position + 4], struct.unpack_from("<I", webp, position + 4)[0]
        if name == b"VP8 ":
            return webp[position + 8 : position + 8 + size]
        position += 8 + size + size % 2
    raise ValueError("not a lossy WebP image")


def element(identity: int, content: bytes) -> bytes:
    """Returns an EBML element with a size field of eight bytes."""
    return _bytes(identity) + struct.pack(">Q", len(content) | 1 << 56) + content


def number(identity: int, value: int) -> bytes:
    """Returns an EBML element that holds an unsigned integer of eight bytes."""
    return element(identity, struct.pack(">Q", value))


def make_webm(frames: Sequence[bytes], *, frames_per_second: int, width: int, height: int) -> bytes:
    """Returns a WebM file with an index.

    Args:
        frames: VP8 key frames, in the order in which they are shown.
        frames_per_second: a divisor of 1000.
        width: pixels of every frame.
        height: pixels of every frame.
    """
    milliseconds = 1000 // frames_per_second
    head = element(
        0x1A45DFA3,
        number(0x4286, 1)
        + number(0x42F7, 1)
        + number(0x42F2, 4)
        + number(0x42F3, 8)
        + element(0x4282, b"webm")
        + number(0x4287, 2)
        + number(0x4285, 2),
    )
    duration = struct.pack(">d", float(len(frames) * milliseconds))
    information = element(
        0x1549A966,
        number(0x2AD7B1, 1_000_000)
        + element(0x4489, duration)
        + element(0x4D80, b"test")
        + element(0x5741, b"test"),
    )
    video = element(0xE0, number(0xB0, width) + number(0xBA, height))
    track = number(0xD7, 1) + number(0x73C5, 1) + number(0x83, 1) + element(0x86, b"V_VP8") + video
    tracks = element(0x1654AE6B, element(0xAE, track))
    clusters = []
    for start in range(0, len(frames), frames_per_second):
        blocks = b"".join(
            element(0xA3, b"\x81" + struct.pack(">h", offset * milliseconds) + b"\x80" + frame)
            for offset, frame in enumerate(frames[start : start + frames_per_second])
        )
        clusters.append(element(0x1F43B675, number(0xE7, start * milliseconds) + blocks))
    prefix = len(information) + len(tracks) + len(_cues([0] * len(clusters)))
    positions, position = [], prefix
    for cluster in clusters:
        positions.append(position)
        position += len(cluster)
    return head + element(0x18538067, information + tracks + _cues(positions) + b"".join(clusters))


def _cues(positions: Sequence[int]) -> bytes:
    points = b"".join(
        element(0xBB, number(0xB3, second * 1000) + element(0xB7, number(0xF7, 1) + number(0xF1, position)))
        for second, position in enumerate(positions)
    )
    return element(0x1C53BB6B, points)


def _bytes(identity: int) -> bytes:
    return identity.to_bytes((identity.bit_length() + 7) // 8, "big")

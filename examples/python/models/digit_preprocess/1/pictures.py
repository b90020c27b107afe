"""Reads pictures with NumPy and the standard library alone: PGM and PPM files, and PNG files with 8 bits a channel.

A model for photos imports a library here, such as Pillow or OpenCV. This one runs wherever NumPy does.
"""

import re
import struct
import zlib

import numpy as np

MAX_PIXELS = 1 << 24
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # gray, colors, gray with alpha, colors with alpha


class PictureError(ValueError):
    """The bytes are no picture that this module reads."""


def read_gray(file):
    """Returns the pixels of a file as FP32 [height, width], 0 to 255."""
    if file.startswith(b"\x89PNG\r\n\x1a\n"):
        pixels = _png(file)
    elif file[:2] in (b"P2", b"P3", b"P5", b"P6"):
        pixels = _netpbm(file)
    else:
        raise PictureError("begins with %r (expected: a PNG, PGM or PPM file)" % bytes(file[:4]))
    pixels = pixels.astype(np.float32)
    if pixels.shape[2] in (2, 4):  # transparent pixels on black, the color of paper here
        pixels = pixels[:, :, :-1] * (pixels[:, :, -1:] / 255)
    return pixels.mean(axis=2)


def _checked(width, height):
    if not 0 < width * height <= MAX_PIXELS:
        raise PictureError("%d x %d pixels (expected: 1 to %d in all)" % (width, height, MAX_PIXELS))


def _netpbm(file):
    header = re.match(rb"P[2356](?:\s+|#[^\n]*\n)+(\d{1,9})(?:\s+|#[^\n]*\n)+(\d{1,9})(?:\s+|#[^\n]*\n)+(\d{1,5})\s", file)
    if header is None:
        raise PictureError("the header is broken (expected: width, height and maximum)")
    width, height, largest = map(int, header.groups())
    _checked(width, height)
    if not 0 < largest < 256:
        raise PictureError("maximum %d (expected: 1 to 255)" % largest)
    channels = 3 if file[:2] in (b"P3", b"P6") else 1
    try:
        if file[:2] in (b"P2", b"P3"):
            values = np.array(file[header.end():].split(), dtype=np.uint8)
        else:
            values = np.frombuffer(file, np.uint8, offset=header.end())
        return values.reshape(height, width, channels) * (255.0 / largest)
    except (ValueError, OverflowError) as error:
        raise PictureError("%s" % error) from error


def _png(file):
    position, data, form = 8, b"", None
    while position + 12 <= len(file):
        length, kind = struct.unpack_from(">I4s", file, position)
        content = file[position + 8:position + 8 + length]
        if kind == b"IHDR" and len(content) == 13:
            form = struct.unpack(">IIBBBBB", content)
        elif kind == b"IDAT":
            data += content
        position += 12 + length
    if form is None or form[2] != 8 or form[3] not in _CHANNELS or form[6] != 0:
        raise PictureError("this kind of PNG is not read (expected: 8 bits a channel, no palette, not interlaced)")
    width, height, channels = form[0], form[1], _CHANNELS[form[3]]
    _checked(width, height)
    size = height * (1 + width * channels)
    try:
        # A limit for what comes out: a file of a few bytes may grow to gigabytes.
        lines = zlib.decompressobj().decompress(data, size)
    except zlib.error as error:
        raise PictureError("%s" % error) from error
    if len(lines) != size:
        raise PictureError("%d bytes of pixels (expected: %d)" % (len(lines), size))
    lines = np.frombuffer(lines, np.uint8).reshape(height, 1 + width * channels)
    return _unfiltered(lines[:, 0], lines[:, 1:].reshape(height, width, channels))


def _unfiltered(filters, lines):
    """Adds to each pixel what its filter left out: left, above, their mean, or Paeth's choice."""
    pixels = np.zeros((lines.shape[0] + 1, lines.shape[1] + 1, lines.shape[2]), np.int32)
    for y, kind in enumerate(filters):
        if kind > 4:
            raise PictureError("filter %d of line %d (expected: 0 to 4)" % (kind, y))
        if kind in (0, 2):
            pixels[y + 1, 1:] = (lines[y] + (pixels[y, 1:] if kind == 2 else 0)) & 255
            continue
        for x in range(lines.shape[1]):
            left, above, corner = pixels[y + 1, x], pixels[y, x + 1], pixels[y, x]
            if kind == 1:
                added = left
            elif kind == 3:
                added = (left + above) >> 1
            else:
                away = np.abs([above - corner, left - corner, left + above - 2 * corner])
                added = np.choose(np.argmin(away, axis=0), [left, above, corner])
            pixels[y + 1, x + 1] = (lines[y, x] + added) & 255
    return pixels[1:, 1:]

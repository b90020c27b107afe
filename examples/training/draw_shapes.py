"""Draws pictures of one shape on a background, with the class of each pixel: the data of `train_shapes.py`.

A picture has one of ten shapes, filled in one color and outlined in another, at a random place, size and angle, on a
background of one color, a gradient or stripes. Everything follows from the generator of random numbers that is passed.
"""

import io
import math

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ["circle", "ring", "triangle", "square", "hexagon", "star", "heart", "cross", "crescent", "arrow"]
BACKGROUND, SHAPE, OUTLINE = 0, 1, 2
SUPERSAMPLING = 2
MIN_CONTRAST = 110  # least distance of two colors of a picture, of 441 for black and white


def circle(radius=1.0, begin=0.0, end=2 * math.pi, at=(0.0, 0.0)):
    angles = np.linspace(begin, end, 48)
    return np.stack([at[0] + radius * np.cos(angles), at[1] + radius * np.sin(angles)], axis=1)


def regular(corners, inner=None):
    """Returns a regular polygon, or a star if `inner` is the radius of the corners between."""
    count = corners if inner is None else 2 * corners
    angles = np.arange(count) * 2 * math.pi / count - math.pi / 2
    radii = np.where(np.arange(count) % 2 == 0, 1.0, 1.0 if inner is None else inner)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)


def heart():
    t = np.linspace(0, 2 * math.pi, 64, endpoint=False)
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([x, -y - 2], axis=1) / 15


def contours(name):
    """Returns the outer contour of a shape of radius 1, and that of its hole if it has one."""
    if name == "circle":
        return [circle()]
    if name == "ring":
        return [circle(), circle(0.5)]
    if name == "triangle":
        return [regular(3)]
    if name == "square":
        return [np.array([(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)])]
    if name == "hexagon":
        return [regular(6)]
    if name == "star":
        return [regular(5, 0.45)]
    if name == "heart":
        return [heart()]
    if name == "cross":
        a, b = 0.34, 1.0
        return [np.array([(-a, -b), (a, -b), (a, -a), (b, -a), (b, a), (a, a), (a, b), (-a, b), (-a, a), (-b, a), (-b, -a), (-a, -a)])]
    if name == "crescent":
        outer = circle(1.0, 0.9, 2 * math.pi - 0.9)
        inner = circle(0.85, 2 * math.pi - 1.19, 1.19, at=(0.31, 0.0))
        return [np.concatenate([outer, inner])]
    if name == "arrow":
        return [np.array([(-1.0, -0.3), (0.1, -0.3), (0.1, -0.8), (1.0, 0.0), (0.1, 0.8), (0.1, 0.3), (-1.0, 0.3)])]
    raise ValueError(name)


def different_color(random, others):
    while True:
        color = random.integers(0, 256, 3)
        if all(np.linalg.norm(color - other) >= MIN_CONTRAST for other in others):
            return color


def background(random, width, height, color):
    """Returns the pixels of a background: plain, a gradient or stripes."""
    pixels = np.broadcast_to(color.astype(np.float32), (height, width, 3)).copy()
    kind = random.integers(3)
    other = np.clip(color + random.integers(-40, 41, 3), 0, 255)
    if kind == 1:
        steps = np.linspace(0, 1, height)[:, None, None] if random.integers(2) else np.linspace(0, 1, width)[None, :, None]
        pixels += (other - color) * steps
    elif kind == 2:
        period = random.integers(width // 12, width // 4)
        rows, columns = np.mgrid[0:height, 0:width]
        stripes = ((columns + rows * random.integers(-1, 2)) // period) % 2
        pixels[stripes == 1] = other
    return pixels


def draw(random, name, side_range=(96, 320)):
    """Returns an RGB picture with the shape, and the class of each pixel as a picture of the same size."""
    side = random.integers(*side_range)
    width, height = int(side * random.uniform(0.9, 1.1)), int(side * random.uniform(0.9, 1.1))
    w, h = width * SUPERSAMPLING, height * SUPERSAMPLING
    radius = random.uniform(0.22, 0.42) * min(w, h)
    center = np.array([random.uniform(radius * 1.1, w - radius * 1.1), random.uniform(radius * 1.1, h - radius * 1.1)])
    angle = random.uniform(-math.pi, math.pi) if name in ("star", "cross", "arrow", "square") else random.uniform(-0.5, 0.5)
    turn = np.array([(math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))])
    stroke = max(4, round(random.uniform(0.022, 0.036) * min(w, h)))
    classes = Image.new("L", (w, h), BACKGROUND)
    pen = ImageDraw.Draw(classes)
    turned = [[tuple(point) for point in contour * radius @ turn + center] for contour in contours(name)]
    for contour, content in zip(turned, (SHAPE, BACKGROUND)):
        pen.polygon(contour, fill=content)
    for contour in turned:
        pen.line([*contour, contour[0], contour[1]], fill=OUTLINE, width=stroke, joint="curve")
    ground = random.integers(0, 256, 3)
    fill = different_color(random, [ground])
    line = different_color(random, [ground, fill])
    map_of_classes = np.asarray(classes)
    pixels = background(random, w, h, ground)
    pixels[map_of_classes == SHAPE] = fill
    pixels[map_of_classes == OUTLINE] = line
    picture = Image.fromarray(np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)).resize((width, height), Image.Resampling.BOX)
    return picture, classes


def encoded(picture, format_name, random):
    """Returns the picture as the bytes of a PNG or JPEG file."""
    file = io.BytesIO()
    if format_name == "png":
        picture.save(file, "PNG", optimize=True)
    else:
        picture.save(file, "JPEG", quality=int(random.integers(75, 95)), progressive=bool(random.integers(2)))
    return file.getvalue()

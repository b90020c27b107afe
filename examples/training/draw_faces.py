"""Draws pictures of faces: the data of `train_faces.py`. Nobody is depicted.

A face has a color of skin, hair, eyes and brows, light from one side, and a mouth that smiles, is straight or is sad.
Everything follows from the generator of random numbers that is passed.
"""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

EXPRESSIONS = ["smiling", "neutral", "sad"]
SKINS = [(241, 205, 176), (224, 172, 137), (198, 134, 96), (141, 85, 54), (255, 219, 190), (172, 110, 75)]
HAIRS = [(40, 26, 18), (90, 56, 30), (150, 110, 60), (20, 20, 22), (120, 60, 30), (170, 165, 160)]
SUPERSAMPLING = 3


def shade(color, factor):
    return tuple(int(max(0, min(255, c * factor))) for c in color)


def mixed(layer, color, mask, blur):
    """Paints a color onto a layer through a mask with soft edges."""
    layer.paste(Image.new("RGB", layer.size, color), (0, 0), mask.filter(ImageFilter.GaussianBlur(blur)))


def draw_face(random, canvas, center, height, expression):
    """Draws a face onto a picture; returns its box: left, top, right, bottom."""
    s = SUPERSAMPLING
    unit = height * s / 2.0  # half of the face's height
    side = int(unit * 4)
    layer = canvas.crop(tuple(int(v) for v in (center[0] - side / s / 2, center[1] - side / s / 2, center[0] + side / s / 2, center[1] + side / s / 2)))
    layer = layer.resize((side, side), Image.Resampling.BICUBIC)
    middle = side / 2
    skin = SKINS[random.integers(len(SKINS))]
    hair = HAIRS[random.integers(len(HAIRS))]
    shirt = tuple(int(v) for v in random.integers(30, 220, 3))
    wide = random.uniform(0.72, 0.8)
    tilt = random.uniform(-0.1, 0.1)
    light = 1 if random.integers(2) else -1

    def at(x, y):
        return (middle + unit * (x * math.cos(tilt) - y * math.sin(tilt)), middle + unit * (x * math.sin(tilt) + y * math.cos(tilt)))

    def ellipse(x, y, a, b, begin=0.0, end=2 * math.pi):
        return [at(x + a * math.cos(t), y + b * math.sin(t)) for t in np.linspace(begin, end, 40)]

    def mask(*polygons):
        image = Image.new("L", (side, side), 0)
        for polygon in polygons:
            ImageDraw.Draw(image).polygon(polygon, fill=255)
        return image

    def strokes(lines, width):
        image = Image.new("L", (side, side), 0)
        for line in lines:
            ImageDraw.Draw(image).line(line, fill=255, width=max(1, int(width * unit)), joint="curve")
        return image

    soft = unit * 0.012
    # Shoulders, neck, hair behind the head.
    mixed(layer, shirt, mask(ellipse(0, 2.05, 1.5, 0.85)), soft)
    mixed(layer, shade(skin, 0.78), mask([at(-0.34, 0.6), at(0.34, 0.6), at(0.42, 1.4), at(-0.42, 1.4)]), soft * 2)
    mixed(layer, hair, mask(ellipse(0, -0.22, wide * 1.14, 0.98)), soft)
    # Ears and head, narrower at the chin, darker away from the light.
    mixed(layer, shade(skin, 0.85), mask(ellipse(-wide, 0.05, 0.12, 0.2), ellipse(wide, 0.05, 0.12, 0.2)), soft)
    head = [at(wide * math.cos(t) * (1 - 0.22 * max(0.0, math.sin(t)) ** 2), 0.98 * math.sin(t)) for t in np.linspace(0, 2 * math.pi, 60)]
    mixed(layer, skin, mask(head), soft)
    face = mask(head)
    shadow = mask(ellipse(-0.62 * light, 0.15, 0.3, 0.8))
    shadow = Image.composite(shadow.filter(ImageFilter.GaussianBlur(unit * 0.2)), Image.new("L", (side, side), 0), face)
    layer.paste(Image.new("RGB", layer.size, shade(skin, 0.62)), (0, 0), shadow.point(lambda v: int(v * 0.6)))
    mixed(layer, shade(skin, 1.1), mask(ellipse(0.18 * light, -0.45, 0.3, 0.2), ellipse(0.35 * light, 0.2, 0.16, 0.12)).point(lambda v: v // 2), unit * 0.12)
    # Hair above the forehead.
    fringe = Image.new("L", (side, side), 0)
    ImageDraw.Draw(fringe).polygon(ellipse(0, -0.22, wide * 1.12, 0.96), fill=255)
    ImageDraw.Draw(fringe).polygon(ellipse(0.1 * light, 0.32, wide * 1.06, 1.0), fill=0)
    mixed(layer, hair, fringe, soft)
    # Sockets, eyes, brows.
    mixed(layer, shade(skin, 0.7), mask(ellipse(-0.31, -0.12, 0.2, 0.13), ellipse(0.31, -0.12, 0.2, 0.13)).point(lambda v: int(v * 0.6)), unit * 0.05)
    opening = random.uniform(0.06, 0.085)
    iris = [(70, 45, 25), (50, 80, 110), (60, 90, 60)][random.integers(3)]
    for x in (-0.31, 0.31):
        mixed(layer, (238, 234, 228), mask(ellipse(x, -0.1, 0.15, opening)), soft)
        mixed(layer, iris, mask(ellipse(x, -0.1, 0.072, min(0.072, opening))), soft)
        mixed(layer, (15, 12, 10), mask(ellipse(x, -0.1, 0.035, 0.035)), soft)
        mixed(layer, (250, 250, 250), mask(ellipse(x + 0.025, -0.125, 0.016, 0.016)), soft / 2)
        mixed(layer, shade(skin, 0.3), strokes([ellipse(x, -0.09, 0.165, opening + 0.02, math.pi, 2 * math.pi)], 0.035), soft)
    raised = random.uniform(-0.03, 0.03)
    brows = [ellipse(x, -0.2 + raised, 0.2, 0.13, math.pi * 1.15, math.pi * 1.85) for x in (-0.31, 0.31)]
    mixed(layer, shade(hair, 0.8), strokes(brows, 0.06), soft * 1.5)
    # Nose.
    mixed(layer, shade(skin, 0.68), mask([at(0.0, -0.1), at(-0.11 * light, 0.3), at(0.0, 0.34)]).point(lambda v: int(v * 0.55)), unit * 0.04)
    mixed(layer, shade(skin, 0.5), strokes([ellipse(0, 0.3, 0.12, 0.06, 0.3, math.pi - 0.3)], 0.03), unit * 0.015)
    mixed(layer, shade(skin, 0.28), mask(ellipse(-0.065, 0.33, 0.03, 0.018), ellipse(0.065, 0.33, 0.03, 0.018)), soft)
    # Mouth.
    lips = (int(skin[0] * 0.72), int(skin[1] * 0.45), int(skin[2] * 0.45))
    half = random.uniform(0.25, 0.32)
    if expression == 0:
        upper, lower = ellipse(0, 0.52, half, 0.05, 0, math.pi), ellipse(0, 0.52, half, 0.22, 0, math.pi)
        mixed(layer, lips, mask(lower), soft)
        mixed(layer, (240, 236, 230), mask([*ellipse(0, 0.53, half * 0.85, 0.12, 0, math.pi)]), soft)
        mixed(layer, shade(lips, 0.6), strokes([upper, lower], 0.03), soft)
    elif expression == 1:
        mixed(layer, lips, mask(ellipse(0, 0.6, half * 0.85, 0.065)), soft)
        mixed(layer, shade(lips, 0.5), strokes([[at(-half * 0.9, 0.6), at(half * 0.9, 0.6)]], 0.025), soft)
    else:
        arc = ellipse(0, 0.74, half, 0.17, math.pi, 2 * math.pi)
        mixed(layer, lips, strokes([arc], 0.085), soft)
        mixed(layer, shade(lips, 0.5), strokes([arc], 0.025), soft)
    layer = layer.filter(ImageFilter.GaussianBlur(unit * 0.008))
    small = layer.resize((side // s, side // s), Image.Resampling.BOX)
    canvas.paste(small, tuple(int(v) for v in (center[0] - side / s / 2, center[1] - side / s / 2)))
    h = height / 2
    return (center[0] - wide * h, center[1] - h, center[0] + wide * h, center[1] + h)


def background(random, width, height):
    """Returns a picture of a wall: a soft gradient."""
    low, high = random.integers(60, 200, 3), random.integers(60, 230, 3)
    steps = np.linspace(0, 1, height)[:, None, None] * np.ones((1, width, 1))
    pixels = low + (high - low) * steps
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))

#!/usr/bin/python3
"""Trains `expression_model`, which says whether a face smiles, and writes everything that is made from it.

A small convolutional network learns faces that `draw_faces.py` draws, cut out as a face detector does. 900 faces are for
training, each cut out several times. 16 pictures with no to four faces are held back: they take no part in training, and
nothing is chosen by them.

Input `FACE`: FP32 [batch, 3, 48, 48], red, green and blue, each (value - 127) / 128.
Output `EXPRESSION`: FP32 [batch, 3], probabilities of `labels.txt`: smiling, neutral, sad.

Written, below `examples/`:
    pipeline-models/expression_model/1/model.onnx, labels.txt
    training/faces/<number>.jpg    the pictures that were held back
    training/faces.csv             their faces: picture, left, top, right, bottom, expression
    images/faces.jpg               one more picture, for people: a smiling, a neutral and a sad face

Needs Debian 12's python3-torch, python3-onnx, python3-pil and python3-numpy; run it from anywhere:

    /usr/bin/python3 examples/training/train_faces.py

Every random choice is seeded and training runs on one thread, so a second run on the same machine writes the same
bytes. Another processor may round sums in another order, and then the weights differ in their last digits.
"""

import io
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

import draw_faces
from draw_faces import EXPRESSIONS

EXAMPLES = Path(__file__).resolve().parent.parent
MODEL = EXAMPLES / "pipeline-models" / "expression_model"
HELD_BACK = EXAMPLES / "training" / "faces"
FACES = EXAMPLES / "training" / "faces.csv"

SEED = 2026
SIDE = 48
TRAINING_FACES = 900
CUTS = 6
HELD_BACK_PICTURES = 16
MAX_FACES = 4
BATCH = 60
EPOCHS = 20
PEAK_LEARNING_RATE = 0.004
OPSET = 14


class Expression(nn.Module):
    """Returns logits while it is trained, probabilities afterwards."""

    def __init__(self):
        super().__init__()
        layers = []
        for inputs, outputs in ((3, 12), (12, 24), (24, 32)):
            layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.features = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 6 * 6, len(EXPRESSIONS)))

    def forward(self, face):
        logits = self.features(face)
        return logits if self.training else torch.softmax(logits, dim=1)


def cut(random, picture, box):
    """Cuts a face out as a detector does, never twice in the same way, and scales it."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    top += 0.1 * height
    moved = [edge + random.uniform(-0.09, 0.09) * size for edge, size in ((left, width), (top, height), (right, width), (bottom, height))]
    face = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(max(0, moved[0]), max(0, moved[1]), min(picture.width, moved[2]), min(picture.height, moved[3])))
    return np.asarray(face).transpose(2, 0, 1)


def training_faces():
    faces, expressions = [], []
    for number in range(TRAINING_FACES):
        random = np.random.default_rng([SEED, number])
        picture = draw_faces.background(random, 200, 200)
        expression = number % len(EXPRESSIONS)
        box = draw_faces.draw_face(random, picture, (100, 100), random.uniform(56, 120), expression)
        for _ in range(CUTS):
            faces.append(cut(random, picture, box))
            expressions.append(expression)
    return np.stack(faces), np.array(expressions)


def group(random, expressions):
    """Draws a picture with a face for each expression; returns it with the boxes of the faces."""
    picture = draw_faces.background(random, 640, 400)
    boxes = []
    for place, expression in enumerate(expressions):
        x = 640 * (place + 0.5) / len(expressions) + random.uniform(-10, 10)
        boxes.append(draw_faces.draw_face(random, picture, (x, random.uniform(170, 210)), random.uniform(110, 130), expression))
    return picture, boxes


def write_held_back():
    """Writes the pictures that were held back, and returns their faces as they are cut out, with the expressions."""
    HELD_BACK.mkdir(parents=True, exist_ok=True)
    for old in HELD_BACK.iterdir():
        old.unlink()
    lines, faces, expressions = [], [], []
    for number in range(HELD_BACK_PICTURES):
        random = np.random.default_rng([SEED, 1_000_000 + number])
        chosen = [int(e) for e in random.integers(0, len(EXPRESSIONS), number % (MAX_FACES + 1))]
        picture, boxes = group(random, chosen)
        picture.save(HELD_BACK / f"{number}.jpg", "JPEG", quality=90)
        for box, expression in zip(boxes, chosen):
            lines.append(",".join([f"{number}.jpg", *(str(round(edge)) for edge in box), EXPRESSIONS[expression]]))
            faces.append(cut(random, picture, box))
            expressions.append(expression)
    FACES.write_text("\n".join(lines) + "\n", encoding="ascii")
    random = np.random.default_rng([SEED, 2_000_000])
    group(random, [0, 1, 2])[0].save(EXAMPLES / "images" / "faces.jpg", "JPEG", quality=90)
    return np.stack(faces), np.array(expressions)


def to_input(pixels):
    return (torch.from_numpy(pixels).float() - 127) / 128


def train(faces, expressions):
    network = Expression()
    batches = -(-len(faces) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=EPOCHS * batches)
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(faces)).split(BATCH):
            loss = functional.cross_entropy(network(to_input(faces[chosen.numpy()])), torch.from_numpy(expressions[chosen.numpy()]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: mean training loss {total / batches:.4f}", flush=True)
    return network.eval()


def export(model):
    """Writes the network as one ONNX file that holds nothing about where or how it was made but the producer's name."""
    written = io.BytesIO()
    torch.onnx.export(
        model,
        torch.zeros(1, 3, SIDE, SIDE),
        written,
        opset_version=OPSET,
        input_names=["FACE"],
        output_names=["EXPRESSION"],
        dynamic_axes={"FACE": {0: "batch"}, "EXPRESSION": {0: "batch"}},
    )
    proto = onnx.load_from_string(written.getvalue())
    proto.graph.name = "expression_model"
    proto.doc_string = ""
    proto.graph.doc_string = ""
    for node in proto.graph.node:
        node.doc_string = ""
    onnx.checker.check_model(proto, full_check=True)
    file = MODEL / "1" / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(proto.SerializeToString(deterministic=True))
    print(f"expression_model: {file.stat().st_size} bytes", flush=True)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    held_faces, held_expressions = write_held_back()
    faces, expressions = training_faces()
    print(f"{len(faces)} faces drawn", flush=True)
    model = train(faces, expressions)
    export(model)
    MODEL.joinpath("labels.txt").write_text("\n".join(EXPRESSIONS) + "\n", encoding="ascii")
    with torch.no_grad():
        right = int((model(to_input(held_faces)).argmax(dim=1).numpy() == held_expressions).sum())
    print(f"faces: {right} of {len(held_expressions)} right, each cut out where it was drawn")


if __name__ == "__main__":
    main()

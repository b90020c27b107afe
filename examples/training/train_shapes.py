#!/usr/bin/python3
"""Trains `classification_model` and `segmentation_model` and writes everything that is made from them.

Two small convolutional networks learn pictures of ten shapes, which `draw_shapes.py` draws: the first one which shape it
is, the second one what each pixel belongs to: background, shape or outline. Pictures 0 to 3999 are for training. 100
others, ten of each shape, half of them PNG and half of them JPEG files, are held back: they take no part in training,
and nothing is chosen by them.

Both networks have the input `FORMATTED_IMAGE`: FP32 [batch, 3, 224, 224], red, green and blue, each value / 255 - MEAN,
divided by DEVIATION. The outputs are probabilities:
    CLASSIFICATION_OUTPUT  FP32 [batch, 1000]: the first ten are the shapes in the order of `labels.txt`, the others 0
    SEGMENTATION_OUTPUT    FP32 [batch, 3, 224, 224]: background, shape, outline

Written, below `examples/`:
    pipeline-models/{classification_model,segmentation_model}/1/model.onnx
    pipeline-models/{classification_model,postprocess_model}/labels.txt
    training/shapes/<number>_<shape>.{png,jpg}   the pictures that were held back
    training/shapes/<number>.classes.png         what each pixel of them belongs to, at 224 x 224: 0, 1 or 2
    training/shapes_accuracy.txt                 the results on them, as measured with the decoder and filter of Pillow
    images/{star,heart}.{png,jpg}                two more pictures, for people

Needs Debian 12's python3-torch, python3-onnx, python3-pil and python3-numpy; run it from anywhere:

    /usr/bin/python3 examples/training/train_shapes.py

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

import draw_shapes
from draw_shapes import SHAPES

EXAMPLES = Path(__file__).resolve().parent.parent
MODELS = EXAMPLES / "pipeline-models"
HELD_BACK = EXAMPLES / "training" / "shapes"
ACCURACY = EXAMPLES / "training" / "shapes_accuracy.txt"

SEED = 2026
SIDE = 224
OUTPUTS = 1000
TRAINING_PICTURES = 4000
HELD_BACK_PICTURES = 100
BATCH = 32
CLASSIFICATION_EPOCHS = 14
SEGMENTATION_EPOCHS = 6
PEAK_LEARNING_RATE = 0.004
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
OPSET = 14


def block(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


def stem(outputs):
    """Reads squares of 4 x 4 pixels, so that everything after it has a sixteenth of the work."""
    return nn.Sequential(nn.Conv2d(3, outputs, 4, stride=4, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Classification(nn.Module):
    """Returns logits of the shapes; `Probabilities` makes them a distribution."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(stem(24), block(24, 32, 2), block(32, 48, 2), block(48, 48, 2), block(48, 48))
        self.classifier = nn.Linear(48 * 2, len(SHAPES))

    def forward(self, image):
        features = self.features(image)
        return self.classifier(torch.cat([features.mean(dim=(2, 3)), features.amax(dim=(2, 3))], dim=1))


class Segmentation(nn.Module):
    """Returns three logits for each pixel: a U-Net that works on squares of 4 x 4 pixels."""

    def __init__(self):
        super().__init__()
        self.stem = stem(24)
        self.down28 = block(24, 24, 2)
        self.down14 = block(24, 32, 2)
        self.down7 = block(32, 32, 2)
        self.up14 = block(64, 32)
        self.up28 = block(56, 24)
        self.up56 = block(48, 24)
        self.pixels = nn.Conv2d(24, 3 * 16, 1)

    def forward(self, image):
        at56 = self.stem(image)
        at28 = self.down28(at56)
        at14 = self.down14(at28)
        at7 = self.down7(at14)
        up = self.up14(torch.cat([functional.interpolate(at7, scale_factor=2), at14], dim=1))
        up = self.up28(torch.cat([functional.interpolate(up, scale_factor=2), at28], dim=1))
        up = self.up56(torch.cat([functional.interpolate(up, scale_factor=2), at56], dim=1))
        return functional.pixel_shuffle(self.pixels(up), 4)


class Probabilities(nn.Module):
    """A trained network with its softmax, and zeros behind it up to the number of outputs: what is exported."""

    def __init__(self, network, zeros):
        super().__init__()
        self.network = network
        self.zeros = zeros

    def forward(self, image):
        probabilities = torch.softmax(self.network(image), dim=1)
        return functional.pad(probabilities, (0, self.zeros)) if self.zeros else probabilities


def picture(number):
    """Draws picture `number`; returns its shape, its format, the bytes of its file, and the class of each pixel."""
    random = np.random.default_rng([SEED, number])
    shape = number % len(SHAPES)
    drawn, classes = draw_shapes.draw(random, SHAPES[shape])
    form = "png" if number // len(SHAPES) % 2 == 0 else "jpg"
    pixels = np.asarray(classes.resize((SIDE, SIDE), Image.Resampling.NEAREST))
    return shape, form, draw_shapes.encoded(drawn, form, random), pixels


def decoded(file):
    """Decodes a picture and scales it as the server does."""
    image = Image.open(io.BytesIO(file)).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)


def to_input(pixels):
    mean = torch.tensor(MEAN).view(1, 3, 1, 1)
    deviation = torch.tensor(DEVIATION).view(1, 3, 1, 1)
    return (torch.from_numpy(pixels).float() / 255 - mean) / deviation


def train(network, pixels, targets, epochs, loss_of):
    batches = -(-len(pixels) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=epochs * batches)
    for epoch in range(epochs):
        total = 0.0
        for chosen in torch.randperm(len(pixels)).split(BATCH):
            loss = loss_of(network(to_input(pixels[chosen.numpy()])), torch.from_numpy(targets[chosen.numpy()]).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: mean training loss {total / batches:.4f}", flush=True)
    return network.eval()


def export(model, output, name):
    """Writes a network as one ONNX file that holds nothing about where or how it was made but the producer's name."""
    written = io.BytesIO()
    torch.onnx.export(
        model,
        torch.zeros(1, 3, SIDE, SIDE),
        written,
        opset_version=OPSET,
        input_names=["FORMATTED_IMAGE"],
        output_names=[output],
        dynamic_axes={"FORMATTED_IMAGE": {0: "batch"}, output: {0: "batch"}},
    )
    proto = onnx.load_from_string(written.getvalue())
    proto.graph.name = name
    proto.doc_string = ""
    proto.graph.doc_string = ""
    for node in proto.graph.node:
        node.doc_string = ""
    onnx.checker.check_model(proto, full_check=True)
    file = MODELS / name / "1" / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(proto.SerializeToString(deterministic=True))
    print(f"{name}: {file.stat().st_size} bytes", flush=True)


def write_held_back(numbers):
    """Writes the pictures that were held back, and returns their decoded pixels, shapes and classes."""
    HELD_BACK.mkdir(parents=True, exist_ok=True)
    for old in HELD_BACK.iterdir():
        old.unlink()
    pixels, shapes, classes = [], [], []
    for number in numbers:
        shape, form, file, of_pixels = picture(number)
        (HELD_BACK / f"{number}_{SHAPES[shape]}.{form}").write_bytes(file)
        Image.fromarray(of_pixels, mode="L").save(HELD_BACK / f"{number}.classes.png", optimize=True, bits=2)
        pixels.append(decoded(file))
        shapes.append(shape)
        classes.append(of_pixels)
    return np.stack(pixels), np.array(shapes), np.stack(classes)


def write_images():
    for number, name, form in ((0, "star", "png"), (1, "heart", "jpg")):
        random = np.random.default_rng([SEED, 1_000_000 + number])
        drawn, _ = draw_shapes.draw(random, name, (300, 301))
        (EXAMPLES / "images" / f"{name}.{form}").write_bytes(draw_shapes.encoded(drawn, form, random))


def measured(found, expected):
    """Compares the classes of pixels."""
    of_pictures = (found == expected).mean(axis=(1, 2))
    overlaps = [((found == c) & (expected == c)).sum() / ((found == c) | (expected == c)).sum() for c in range(3)]
    return (
        f"pixels: {of_pictures.mean():.4f} right; in the worst picture {of_pictures.min():.4f}\n"
        f"intersection over union of background, shape, outline: {', '.join(f'{o:.4f}' for o in overlaps)}\n"
    )


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    held_pixels, held_shapes, held_classes = write_held_back(range(TRAINING_PICTURES, TRAINING_PICTURES + HELD_BACK_PICTURES))
    write_images()
    drawn = [picture(number) for number in range(TRAINING_PICTURES)]
    pixels = np.stack([decoded(file) for _, _, file, _ in drawn])
    shapes = np.array([shape for shape, _, _, _ in drawn])
    classes = np.stack([of_pixels for _, _, _, of_pixels in drawn])
    print(f"{len(pixels)} pictures drawn", flush=True)
    for model in ("classification_model", "postprocess_model"):
        (MODELS / model).mkdir(parents=True, exist_ok=True)
        (MODELS / model / "labels.txt").write_text("\n".join(SHAPES) + "\n", encoding="ascii")

    network = train(Classification(), pixels, shapes, CLASSIFICATION_EPOCHS, functional.cross_entropy)
    export(Probabilities(network, OUTPUTS - len(SHAPES)).eval(), "CLASSIFICATION_OUTPUT", "classification_model")
    with torch.no_grad():
        right = int((network(to_input(held_pixels)).argmax(dim=1).numpy() == held_shapes).sum())
    network = train(Segmentation(), pixels, classes, SEGMENTATION_EPOCHS, functional.cross_entropy)
    export(Probabilities(network, 0).eval(), "SEGMENTATION_OUTPUT", "segmentation_model")
    with torch.no_grad():
        found = network(to_input(held_pixels)).argmax(dim=1).numpy()
    text = f"shapes: {right} of {len(held_shapes)} right\n" + measured(found, held_classes)
    ACCURACY.write_text(text, encoding="ascii")
    print(text, end="")


if __name__ == "__main__":
    main()

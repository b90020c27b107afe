#!/usr/bin/python3
"""Trains the model `digits` and writes everything that is made from it.

A small convolutional network learns scikit-learn's handwritten digits (`load_digits`: 1,797 gray images of 8 x 8
pixels, values 0 to 16). The images are split once, stratified by digit: 1,437 to train with, 360 (20 %) to test
with. The test images take no part in training, and nothing is chosen by them: the number of epochs is fixed and the
last state of the network is the one that is kept.

Test accuracy of the committed model: 358 of 360 = 0.9944.

Input `image`: FP32 [batch, 1, 8, 8], each pixel from 0 (paper) to 1 (ink). Output `probabilities`: FP32 [batch, 10].

Written, below `examples/`:
    models/digits/1/model.onnx         the network
    images/digit_<label>_<k>.png       for each digit its first test image that the network gets right (k counts the
                                       test images of that digit), 8-bit gray: round(pixel * 255 / 16)
    training/digits_test.csv           the test set, one image a line: label, then 64 pixel values 0 to 16
    training/digits_train.csv          the images to train with, likewise, in the order of scikit-learn's data set
    training/digits_accuracy.txt       the test accuracy: correct results, test images, their ratio

Needs Debian 12's python3-torch, python3-sklearn, python3-onnx and python3-pil; run it from anywhere:

    /usr/bin/python3 examples/training/train_digits.py

Every random choice is seeded and training runs on one thread, so a second run on the same machine writes the same
bytes. Another processor may round sums in another order, and then the weights differ in their last digits.
"""

import io
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional

EXAMPLES = Path(__file__).resolve().parent.parent
MODEL = EXAMPLES / "models" / "digits" / "1" / "model.onnx"
IMAGES = EXAMPLES / "images"
TEST_SET = EXAMPLES / "training" / "digits_test.csv"
TRAINING_SET = EXAMPLES / "training" / "digits_train.csv"
ACCURACY = EXAMPLES / "training" / "digits_accuracy.txt"

SEED = 2026
TEST_SHARE = 0.2
EPOCHS = 60
BATCH = 64
PEAK_LEARNING_RATE = 0.01
MAX_SHIFT_PIXELS = 1
OPSET = 14
INK = 16.0  # the largest pixel value of the data set


class Digits(nn.Module):
    """Three convolutions and one linear layer. Returns logits; `Probabilities` makes them a distribution."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(48 * 2 * 2, 10))

    def forward(self, image: Tensor) -> Tensor:
        return self.classifier(self.features(image))


class Probabilities(nn.Module):
    """A trained network with its softmax: what is exported."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor) -> Tensor:
        return torch.softmax(self.network(image), dim=1)


def to_input(pixels: np.ndarray) -> Tensor:
    """Turns rows of 64 values 0 to 16 into images of values 0 to 1."""
    return torch.from_numpy((pixels / INK).astype(np.float32).reshape(-1, 1, 8, 8))


def shifted(images: Tensor) -> Tensor:
    """Moves the images of a training batch by up to one pixel in each direction, all of them alike."""
    down, right = torch.randint(0, 2 * MAX_SHIFT_PIXELS + 1, (2,)).tolist()
    padded = functional.pad(images, [MAX_SHIFT_PIXELS] * 4)
    return padded[:, :, down : down + 8, right : right + 8]


def train(images: Tensor, labels: Tensor) -> nn.Module:
    network = Digits()
    batches = -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=EPOCHS * batches
    )
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(images)).split(BATCH):
            loss = functional.cross_entropy(network(shifted(images[chosen])), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: mean training loss {total / batches:.4f}")
    return Probabilities(network).eval()


def export(model: nn.Module) -> None:
    """Writes the network as one ONNX file that holds nothing about where or how it was made but the producer's name."""
    written = io.BytesIO()
    torch.onnx.export(
        model,
        torch.zeros(1, 1, 8, 8),
        written,
        opset_version=OPSET,
        input_names=["image"],
        output_names=["probabilities"],
        dynamic_axes={"image": {0: "batch"}, "probabilities": {0: "batch"}},
    )
    proto = onnx.load_from_string(written.getvalue())
    proto.graph.name = "digits"
    proto.doc_string = ""
    proto.graph.doc_string = ""
    for node in proto.graph.node:
        node.doc_string = ""
    onnx.checker.check_model(proto, full_check=True)
    MODEL.parent.mkdir(parents=True, exist_ok=True)
    MODEL.write_bytes(proto.SerializeToString(deterministic=True))


def lines_of(pixels: np.ndarray, labels: np.ndarray) -> list[str]:
    return [",".join(str(int(value)) for value in [label, *row]) for label, row in zip(labels, pixels)]


def write_test_set(pixels: np.ndarray, labels: np.ndarray) -> None:
    TEST_SET.write_text("\n".join(lines_of(pixels, labels)) + "\n", encoding="ascii")


def write_training_set(pixels: np.ndarray, labels: np.ndarray, test: list[str]) -> None:
    """Writes all images that are not in the test set; an image that occurs twice may be in both."""
    left = Counter(test)
    lines = []
    for line in lines_of(pixels, labels):
        if left[line] > 0:
            left[line] -= 1
        else:
            lines.append(line)
    TRAINING_SET.write_text("\n".join(lines) + "\n", encoding="ascii")


def write_images(pixels: np.ndarray, labels: np.ndarray, predictions: np.ndarray) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    for old in IMAGES.glob("digit_*.png"):
        old.unlink()
    for digit in range(10):
        of_digit = np.flatnonzero(labels == digit)
        k = int(np.flatnonzero(predictions[of_digit] == digit)[0])
        gray = np.rint(pixels[of_digit[k]] * 255 / INK).astype(np.uint8).reshape(8, 8)
        Image.fromarray(gray, mode="L").save(IMAGES / f"digit_{digit}_{k}.png", optimize=True)


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    data = load_digits()
    train_pixels, test_pixels, train_labels, test_labels = train_test_split(
        data.data, data.target, test_size=TEST_SHARE, random_state=SEED, stratify=data.target
    )
    model = train(to_input(train_pixels), torch.from_numpy(train_labels).long())
    with torch.no_grad():
        predictions = model(to_input(test_pixels)).argmax(dim=1).numpy()
    right = int((predictions == test_labels).sum())
    export(model)
    write_test_set(test_pixels, test_labels)
    write_training_set(data.data, data.target, lines_of(test_pixels, test_labels))
    write_images(test_pixels, test_labels, predictions)
    accuracy = f"{right} of {len(test_labels)} = {right / len(test_labels):.4f}"
    ACCURACY.write_text(accuracy + "\n", encoding="ascii")
    print(f"digits: {len(train_labels)} training images, test accuracy {accuracy}, {MODEL.stat().st_size} bytes")


if __name__ == "__main__":
    main()

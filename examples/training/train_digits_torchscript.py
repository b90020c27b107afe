#!/usr/bin/python3
"""Trains the model `digits_torchscript`, scripts it, and saves it as TorchScript.

A perceptron with one layer of 32 units learns `digits_train.csv`, the handwritten digits of `train_digits.py`. The
test images of `digits_test.csv` take no part in training.

Test accuracy of the committed model: 352 of 360 = 0.9778.

Argument `pixels`: a float tensor [batch, 64], each pixel from 0 (paper) to 1 (ink). The result has two values: the
probabilities [batch, 10], and the English word of each image's most probable digit, as a list of texts.

Written, below `examples/pytorch-models/digits_torchscript/`:
    1/model.pt      the scripted network
    request.json    a request with the first test image of a seven

Needs Debian 12's python3-torch; run it from anywhere:

    /usr/bin/python3 examples/training/train_digits_torchscript.py

Every random choice is seeded and training runs on one thread, so a second run on the same machine writes the same
weights.
"""

import inspect
import json
import os
from pathlib import Path
from typing import List, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

EXAMPLES = Path(__file__).resolve().parent.parent
TRAINING = EXAMPLES / "training"
MODEL = EXAMPLES / "pytorch-models" / "digits_torchscript"

SEED = 2026
EPOCHS = 60
BATCH = 64
UNITS = 32
LEARNING_RATE = 0.01
INK = 16.0  # the largest pixel value of the data set
SEVEN = 7


class Digits(nn.Module):
    """Reads digits: probabilities, and words."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, UNITS)
        self.scores = nn.Linear(UNITS, 10)
        self.words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

    def logits(self, pixels: Tensor) -> Tensor:
        return self.scores(torch.relu(self.hidden(pixels)))

    def forward(self, pixels: Tensor) -> Tuple[Tensor, List[str]]:
        probabilities = torch.softmax(self.logits(pixels), dim=1)
        best: List[int] = probabilities.argmax(dim=1).tolist()
        return probabilities, [self.words[digit] for digit in best]


def read(name: str) -> Tuple[Tensor, Tensor]:
    rows = [[int(value) for value in line.split(",")] for line in (TRAINING / name).read_text().split()]
    table = torch.tensor(rows)
    return table[:, 1:] / INK, table[:, 0]


def train(pixels: Tensor, labels: Tensor) -> Digits:
    network = Digits()
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, weight_decay=1e-4)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(network.logits(pixels[chosen]), labels[chosen]).backward()
            optimizer.step()
    return network.eval()


def main() -> None:
    # The file has the places of its source, for messages: by their file's name alone.
    os.chdir(TRAINING)
    find = inspect.getsourcefile
    inspect.getsourcefile = lambda thing: os.path.basename(find(thing))
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    network = train(*read("digits_train.csv"))
    pixels, labels = read("digits_test.csv")
    correct = int((network(pixels)[0].argmax(dim=1) == labels).sum())
    print(f"{correct} of {len(labels)} = {correct / len(labels):.4f}")

    (MODEL / "1").mkdir(parents=True, exist_ok=True)
    torch.jit.script(network).save(str(MODEL / "1" / "model.pt"))
    image = pixels[labels == SEVEN][0]
    request = {"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": image.tolist()}]}
    (MODEL / "request.json").write_text(json.dumps(request) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Trains `date_model`, which reads dates in words and digits, and writes everything that is made from it.

A small network of convolutions and attention learns dates from 1900 to 2099 in the forms of `write`, such as
`the 3rd of March, 2021` or `Wed, 3.3.2021`. It gives each of the ten characters of `2021-03-03` by itself. 40,000 dates
are for training; 500 others, whose days do not occur among them, are held back: they take no part in training, and
nothing is chosen by them.

Input `TOKENS`: INT64 [batch, 40], for each character its line in `alphabet.txt` (from 0), filled up with 0.
Output `SYMBOLS`: FP32 [batch, 10, 11], probabilities of the lines of `symbols.txt`.

Written, below `examples/`:
    pipeline-models/date_model/1/model.onnx
    pipeline-models/date_tokenizer/alphabet.txt   the characters, one a line; the first two are for no and other characters
    pipeline-models/date_decoder/symbols.txt      the characters of the result
    training/dates_test.csv                       the texts that were held back, with their dates
    training/dates_accuracy.txt                   the result on them

Needs Debian 12's python3-torch, python3-onnx and python3-numpy; run it from anywhere:

    /usr/bin/python3 examples/training/train_dates.py

Every random choice is seeded and training runs on one thread, so a second run on the same machine writes the same
bytes. Another processor may round sums in another order, and then the weights differ in their last digits.
"""

import datetime
import io
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional

EXAMPLES = Path(__file__).resolve().parent.parent
MODELS = EXAMPLES / "pipeline-models"
TEST_SET = EXAMPLES / "training" / "dates_test.csv"
ACCURACY = EXAMPLES / "training" / "dates_accuracy.txt"

SEED = 2026
LENGTH = 40
RESULT = 10
ALPHABET = ["<none>", "<other>", *" ,./-0123456789abcdefghijklmnopqrstuvwxyz"]
SYMBOLS = [*"0123456789-"]
WIDTH = 48
TRAINING_DATES = 40_000
HELD_BACK_DATES = 500
BATCH = 100
EPOCHS = 10
PEAK_LEARNING_RATE = 0.004
OPSET = 14
FIRST_DAY = datetime.date(1900, 1, 1).toordinal()
DAYS = datetime.date(2100, 1, 1).toordinal() - FIRST_DAY
MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


class Dates(nn.Module):
    """Returns the probabilities of the symbols at each place of the result."""

    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(len(ALPHABET), WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 5, padding=2) for _ in range(3))
        self.queries = nn.Parameter(torch.randn(RESULT, WIDTH) * 0.1)
        self.results = nn.ModuleList([nn.Linear(WIDTH, 64), nn.Linear(64, len(SYMBOLS))])

    def forward(self, tokens):
        hidden = (self.characters(tokens) + self.places).transpose(1, 2)
        for layer in self.layers:
            hidden = hidden + torch.relu(layer(hidden))
        attention = torch.softmax(torch.matmul(self.queries, hidden), dim=2)
        read = torch.matmul(attention, hidden.transpose(1, 2)) + self.queries
        logits = self.results[1](torch.relu(self.results[0](read)))
        return logits if self.training else torch.softmax(logits, dim=2)


def ordinal(day):
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def write(random, date):
    """Writes a date in one of several forms."""
    month = MONTHS[date.month - 1] if random.integers(2) else MONTHS[date.month - 1][:3]
    day = [str(date.day), f"{date.day:02}", ordinal(date.day)][random.integers(3)]
    number = [f"{date.day}.{date.month}.{date.year}", f"{date.day:02}.{date.month:02}.{date.year}"]
    iso = [date.isoformat(), f"{date.year}/{date.month}/{date.day}", f"{date.year}/{date.month:02}/{date.day:02}"]
    forms = [
        f"{day} {month} {date.year}",
        f"{day} of {month} {date.year}",
        f"the {ordinal(date.day)} of {month}, {date.year}",
        f"{month} {day}, {date.year}",
        f"{month} {day} {date.year}",
        f"{day}-{month}-{date.year}",
        number[random.integers(2)],
        iso[random.integers(3)],
    ]
    text = forms[random.integers(len(forms))]
    weekday = WEEKDAYS[date.weekday()]
    before = ["", "", f"{weekday}, ", f"{weekday[:3]}, ", "on "][random.integers(5)]
    text = before + text
    return [text, text.lower(), text.upper()][random.integers(3)]


def tokens(text):
    numbers = {character: number for number, character in enumerate(ALPHABET)}
    found = [numbers.get(character, 1) for character in text.lower()]
    return found + [0] * (LENGTH - len(found))


def dates(random, days):
    """Returns texts and their dates."""
    chosen = [datetime.date.fromordinal(FIRST_DAY + int(day)) for day in days]
    return [write(random, date) for date in chosen], [date.isoformat() for date in chosen]


def tensors(texts, results):
    targets = [[SYMBOLS.index(character) for character in result] for result in results]
    return torch.tensor([tokens(text) for text in texts]), torch.tensor(targets)


def train(texts, targets):
    network = Dates()
    batches = len(texts) // BATCH
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=EPOCHS * batches)
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(texts)).split(BATCH):
            loss = functional.cross_entropy(network(texts[chosen]).transpose(1, 2), targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
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
        torch.zeros(1, LENGTH, dtype=torch.int64),
        written,
        opset_version=OPSET,
        input_names=["TOKENS"],
        output_names=["SYMBOLS"],
        dynamic_axes={"TOKENS": {0: "batch"}, "SYMBOLS": {0: "batch"}},
    )
    proto = onnx.load_from_string(written.getvalue())
    proto.graph.name = "date_model"
    proto.doc_string = ""
    proto.graph.doc_string = ""
    for node in proto.graph.node:
        node.doc_string = ""
    onnx.checker.check_model(proto, full_check=True)
    file = MODELS / "date_model" / "1" / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(proto.SerializeToString(deterministic=True))
    print(f"date_model: {file.stat().st_size} bytes", flush=True)


def write_lines(file, lines):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="ascii")


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    random = np.random.default_rng(SEED)
    days = random.permutation(DAYS)
    held_back = dates(random, days[:HELD_BACK_DATES])
    training = dates(random, random.choice(days[HELD_BACK_DATES:], TRAINING_DATES))
    write_lines(MODELS / "date_tokenizer" / "alphabet.txt", ALPHABET)
    write_lines(MODELS / "date_decoder" / "symbols.txt", SYMBOLS)
    write_lines(TEST_SET, [f"{result};{text}" for text, result in zip(*held_back)])
    model = train(*tensors(*training))
    export(model)
    inputs, targets = tensors(*held_back)
    with torch.no_grad():
        right = int((model(inputs).argmax(dim=2) == targets).all(dim=1).sum())
    accuracy = f"{right} of {HELD_BACK_DATES} = {right / HELD_BACK_DATES:.4f}"
    ACCURACY.write_text(accuracy + "\n", encoding="ascii")
    print(f"dates: {accuracy}")


if __name__ == "__main__":
    main()

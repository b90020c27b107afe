#!/usr/bin/env python3
"""Trains the model `char_lm`, a small recurrent network that writes text character by character.

The text is this project's own documentation at the time of the training (`README.md` and `docs/*.md`), so its license is
that of the project. The network reads one character at a time and keeps HIDDEN numbers:

    hidden = tanh(input_weights[character] + hidden_weights * hidden + hidden_bias)
    logits of the next character = output_weights * hidden + output_bias

Characters are the line feed and printable ASCII; others are left out.

Written: `examples/plugin-models/char_lm/1/weights.bin`, FP32 little-endian, row by row, in this order:
    input weights  [SYMBOLS, HIDDEN]   one row for each character
    hidden weights [HIDDEN, HIDDEN]
    hidden bias    [HIDDEN]
    output weights [SYMBOLS, HIDDEN]
    output bias    [SYMBOLS]

Needs numpy. Run it from anywhere with the number of steps, 5000 for the committed model:

    python3 examples/training/train_char_lm.py 5000

Every random choice is seeded. Another text, another processor or another version of numpy give other weights.
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
WEIGHTS = ROOT / "examples" / "plugin-models" / "char_lm" / "1" / "weights.bin"
SYMBOLS = 96  # the line feed, then the characters from space to tilde
HIDDEN = 128
LENGTH = 40
BATCH = 48
LEARNING_RATE = 0.003


def read_symbols():
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return np.array([0 if c == "\n" else ord(c) - 31 for c in text if c == "\n" or " " <= c <= "~"])


def gradients(weights, chunk, hidden):
    """Returns the mean loss of a chunk [BATCH, LENGTH + 1], its gradients, and the last hidden numbers."""
    wx, wh, bh, wo, bo = weights
    states = [hidden]
    for t in range(LENGTH):
        states.append(np.tanh(wx[chunk[:, t]] + states[-1] @ wh.T + bh))
    outputs = np.stack(states[1:], axis=1).reshape(-1, HIDDEN)
    logits = outputs @ wo.T + bo
    logits -= logits.max(axis=1, keepdims=True)
    exps = np.exp(logits)
    probabilities = exps / exps.sum(axis=1, keepdims=True)
    rows = np.arange(len(outputs))
    targets = chunk[:, 1:].reshape(-1)
    loss = -np.log(probabilities[rows, targets]).mean()
    probabilities[rows, targets] -= 1
    probabilities /= len(rows)
    to_states = (probabilities @ wo).reshape(BATCH, LENGTH, HIDDEN)
    found = [np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(bh), probabilities.T @ outputs, probabilities.sum(axis=0)]
    later = np.zeros_like(hidden)
    for t in reversed(range(LENGTH)):
        before = (to_states[:, t] + later) * (1 - states[t + 1] ** 2)
        np.add.at(found[0], chunk[:, t], before)
        found[1] += before.T @ states[t]
        found[2] += before.sum(axis=0)
        later = before @ wh
    return loss, found, states[-1]


def main():
    steps = int(sys.argv[1])
    random = np.random.default_rng(2026)
    text = read_symbols()
    shapes = [(SYMBOLS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN,), (SYMBOLS, HIDDEN), (SYMBOLS,)]
    weights = [(random.normal(0, 0.08, shape) if len(shape) == 2 else np.zeros(shape)).astype(np.float32) for shape in shapes]
    means = [np.zeros_like(w) for w in weights]
    squares = [np.zeros_like(w) for w in weights]
    at = random.integers(0, len(text), BATCH)
    hidden = np.zeros((BATCH, HIDDEN), np.float32)
    sum_of_losses = 0.0
    for step in range(1, steps + 1):
        chunk = text[(at[:, None] + np.arange(LENGTH + 1)) % len(text)]
        at += LENGTH
        loss, found, hidden = gradients(weights, chunk, hidden)
        norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in found))
        rate = LEARNING_RATE * (1 - 0.97 * step / steps) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        for w, g, mean, square in zip(weights, found, means, squares):
            g *= min(1.0, 1.0 / norm)
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            w -= rate * mean / (np.sqrt(square) + 1e-8)
        sum_of_losses += loss
        if step % 250 == 0:
            print(f"step {step}: {sum_of_losses / 250:.3f} nats a character", flush=True)
            sum_of_losses = 0.0
    WEIGHTS.parent.mkdir(parents=True, exist_ok=True)
    WEIGHTS.write_bytes(b"".join(w.astype("<f4").tobytes() for w in weights))


if __name__ == "__main__":
    main()

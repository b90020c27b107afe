"""Writes models of TorchScript, with inputs and what Python computes for them, to the directory that is given."""
import os
import pathlib
import sys
from typing import Dict, List, Tuple

import torch
import torchvision

ROOT = pathlib.Path(sys.argv[1])
MARKER = sys.argv[2]


def write(name, module, inputs, outputs):
    """Writes a module, and tensors as NAME.bin, in the order of their elements."""
    directory = ROOT / name
    directory.mkdir(parents=True)
    module.save(str(directory / "model.pt"))
    for key, tensor in {**inputs, **outputs}.items():
        (directory / (key + ".bin")).write_bytes(tensor.detach().contiguous().numpy().tobytes())


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTM(8, 16, num_layers=2, batch_first=True)

    def forward(self, x, h: torch.Tensor, c: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y, (h, c) = self.cell(x, (h, c))
        return y, h, c


class Texts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words: Dict[str, int] = {"<unknown>": 0, "cat": 1, "dog": 2, "bird": 3, "größe": 4}
        self.embedding = torch.nn.EmbeddingBag(5, 12, mode="mean")
        self.linear = torch.nn.Linear(12, 3)

    def forward(self, texts: List[str]) -> torch.Tensor:
        ids: List[int] = []
        starts: List[int] = []
        for text in texts:
            starts.append(len(ids))
            for word in text.lower().split(" "):
                ids.append(self.words[word] if word in self.words else 0)
        return torch.softmax(self.linear(self.embedding(torch.tensor(ids), torch.tensor(starts))), dim=1)


class Dictionary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 4)

    def forward(self, x: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        y = self.linear(torch.cat([x["left"], x["right"]], dim=1))
        return {"logits": y, "best": torch.argmax(y, dim=1), "left": x["left"]}


class Embedding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(100, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, ids):
        return self.encoder(self.tokens(ids))


class Code:
    """An object whose pickle runs a command when it is read."""

    def __reduce__(self):
        return os.system, ("touch " + MARKER,)


torch.manual_seed(7)
torch.set_num_threads(1)
with torch.no_grad():
    image = torch.randn(2, 3, 96, 96)
    resnet = torchvision.models.resnet18(weights=None).eval()
    expected = {"OUTPUT__0": resnet(image)}
    write("resnet_traced", torch.jit.trace(resnet, image), {"x": image}, expected)
    write("resnet_scripted", torch.jit.script(resnet), {"x": image}, expected)

    lstm = Lstm().eval()
    state = (torch.zeros(2, 1, 16), torch.zeros(2, 1, 16))
    inputs = {}
    outputs = {}
    for step in range(5):
        inputs["x%d" % step] = torch.randn(1, 3, 8)
        y, *state = lstm(inputs["x%d" % step], *state)
        outputs.update({"y%d" % step: y, "h%d" % step: state[0], "c%d" % step: state[1]})
    write("lstm", torch.jit.script(lstm), inputs, outputs)

    texts = Texts().eval()
    write("texts", torch.jit.script(texts), {}, {"OUTPUT__0": texts(["Cat dog", "bird unheard", "", "größe größe cat"])})

    dictionary = Dictionary().eval()
    sides = {"left": torch.randn(5, 2), "right": torch.randn(5, 4)}
    write("dictionary", torch.jit.script(dictionary), sides,
          {"out_" + key: value for key, value in dictionary(sides).items()})

    embedding = Embedding().eval()
    ids = torch.randint(0, 100, (3, 7))
    write("embedding", torch.jit.script(embedding), {"ids": ids}, {"OUTPUT__0": embedding(ids)})
    write("embedding_traced", torch.jit.trace(embedding, ids, check_trace=False), {"ids": ids},
          {"OUTPUT__0": embedding(ids)})

    class Vision(torch.nn.Module):
        def forward(self, boxes, scores):
            return torch.ops.torchvision.nms(boxes, scores, 0.5)

    write("nms", torch.jit.script(Vision()), {}, {})

    bad = ROOT / "bad"
    bad.mkdir()
    torch.save(lstm.state_dict(), bad / "state_dict.pt")
    torch.save(lstm.state_dict(), bad / "state_dict_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(Texts(), bad / "module.pt")
    torch.save(Texts(), bad / "module_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"epoch": 3, "model": lstm.state_dict()}, bad / "checkpoint.pt")
    torch.save(Code(), bad / "code.pt")
    torch.save(Code(), bad / "code_legacy.pt", _use_new_zipfile_serialization=False)

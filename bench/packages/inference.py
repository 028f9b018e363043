# SPDX-License-Identifier: GPL-3.0-or-later
"""Inference with PyTorch: inference.py REPETITIONS [THREADS], of a small convolutional net and a
dense one.  THREADS: as torch.set_num_threads has it; by default as many as PyTorch takes."""

import sys

import torch
from torch import nn


def main() -> None:
    repetitions = int(sys.argv[1])
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(1)
    convolutional = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16 * 16, 10), nn.Softmax(1))
    dense = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 10), nn.Softmax(1))
    images, rows = torch.rand(8, 3, 64, 64), torch.rand(32, 784)
    total = 0.0
    with torch.inference_mode():
        for _ in range(repetitions):
            total += float(convolutional(images).square().sum() + dense(rows).square().sum())
    print(f"checksum {total / repetitions:.7g}")


main()

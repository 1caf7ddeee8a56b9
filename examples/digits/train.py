#!/usr/bin/python3
"""Train a one-hidden-layer network on 8x8 images of handwritten digits."""

import argparse
import os
import pickle
from pathlib import Path

# A trial asks for one CPU, so it must not start a thread for each; BLAS reads this when it loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

CLASSES = 10
SPLIT_SEED = 0  # not --seed: every trial must be judged on the same images
VALIDATION = 360
BATCH = 32
REPORT_EVERY = 5


def load():
    """The images, scaled to 0..1, and labels: training part, then validation part."""
    table = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), delimiter=",", dtype=np.float32)
    table = np.random.default_rng(SPLIT_SEED).permutation(table)
    images, labels = table[:, :-1] / 16, table[:, -1].astype(int)
    return (images[VALIDATION:], labels[VALIDATION:]), (images[:VALIDATION], labels[:VALIDATION])


class Network:
    """Inputs -> width rectified units -> softmax, trained by gradient descent with momentum."""

    def __init__(self, inputs, width, rng):
        def layer(rows, columns):
            weights = rng.normal(0, np.sqrt(2 / rows), (rows, columns))
            return [weights.astype(np.float32), np.zeros(columns, np.float32)]

        self.parameters = layer(inputs, width) + layer(width, CLASSES)
        self.velocities = [np.zeros_like(p) for p in self.parameters]

    def forward(self, images):
        w1, b1, w2, b2 = self.parameters
        hidden = np.maximum(images @ w1 + b1, 0)
        scores = hidden @ w2 + b2
        scores -= scores.max(axis=1, keepdims=True)
        exp = np.exp(scores)
        return hidden, exp / exp.sum(axis=1, keepdims=True)

    def step(self, images, labels, lr, momentum):
        hidden, error = self.forward(images)
        error[np.arange(len(labels)), labels] -= 1  # gradient of cross-entropy after softmax
        error /= len(labels)
        back = (error @ self.parameters[2].T) * (hidden > 0)
        gradients = [images.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        for parameter, velocity, gradient in zip(self.parameters, self.velocities, gradients):
            velocity *= momentum
            velocity -= lr * gradient
            parameter += velocity

    def evaluate(self, images, labels):
        """Mean cross-entropy and the share of images named rightly."""
        _, probabilities = self.forward(images)
        right = probabilities[np.arange(len(labels)), labels]
        loss = -np.log(np.fmax(right, 1e-12)).mean()  # fmax: an overflowed output (NaN) counts as 0
        return loss, (probabilities.argmax(axis=1) == labels).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate")
    parser.add_argument("--width", type=int, default=32, help="hidden units")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1, help="of first weights and batch order")
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--checkpoint", type=Path, help="go on from what an earlier call left here")
    args = parser.parse_args()

    (images, labels), validation = load()
    rng = np.random.default_rng(args.seed)
    network = Network(images.shape[1], args.width, rng)
    reports = {}  # by epoch
    state = args.checkpoint and args.checkpoint / "state.pickle"
    if state and state.exists():
        reports, network, rng = pickle.loads(state.read_bytes())

    def tell(epoch):
        loss, accuracy = reports[epoch]
        print(f"::berth epoch={epoch} loss={loss:.4f} accuracy={accuracy:.4f}", flush=True)

    # What an earlier call reported is reported again: it may have been killed before anybody knew, and there may be
    # nothing left to train.
    for epoch in reports:
        if epoch <= args.epochs:
            tell(epoch)
    # A learning rate that is too big overflows: a bad result to report, not an error.
    np.seterr(all="ignore")
    for epoch in range(max(reports, default=0) + 1, args.epochs + 1):
        order = rng.permutation(len(labels))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            network.step(images[batch], labels[batch], args.lr, args.momentum)
        if epoch % REPORT_EVERY == 0 or epoch == args.epochs:
            reports[epoch] = network.evaluate(*validation)
            tell(epoch)
            if state:
                written = state.with_suffix(".new")  # whole or not at all, whenever we are killed
                written.write_bytes(pickle.dumps((reports, network, rng)))
                written.rename(state)


if __name__ == "__main__":
    main()

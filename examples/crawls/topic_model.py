"""A scikit-learn pipeline that says how much a text is about a topic, and the command that trains it.

    python -m crawls.topic_model labelled.csv bees.npz

The CSV file has the columns `label`, 1 or 0, and `text`: a page, an anchor, or words that speak for or against the
topic. Some dozens of each are a beginning. The model is kept as numbers, not as a pickle, which could run anything.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

CHARACTERS_MAX = 20_000  # of a text, to bound what a page costs
csv.field_size_limit(1 << 24)


def new_pipeline() -> Pipeline:
    """Return an untrained pipeline: words and pairs of words, counted by their hashes."""
    words = HashingVectorizer(n_features=1 << 16, ngram_range=(1, 2), alternate_sign=False)
    return make_pipeline(words, LogisticRegression(C=20.0, class_weight="balanced"))


class TopicModel:
    """A scorer for a focused spider: texts in, the probability that each is about the topic out."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def __call__(self, texts: list[str]) -> list[float]:
        if not texts:
            return []
        probabilities = self.pipeline.predict_proba([text[:CHARACTERS_MAX] for text in texts])[:, 1]
        # A text without words says nothing, whatever the model has learned of how frequent the topic is.
        return [float(p) if text.strip() else 0.0 for p, text in zip(probabilities, texts, strict=True)]

    @classmethod
    def load(cls, path: str) -> TopicModel:
        """Read a model that `save` wrote."""
        pipeline = new_pipeline()
        model = pipeline[-1]
        with np.load(path, allow_pickle=False) as kept:
            model.coef_, model.intercept_, model.classes_ = kept["coef"], kept["intercept"], kept["classes"]
        return cls(pipeline)

    def save(self, path: str) -> None:
        """Write the model's numbers."""
        model = self.pipeline[-1]
        np.savez_compressed(path, coef=model.coef_, intercept=model.intercept_, classes=model.classes_)


def train(labelled: str) -> TopicModel:
    """Train a model from a CSV file; what is wrong with the file ends the program with one line."""
    with Path(labelled).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"label", "text"} <= rows[0].keys():
        sys.exit(f"{labelled} must have the columns label and text")
    labels = [row["label"] for row in rows]
    if set(labels) != {"0", "1"}:
        sys.exit(f"{labelled} has the labels {sorted(set(labels))}; must have 1, about the topic, and 0")
    pipeline = new_pipeline()
    pipeline.fit([row["text"][:CHARACTERS_MAX] for row in rows], [int(label) for label in labels])
    return TopicModel(pipeline)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("python -m crawls.topic_model LABELLED.csv MODEL.npz")
    train(sys.argv[1]).save(sys.argv[2])

"""Teaching the fallback: multinomial logistic regression on hashed n-grams, its targets a teacher's probabilities.

Distillation without labels (Hinton, Vinyals & Dean 2015, at temperature 1): a linear student learns from the teacher's
answers what it learns from labels, and so can learn from texts that nobody labelled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped]
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

from app.student import Student, features
from models.training.scores import Floats, softmax

L2 = 1e-5
# The likelihood has one minimum; past this many steps only the rarest n-grams still move.
STEPS = 110


def teach(texts: Sequence[str], answers: Floats, weights: Floats, *, buckets: int) -> Student:
    """A student that answers ``texts`` as ``answers`` [texts, labels] do; each counts as its weight, [texts], says."""
    x = design_matrix(texts, buckets)
    transposed = x.T.tocsr()
    labels = answers.shape[1]
    shares = (weights / weights.sum())[:, None]  # (texts, 1)

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Cross-entropy with an L2 penalty on everything but the bias, and its gradient."""
        matrix, bias = _split(parameters, labels)
        probabilities = softmax(x @ matrix.astype(np.float32) + bias)  # (texts, labels)
        entropy = -float(np.sum(shares * answers * np.log(probabilities + 1e-12)))
        error = shares * (probabilities - answers)
        slope = transposed @ error.astype(np.float32) + L2 * matrix  # (buckets, labels)
        return entropy + L2 / 2 * float(np.sum(matrix**2)), np.append(slope, error.sum(axis=0))

    start = np.zeros((buckets + 1) * labels)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return quantise(*_split(found.x, labels))


def design_matrix(texts: Sequence[str], buckets: int) -> csr_matrix:
    """Features [texts, buckets], float32."""
    found = [features(text, buckets) for text in texts]
    ends = np.cumsum([0, *(len(each.buckets) for each in found)])
    columns = np.concatenate([each.buckets for each in found])
    values = np.concatenate([each.values for each in found])
    matrix = csr_matrix((values, columns, ends), shape=(len(texts), buckets))
    matrix.sum_duplicates()
    return matrix


def quantise(matrix: Floats, bias: Floats) -> Student:
    """Round ``matrix`` [buckets, labels] to int8, the largest weight of each label at 127."""
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-9) / 127  # a label that no n-gram speaks for has no weights
    return Student(np.round(matrix / scale).astype(np.int8), scale.astype(np.float32), bias.astype(np.float32))


def _split(parameters: NDArray[np.float64], labels: int) -> tuple[Floats, Floats]:
    """Weights [buckets, labels] and bias [labels], which lie behind one another."""
    return parameters[:-labels].reshape(-1, labels), parameters[-labels:]

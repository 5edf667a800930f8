"""Every architecture that can be packed gives what Hugging Face gives unpacked; every other is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="converting needs torch")
pytest.importorskip("transformers", reason="the models to compare with")

from app.packing import Embeddings, RowBuffers  # noqa: E402
from models.architectures import ADAPTERS, Converted, UnsupportedCheckpoint, convert  # noqa: E402
from tests.tiny_models import LABELS, POSITIONS, VOCABULARY, make_classifier  # noqa: E402

CLOSE = 1e-5
T = 24
BUCKETS = (3, 8, 12, 24, 40)

Ids = np.ndarray[Any, np.dtype[np.int64]]


class Pair:
    """A Hugging Face model and the same one converted."""

    def __init__(self, architecture: str) -> None:
        self.model = make_classifier(architecture)
        self.converted = convert(self.model.config.to_dict(), self.model.state_dict())

    def unpacked(self, query: Ids) -> np.ndarray[Any, Any]:
        with torch.no_grad():
            return self.model(input_ids=torch.from_numpy(query)[None]).logits[0].numpy()

    def packed(self, queries: Sequence[Ids], tokens: int = T) -> np.ndarray[Any, Any]:
        return run(self.converted, self.converted.embeddings, queries, tokens)[: len(queries)]


def run(converted: Converted, embeddings: Embeddings, queries: Sequence[Ids], tokens: int) -> np.ndarray[Any, Any]:
    row = RowBuffers(tokens, embeddings, pooling=converted.pooling)
    row.fill(queries)
    with torch.no_grad():
        return converted.encoder(*map(torch.from_numpy, (row.hidden, row.mask, row.pool))).numpy()


def query(length: int, seed: int = 0) -> Ids:
    """[CLS], words, [SEP]: ``length`` tokens."""
    words = np.random.default_rng(seed).integers(3, len(VOCABULARY), length - 2)
    return np.array([0, *words, 2], np.int64)


@pytest.fixture(scope="module", params=list(ADAPTERS))
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(request.param)


def test_packed_neighbours_get_what_hugging_face_gives_each_alone(pair: Pair) -> None:
    queries = [query(5, 1), query(3, 2), query(9, 3), query(7, 4)]
    packed = pair.packed(queries)
    for answer, each in zip(packed, queries, strict=True):
        np.testing.assert_allclose(answer, pair.unpacked(each), atol=CLOSE)


def test_order_of_neighbours_does_not_matter(pair: Pair) -> None:
    queries = [query(5, 1), query(3, 2), query(9, 3), query(7, 4)]
    order = [2, 0, 3, 1]
    permuted = pair.packed([queries[index] for index in order])
    np.testing.assert_allclose(permuted, pair.packed(queries)[order], atol=CLOSE)


@pytest.mark.parametrize("length", [T - 1, T])
def test_query_may_fill_the_row(pair: Pair, length: int) -> None:
    np.testing.assert_allclose(pair.packed([query(length)])[0], pair.unpacked(query(length)), atol=CLOSE)


def test_query_longer_than_the_row_is_refused(pair: Pair) -> None:
    with pytest.raises(ValueError, match="1 queries of 25 tokens"):
        pair.packed([query(T + 1)])


def test_empty_row_gives_finite_numbers(pair: Pair) -> None:
    assert np.isfinite(run(pair.converted, pair.converted.embeddings, [], T)).all()


def test_three_tokens_get_the_same_answer_in_every_bucket(pair: Pair) -> None:
    expected = pair.unpacked(query(3))
    for tokens in BUCKETS:
        np.testing.assert_allclose(pair.packed([query(3)], tokens)[0], expected, atol=CLOSE)


def test_longest_query_is_what_the_position_table_holds(pair: Pair) -> None:
    longest = query(POSITIONS)
    assert pair.converted.embeddings.position.shape[0] == POSITIONS
    np.testing.assert_allclose(pair.packed([longest], POSITIONS)[0], pair.unpacked(longest), atol=CLOSE)


def test_wrong_position_offset_changes_the_answer(pair: Pair) -> None:
    """The comparisons above would notice an offset that is one off."""
    right = pair.converted.embeddings
    wrong = Embeddings(right.word, np.roll(right.position, 1, axis=0))
    moved = run(pair.converted, wrong, [query(7)], T)[0]
    assert np.abs(moved - pair.unpacked(query(7))).max() > 1000 * CLOSE


def test_seen_neighbour_changes_the_answer(pair: Pair) -> None:
    """The comparisons above would notice a mask that lets a query see its neighbour."""
    row = RowBuffers(T, pair.converted.embeddings)
    row.fill([query(5, 1), query(7, 2)])
    row.mask[:] = 0
    with torch.no_grad():
        moved = pair.converted.encoder(*map(torch.from_numpy, (row.hidden, row.mask, row.pool))).numpy()[0]
    assert np.abs(moved - pair.unpacked(query(5, 1))).max() > 1000 * CLOSE


def test_half_precision_checkpoint_is_computed_in_float32(pair: Pair) -> None:
    state = {name: tensor.half() for name, tensor in pair.model.state_dict().items()}
    converted = convert(pair.model.config.to_dict(), state)
    assert {tensor.dtype for tensor in converted.encoder.state_dict().values()} == {torch.float32}
    assert converted.embeddings.word.dtype == converted.embeddings.position.dtype == np.float32


def test_head_has_a_logit_for_each_label(pair: Pair) -> None:
    assert pair.packed([query(5)]).shape == (1, len(LABELS))
    assert not pair.converted.encoder.training


def test_layer_norms_of_tensorflow_days_are_found() -> None:
    model = make_classifier("bert")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    state = {
        next((name.replace(new, then) for new, then in old.items() if name.endswith(new)), name): tensor
        for name, tensor in model.state_dict().items()
    }
    assert state.keys() != model.state_dict().keys()
    assert convert(model.config.to_dict(), state).architecture == "bert"


@pytest.mark.parametrize("architecture", ["deberta-v2", "albert", "xlm-roberta", "mpnet", "modernbert", None])
def test_other_architectures_are_refused_by_name(architecture: str | None) -> None:
    with pytest.raises(
        UnsupportedCheckpoint, match=f"architecture '?{architecture}'?: only bert, roberta, electra, dis"
    ):
        convert({"model_type": architecture}, {})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("hidden_act", "relu"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("problem_type", "multi_label_classification"),
        ("problem_type", "regression"),
        ("pruned_heads", {"0": [1]}),
        ("architectures", ["BertForMaskedLM"]),
        ("num_attention_heads", 3),
    ],
)
def test_settings_that_the_graph_lacks_are_refused_by_name(setting: str, value: object) -> None:
    model = make_classifier("bert")
    named = str(value[0] if isinstance(value, list) else "heads" if setting == "num_attention_heads" else setting)
    with pytest.raises(UnsupportedCheckpoint, match=named):
        convert(model.config.to_dict() | {setting: value}, model.state_dict())


def test_missing_tensor_is_named() -> None:
    model = make_classifier("bert")
    state = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("bert.pooler")}
    with pytest.raises(UnsupportedCheckpoint, match=r"no tensor 'bert\.pooler\.dense\.weight'"):
        convert(model.config.to_dict(), state)


def test_tensor_left_over_is_named() -> None:
    model = make_classifier("bert")
    state = model.state_dict() | {"bert.encoder.layer.2.adapter.weight": torch.zeros(2)}
    with pytest.raises(
        UnsupportedCheckpoint, match=r"no place for the tensors bert\.encoder\.layer\.2\.adapter\.weight"
    ):
        convert(model.config.to_dict(), state)


def test_index_buffers_are_no_left_over_tensors() -> None:
    model = make_classifier("bert")
    state = model.state_dict() | {"bert.embeddings.position_ids": torch.arange(POSITIONS)[None]}
    assert convert(model.config.to_dict(), state).architecture == "bert"


def test_tensors_of_another_size_than_the_config_says_are_refused() -> None:
    model = make_classifier("bert")
    with pytest.raises(UnsupportedCheckpoint, match=r"don't fit its config\.json"):
        convert(model.config.to_dict() | {"intermediate_size": 256}, model.state_dict())

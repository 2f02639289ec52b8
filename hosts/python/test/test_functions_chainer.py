"""Calls that Chainer accepts: edges of arguments, empty batches, gradients that it does not give."""
import catena
import catena.functions as F
import catena.links as L
import numpy as np
import pytest


def variable(values, dtype="float32"):
    return catena.Variable(np.array(values, dtype))


@pytest.mark.parametrize("width", [1, (1, 2), ((1, 2), (0, 3)), np.array([[1, 2], [0, 3]])])
@pytest.mark.parametrize("value", [5, (5,), (5, 6), ((5, 6), (7, 8)), np.array([[5, 6], [7, 8]])])
def test_pad_with_constants_of_each_side(width, value):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    y = F.pad(variable(x), width, "constant", constant_values=value)
    np.testing.assert_array_equal(y.array, np.pad(x, width, "constant", constant_values=value))
    with pytest.raises(ValueError, match="constant_values"):
        F.pad(variable(x), width, "constant", constant_values=((1, 2), (3, 4), (5, 6)))


def test_add_of_one_array():
    x = variable([1, 2])
    assert F.add(x).array.tolist() == [1, 2]
    with pytest.raises(TypeError, match="at least 1"):
        F.add()


@pytest.mark.parametrize("condition", [True, False, np.bool_(True), 1, 0])
def test_where_with_one_truth_value(condition):
    x, y = variable([1, 2]), variable([3, 4])
    z = F.where(condition, x, y)
    z.grad = np.ones(2, "float32")
    z.backward()
    assert z.array.tolist() == ([1, 2] if condition else [3, 4])
    assert x.grad.tolist() == [float(bool(condition))] * 2


def test_embed_id_counts_negative_ids_from_the_end():
    W = variable([[1], [2], [4]])
    y = F.embed_id(np.array([-1, 0, -3], "int32"), W)
    assert y.array.ravel().tolist() == [4, 1, 1]
    F.sum(y).backward()
    assert W.grad.ravel().tolist() == [2, 0, 1]
    assert F.embed_id(np.array([-1, -2], "int64"), W, -1).array.ravel().tolist() == [0, 2]
    for wrong in (-4, 3):
        with pytest.raises(catena.InvalidValueError, match=f"got {wrong}"):
            F.embed_id(np.array([-1, wrong], "int32"), W)


def test_empty_batches():
    def zeros(*shape):
        return catena.Variable(np.zeros(shape, "float32"))

    statistics = [zeros(3) for _ in range(4)]
    for y, shape in [
            (F.im2col(zeros(0, 2, 4, 5), 3), (0, 18, 2, 3)),
            (F.bilinear(zeros(0, 2), zeros(0, 3), zeros(2, 3, 4)), (0, 4)),
            (F.diagonal(zeros(0, 3, 3), 1, 1, 2), (0, 2)),
            (F.diagonal(zeros(0, 3)), (0,)),
            (F.fixed_batch_normalization(zeros(0, 3), *statistics), (0, 3)),
            (F.fixed_batch_normalization(zeros(0, 2, 3), *statistics, axis=(0, 1)), (0, 2, 3)),
            (F.batch_l2_norm_squared(zeros(0, 2, 3)), (0,))]:
        assert y.shape == shape
        y.grad = np.zeros(shape, "float32")
        y.backward()


def test_unpooling_to_nothing():
    x = variable(np.ones((2, 3, 1, 1)))
    y = F.unpooling_nd(x, 1, 2, 1)
    assert y.shape == (2, 3, 0, 0)
    y.grad = np.zeros(y.shape, "float32")
    y.backward()
    assert x.grad.tolist() == np.zeros((2, 3, 1, 1)).tolist()


def test_batch_renormalization_with_default_limits():
    x = variable([[1, 2], [3, 5]])
    link = L.BatchRenormalization(2)
    np.testing.assert_allclose(link(x).array, [[-1, -1], [1, 1]], atol=1e-4)


def test_a_tree_of_integers_of_numpy():
    counts = {np.int32(i): int(n) for i, n in enumerate([5, 3, 2, 1])}
    tree = L.BinaryHierarchicalSoftmax.create_huffman_tree(counts)
    link = L.BinaryHierarchicalSoftmax(3, tree)
    plain = L.BinaryHierarchicalSoftmax.create_huffman_tree({int(k): n for k, n in counts.items()})
    same = L.BinaryHierarchicalSoftmax(3, plain)
    same.W.array = link.W.array
    x, t = np.ones((2, 3), "float32"), np.array([0, 3], "int32")
    assert link(x, t).array == same(x, t).array


@pytest.mark.parametrize("soft_target_loss", ["cross-entropy", "kl-divergence"])
def test_soft_targets_get_no_gradient(soft_target_loss):
    student, teacher = variable([[1, 2]]), variable([[0, 1]])
    t = F.softmax(teacher)
    loss = F.softmax_cross_entropy(student, t, soft_target_loss=soft_target_loss)
    loss.backward()
    assert teacher.grad is None and t.grad is None
    np.testing.assert_allclose(student.grad, F.softmax(student).array - t.array, atol=1e-6)
    # the plugin's function differentiates it
    F.softmax_cross_entropy_soft(student, t).backward()
    assert teacher.grad is not None


def test_warnings():
    gamma, beta = np.ones(3, "float32"), np.full(3, 2, "float32")
    with pytest.warns(UserWarning, match="one value for each channel"):
        y = F.batch_normalization(np.ones((1, 3), "float32"), gamma, beta)
    assert y.array.tolist() == [[2, 2, 2]]
    with pytest.warns(DeprecationWarning, match="use matmul"):
        y = F.batch_matmul(np.ones((2, 3, 4), "float32"), np.ones((2, 4), "float32"))
    assert y.shape == (2, 3, 1)


def test_errors():
    with catena.using_config("debug", True), pytest.raises(ValueError, match="got -1"):
        F.embed_id(np.array([-1], "int32"), np.ones((2, 2), "float32"))
    with pytest.raises(catena.ShapeError, match="at least one array"):
        F.broadcast()
    with pytest.raises(catena.ShapeError, match=r"expected at least 2"):
        F.batch_l2_norm_squared(np.ones(3, "float32"))


def test_transpose_sequence_of_empty_sequences():
    assert F.transpose_sequence([]) == F.transpose_sequence([np.zeros((0, 2), "float32")] * 2) == ()
    assert len(F.transpose_sequence([np.ones(2, "float32"), np.ones(0, "float32")])) == 2

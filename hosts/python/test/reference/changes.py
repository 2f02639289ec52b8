"""What the tests change in the blocks of Chainer's documents, and why."""

_PYTHON_3 = {"print 'epoch', epoch": "print('epoch', epoch)", "xrange": "range"}
_FEWER = {"60000": "1000"}
_SMALL = "Python 3; 1,000 images"

# (document, block) -> why, {printed: what runs}
CHANGES = {
    ("manual", 21): ("`(compute gradient)` stands for code", {
        "(compute gradient)": "F.softmax_cross_entropy(h3, np.array([0, 1], dtype=np.int32)).backward()"}),
    ("manual", 22): ("the server of `fetch_mldata()` is gone: a stand-in makes images", {
        ">>> from sklearn.datasets import fetch_mldata\n": ""}),
    ("manual", 23): ("1,000 images", _FEWER),
    ("manual", 26): (_SMALL, {**_PYTHON_3, **_FEWER}),
    ("manual", 27): ("Python 3; 200 images", {"xrange": "range", "10000": "200"}),
    ("manual", 29): ("the argument `dtype` is `zeros()`'s; the state has a batch axis", {
        "np.zeros((50,)), dtype=np.float32,": "np.zeros((1, 50), dtype=np.float32),"}),
    ("manual", 31): ("the state has a batch axis", {"(50,)": "(1, 50)"}),
    ("manual", 43): (_SMALL, {**_PYTHON_3, **_FEWER}),
    ("manual", 51): (_SMALL + "; nothing set the gradients of `model_1` to zero", {
        **_PYTHON_3, **_FEWER, "batchsize/2": "batchsize//2",
        "optimizer.zero_grads()": "optimizer.zero_grads(); model_1.cleargrads()"}),
    ("manual", 57): ("`rand()` takes no tuple and no dtype; `...` stands for an array", {
        "np.random.rand((4, 3), dtype=np.float32)": "np.random.rand(4, 3).astype(np.float32)",
        "Variable(...)": "Variable(np.ones((4, 3), dtype=np.float32))"}),
    ("define", 10): ("`backward()` unpacks three inputs; `cupy.elementwise` is a module of CuPy", {
        "self.retain_inputs((0, 1))": "self.retain_inputs((0, 1, 2))",
        "cuda.cupy.elementwise": "cuda.elementwise"}),
    ("define", 20): ("`...` stands for code", {
        "... # forward computation code": "y = x * x",
        "... # backward computation code": "gx = 2 * x * gy"}),
    ("define", 21): ("`...` stands for code", {
        "... # forward computation code in MyOldFunc": "y = x * x",
        "... # backward computation code in MyOldFunc": "gx = 2 * x * gy"}),
}

# Blocks that are no programs.
NOT_CODE = {
    ("manual", 62): "a diagram",
    ("manual", 64): "a diagram",
    ("manual", 66): "a signature, which the test compares",
    ("manual", 67): "a signature, which the test compares",
    ("manual", 68): "a signature, which the test compares without `use_cudnn`, as in Chainer 7",
    ("manual", 69): "a signature, which the test compares",
    ("manual", 70): "a signature, which the test compares",
}

# More about blocks that run.
NOTES = {
    ("manual", 11): "the numbers are random",
    ("manual", 12): "the numbers are random",
    ("manual", 16): "the printed address differs",
    ("manual", 46): "it continues block 45",
    ("manual", 56): "its gradient reads the arrays that it writes, so its numbers are not compared",
    ("manual", 58): "its shape is one number, because `randn()` takes no tuple",
    ("define", 5): "its `backward()` takes indexes for inputs; the gradients are those of Chainer 7",
    ("define", 18): "its `backward()` takes indexes for inputs, and fails as in Chainer 7",
}

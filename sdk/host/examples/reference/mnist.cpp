// Section 1.1.6 of Chainer 1.0.1's manual: a three-layer perceptron on digits. Usage: mnist FOLDER
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

// The manual scales the pixels and divides the data itself; load_mnist() does both.
void check(const Mnist& mnist, const std::filesystem::path& folder) {
    const IdxFile train = read_idx(folder / "train-images-idx3-ubyte.gz", 3);
    const IdxFile test = read_idx(folder / "t10k-images-idx3-ubyte.gz", 3);
    const std::int64_t n = train.shape[0];  // 60000 in all of MNIST
    std::vector<std::uint8_t> data = train.values;
    data.insert(data.end(), test.values.begin(), test.values.end());
    const Array x_all =
        Array::from(data, {n + test.shape[0], 28 * 28}).astype(Dtype::float32) / 255;
    const auto [x_train, x_test] = unpack<2>(F::split_axis(x_all, {n}, 0));
    gradient_check::assert_allclose(mnist.train.arrays[0], x_train);
    gradient_check::assert_allclose(mnist.test.arrays[0], x_test);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: mnist FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    check(digits, argv[1]);

    FunctionSet model{
        {"l1", links::Linear(784, 100)},
        {"l2", links::Linear(100, 100)},
        {"l3", links::Linear(100, 10)},
    };
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model.collect_parameters());

    const auto forward = [&](const Array& x_data, const Array& y_data) {
        const Variable x(x_data);
        const Variable t(y_data);
        const Variable h1 = F::relu(model["l1"](x));
        const Variable h2 = F::relu(model["l2"](h1));
        const Variable y = model["l3"](h2);
        return std::pair(F::softmax_cross_entropy(y, t), F::accuracy(y, t));
    };

    const std::int64_t batchsize = 100;
    // Rows in random order: x_train[indexes[i : i + batchsize]].
    Minibatches batches(digits.train, batchsize, /*seed=*/1);
    while (batches.epoch() < 5) {
        const auto batch = batches.next();
        optimizer.zero_grads();
        const auto [loss, accuracy] = forward(batch[0], batch[1]);
        loss.backward();
        optimizer.update();
    }

    const Array &x_test = digits.test.arrays[0], &y_test = digits.test.arrays[1];
    const std::int64_t n = x_test.shape()[0] / batchsize * batchsize;
    double sum_loss = 0, sum_accuracy = 0;
    for (std::int64_t i = 0; i < n; i += batchsize) {
        const Array x_batch = F::get_item(x_test, i, i + batchsize);  // x_test[i : i + batchsize]
        const Array y_batch = F::get_item(y_test, i, i + batchsize);
        const auto [loss, accuracy] = forward(x_batch, y_batch);
        sum_loss += loss.item() * static_cast<double>(batchsize);
        sum_accuracy += accuracy.item() * static_cast<double>(batchsize);
    }
    std::printf("test loss: %.4f, test accuracy: %.4f\n", sum_loss / static_cast<double>(n),
                sum_accuracy / static_cast<double>(n));
} catch (const Error& e) {
    std::fprintf(stderr, "mnist: %s\n", e.what());
    return 1;
}

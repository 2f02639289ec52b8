// Copies the next minibatch to the GPU during a training step. Usage: streams FOLDER (of digits)
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: streams FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    links::Linear l1(784, 50), l2(50, 10);
    l1.to_gpu();
    l2.to_gpu();
    optimizers::SGD first(0.1), second(0.1);
    first.setup(l1);
    second.setup(l2);
    const auto net = [&](const Array& x) { return l2(F::relu(l1(as_variable(x)))); };
    const auto learn = [&](const Array& x, const Array& t) {
        first.cleargrads();
        second.cleargrads();
        F::softmax_cross_entropy(net(x), as_variable(t)).backward();
        first.update();
        second.update();
    };

    const cuda::Event begin(cuda::get_device()), end(cuda::get_device());
    begin.record(cuda::Stream::current(cuda::get_device()));
    // [streams]
    const cuda::Stream copies(
        cuda::get_device());  // in addition to the GPU's main stream, on which calls run
    Minibatches batches(digits.train, 100, 1);
    const auto fetch = [&] {
        Arrays batch = batches.next();
        for (Array& array : batch) {
            const Array pinned = cuda::pinned(array.shape(), array.dtype());
            pinned.copy_from(array);
            array = cuda::to_gpu_async(pinned, copies);  // asynchronous
        }
        return batch;
    };
    for (Arrays batch = fetch(); batches.epoch() < 5;) {
        const Arrays next = fetch();
        learn(batch[0], batch[1]);  // waits automatically for its own copies
        batch = next;
    }
    // [/streams]
    end.record(cuda::Stream::current(cuda::get_device()));

    const no_backprop_mode evaluation;
    const Variable y = net(cuda::to_gpu(digits.test.arrays[0]));
    const Variable t = as_variable(cuda::to_gpu(digits.test.arrays[1]));
    const double accuracy = F::accuracy(y, t).item();
    std::printf("%.0f ms, test accuracy: %.4f\n", end.elapsed_since(begin), accuracy);
    return accuracy >= 0.85 ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "streams: %s\n", e.what());
    return 1;
}

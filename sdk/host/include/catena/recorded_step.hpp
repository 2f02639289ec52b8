// RecordedStep: a training step that is recorded once and then launched on a GPU for each
// minibatch. For nets with many small calls, whose launches take longer than the work.
#pragma once

#include <catena/capture.hpp>
#include <catena/optimizer.hpp>

namespace catena {

//     RecordedStep step(optimizer, [&](std::span<const Array> batch) -> std::vector<Array> {
//         const Variable loss = F::softmax_cross_entropy(model(as_variable(batch[0])),
//                                                        as_variable(batch[1]));
//         optimizer.cleargrads();
//         loss.backward();
//         optimizer.update();
//         return {loss.data()};
//     });
//     while (...) loss = step(batches.next())[0];
//
// The body, with one update() of the optimizer, runs normally in the first two steps of each shape
// of inputs, is recorded in the third, and launched from then on, with the same kernels and
// results. Each step overwrites the arrays that it returned for that shape; copy what you want to
// keep. Values of the optimizer, such as its learning rate, may change between steps. All other
// host values that the body reads keep their value from the recording. Arrays that are used from
// one step to the next must be written in place (copy_from), as parameters and running means are.
// Another optimizer that the body updates keeps the rate of the recording. The limits are those of
// Capture: if the body reads an element, the third step throws UnsupportedError, as it does for an
// optimizer whose rule is update_one() instead of a function of a plugin. After setup(), or if
// parameters were moved, the first steps run normally again and are recorded again.
//
// The body always runs normally on a device without support for recording, if memory is too small
// for a recording, and for more than `most_shapes` shapes. A shape that did not occur in the last
// `patience` steps is dropped; after that many steps memory is requested again. If the body fails
// while recorded, t does not change, and parameters get no gradients from it. Not thread-safe.
class RecordedStep {
public:
    using Body = std::function<std::vector<Array>(std::span<const Array> inputs)>;

    // Without a stream, it creates one on the device of the first inputs.
    RecordedStep(Optimizer& optimizer, Body body, Stream stream = {});

    // Runs one step on these inputs, which must be on one device. Throws the body's exceptions.
    std::vector<Array> operator()(std::span<const Array> inputs);

    // The number of recordings, and of kernels, copies and fills in all of them.
    std::size_t recordings() const;
    std::uint64_t size() const;

    static constexpr std::size_t most_shapes = 8;
    static constexpr std::uint64_t patience = 100;

private:
    struct Recording {
        std::vector<std::pair<Shape, Dtype>> kinds;  // of the inputs
        std::uint64_t last = 0;                      // last step with this shape
        int runs = 0;                                // normal runs of the body
        std::vector<const void*> identity;           // of the optimizer at that time
        std::uint64_t not_before = 0;  // step of the next attempt after a lack of memory
        Capture capture;
        std::vector<Array> inputs;  // the recording's inputs
        std::vector<Array> outputs;
        std::shared_ptr<void> memory;  // the optimizer's attributes
    };
    Recording* find(std::span<const Array> inputs);
    bool record(Recording& recording, std::span<const Array> inputs);

    Optimizer& optimizer_;
    Body body_;
    Stream stream_;
    std::vector<Recording> recordings_;
    std::uint64_t steps_ = 0;
};

}  // namespace catena

// A training step that a GPU does again by itself: recorded once, launched for each minibatch. For nets
// of many small calls, whose launches cost more than the work.
#pragma once

#include <catena/core/capture.hpp>
#include <catena/optimizer.hpp>

#include <functional>
#include <span>
#include <utility>
#include <vector>

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
// The body, with one update() of the optimizer, runs as it is in the first two steps of each shape of
// inputs, is recorded in the third, and launched from then on: the same kernels on the same numbers.
// What it returns is written anew by each step of that shape; copy what is to stay. Numbers of the
// optimizer, such as its rate, may change between steps; whatever else the body reads on the host is
// as it was when it was recorded, and so are the arrays that it keeps from one step for the next: write
// those in place (copy_from), as parameters and running means are. Another optimizer that the body
// updates learns with the rate of the recording. It can do what a Capture can: where it asks for an
// element, it throws UnsupportedError in the third step; so it does for an optimizer whose rule is
// update_one() and not a function of a plugin. After setup(), and where parameters have moved,
// the first steps are run as they are again, and recorded anew.
//
// On a device that does not record, where memory is too small for a recording beside what is in use,
// and for more than `most_shapes` shapes, the body runs each time; a shape that did not come in the
// last `patience` steps makes room, and after so many steps memory is asked for again. After a body
// that failed while it was recorded t is as before, and parameters have no gradients from it. Not for
// several threads at once.
class RecordedStep {
public:
    using Body = std::function<std::vector<Array>(std::span<const Array> inputs)>;

    // Without a stream by one of its own, of the device of the first inputs.
    RecordedStep(Optimizer& optimizer, Body body, Stream stream = {});

    // One step on these inputs, which are on one device. Throws what the body throws.
    std::vector<Array> operator()(std::span<const Array> inputs);

    // How many recordings there are, and kernels, copies and fills in all of them.
    std::size_t recordings() const;
    std::uint64_t size() const;

    static constexpr std::size_t most_shapes = 8;
    static constexpr std::uint64_t patience = 100;

private:
    struct Recording {
        std::vector<std::pair<Shape, Dtype>> kinds;  // of its inputs
        std::uint64_t last = 0;                      // step of this shape
        int runs = 0;                                // of the body as it is
        std::vector<const void*> identity;           // of the optimizer by then
        std::uint64_t not_before = 0;                // a step: memory was too small
        Capture capture;
        std::vector<Array> inputs;  // where it reads them
        std::vector<Array> outputs;
        std::shared_ptr<void> memory;  // of the optimizer's attributes
    };
    class Undo;
    Recording* find(std::span<const Array> inputs);
    bool record(Recording& recording, std::span<const Array> inputs);

    Optimizer& optimizer_;
    Body body_;
    Stream stream_;
    std::vector<Recording> recordings_;
    std::uint64_t steps_ = 0;
};

}  // namespace catena

// RecordedStep: which recording an input belongs to, and what goes before each launch.
#include <catena/core/error.hpp>
#include <catena/recorded_step.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {
namespace {

bool alike(std::span<const Array> a, std::span<const Array> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Array& x, const Array& y) {
        return x.shape() == y.shape() && x.dtype() == y.dtype();
    });
}

void require_device(std::span<const Array> inputs, Device device) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool there = static_cast<bool>(inputs[i]);
        if (there && inputs[i].device() == device) continue;
        throw DeviceError(fmt::format("[RecordedStep] inputs[{}]: expected an array on {}, got {}",
                                      i, device.name(),
                                      there ? inputs[i].device().name() : "none"));
    }
}

}  // namespace

// What recording a body leaves behind if it fails, or computes nothing: the count of updates, and
// gradients that nobody wrote.
class RecordedStep::Undo {
public:
    explicit Undo(Optimizer& optimizer) : optimizer_(optimizer), t_(optimizer.t_) {
        for (const auto& slot : optimizer.slots_)
            gradients_.push_back(slot.parameter.variable.grad());
        optimizer.is_counted_ = true;
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() {
        optimizer_.t_ = t_;
        optimizer_.is_counted_ = false;
        for (std::size_t i = 0; i < gradients_.size(); ++i) {
            const Variable& variable = optimizer_.slots_[i].parameter.variable;
            if (gradients_[i]) variable.set_grad(gradients_[i]);
            else variable.cleargrad();
        }
    }
    std::int64_t updates() const { return optimizer_.t_ - t_; }
    void keep_gradients() { gradients_.clear(); }

private:
    Optimizer& optimizer_;
    std::int64_t t_;
    std::vector<Array> gradients_;
};

RecordedStep::RecordedStep(Optimizer& optimizer, Body body, Stream stream)
    : optimizer_(optimizer), body_(std::move(body)), stream_(std::move(stream)) {
    if (!body_) throw InvalidError("[RecordedStep] body: expected a function, got none");
}

std::vector<Array> RecordedStep::operator()(std::span<const Array> inputs) {
    if (!stream_) {
        if (inputs.empty() || !inputs[0])
            throw InvalidError("[RecordedStep] inputs: expected an array, got none");
        stream_ = Stream(inputs[0].device());
    }
    require_device(inputs, stream_.device());
    const using_stream scope(stream_);
    Recording* const recording = find(inputs);
    if (!recording || recording->is_too_large) return body_(inputs);
    if (recording->capture && recording->identity != optimizer_.identity()) {
        Recording anew;
        anew.inputs = std::move(recording->inputs);
        anew.last = recording->last;
        *recording = std::move(anew);
    }
    if (recording->runs < 2) {
        optimizer_.prepare_recording();
        std::vector<Array> outputs = body_(inputs);
        ++recording->runs;
        return outputs;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) recording->inputs[i].copy_from(inputs[i]);
    if (!recording->capture && !record(*recording)) return body_(inputs);
    optimizer_.prepare_launch();
    recording->capture.launch();
    return recording->outputs;
}

// Null: no more of them, or a device that does not record.
RecordedStep::Recording* RecordedStep::find(std::span<const Array> inputs) {
    if (!Capture::supported(stream_.device())) return nullptr;
    ++steps_;
    for (Recording& each : recordings_) {
        if (!alike(each.inputs, inputs)) continue;
        each.last = steps_;
        return &each;
    }
    if (recordings_.size() == most_shapes) {
        const auto oldest = std::min_element(
            recordings_.begin(), recordings_.end(),
            [](const Recording& a, const Recording& b) { return a.last < b.last; });
        if (steps_ - oldest->last < patience) return nullptr;
        recordings_.erase(oldest);
    }
    Recording added;
    for (const Array& input : inputs)
        added.inputs.push_back(Array::empty(input.shape(), input.dtype(), input.device()));
    added.last = steps_;
    return &recordings_.emplace_back(std::move(added));
}

// False if memory is too small for it, for which the steps before left nothing cached.
bool RecordedStep::record(Recording& recording) {
    stream_.device().release_cached();
    Undo undo(optimizer_);
    try {
        recording.capture = Capture(
            stream_, [&] { recording.outputs = body_(recording.inputs); }, 0, "of a training step");
    } catch (const MemoryError&) {
        recording.is_too_large = true;
        return false;
    }
    if (undo.updates() != 1) {
        recording.capture = {};
        throw InvalidError(fmt::format(
            "[RecordedStep] body: expected one update() of the optimizer, got {}", undo.updates()));
    }
    recording.identity = optimizer_.identity();
    recording.memory = optimizer_.memory_;
    undo.keep_gradients();
    return true;
}

std::size_t RecordedStep::recordings() const {
    return static_cast<std::size_t>(
        std::count_if(recordings_.begin(), recordings_.end(),
                      [](const Recording& each) { return static_cast<bool>(each.capture); }));
}
std::uint64_t RecordedStep::size() const {
    std::uint64_t n = 0;
    for (const Recording& each : recordings_) {
        if (each.capture) n += each.capture.size();
    }
    return n;
}

}  // namespace catena

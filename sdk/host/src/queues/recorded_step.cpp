// RecordedStep: selects the recording for the inputs, records steps, and prepares launches.
#include "../support.hpp"

#include <catena/recorded_step.hpp>

namespace catena {
namespace {

bool fits(std::span<const std::pair<Shape, Dtype>> kinds, std::span<const Array> inputs) {
    return std::equal(kinds.begin(), kinds.end(), inputs.begin(), inputs.end(),
                      [](const std::pair<Shape, Dtype>& kind, const Array& x) {
                          return kind.first == x.shape() && kind.second == x.dtype();
                      });
}

void require_device(std::span<const Array> inputs, Device device) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool there = static_cast<bool>(inputs[i]);
        if (there && inputs[i].device() == device) continue;
        fail<DeviceError>("[RecordedStep] inputs[{}]: expected an array on {}, got {}", i,
                          device.name(), there ? inputs[i].device().name() : "none");
    }
}

}  // namespace

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
    if (!recording) return body_(inputs);
    if (recording->runs > 0 && recording->identity != optimizer_.identity()) {
        Recording anew;
        anew.kinds = std::move(recording->kinds);
        anew.last = recording->last;
        *recording = std::move(anew);
    }
    if (recording->runs < 2) {
        optimizer_.prepare_recording();
        std::vector<Array> outputs = body_(inputs);
        ++recording->runs;
        recording->identity = optimizer_.identity();
        return outputs;
    }
    if (!recording->capture && (steps_ < recording->not_before || !record(*recording, inputs)))
        return body_(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) recording->inputs[i].copy_from(inputs[i]);
    optimizer_.prepare_launch();
    recording->capture.launch();
    return recording->outputs;
}

// Returns the recording for these inputs, or null if there are too many or the device does not record.
RecordedStep::Recording* RecordedStep::find(std::span<const Array> inputs) {
    if (!Capture::supported(stream_.device())) return nullptr;
    ++steps_;
    for (Recording& each : recordings_) {
        if (!fits(each.kinds, inputs)) continue;
        each.last = steps_;
        return &each;
    }
    if (recordings_.size() == most_shapes) {
        const auto oldest = std::ranges::min_element(recordings_, {}, &Recording::last);
        if (steps_ - oldest->last < patience) return nullptr;
        recordings_.erase(oldest);
    }
    Recording& added = recordings_.emplace_back();
    for (const Array& input : inputs) added.kinds.emplace_back(input.shape(), input.dtype());
    added.last = steps_;
    return &added;
}

// Records the body, which cannot use the cached memory of the device. Returns false without memory.
bool RecordedStep::record(Recording& recording, std::span<const Array> inputs) {
    stream_.device().release_cached();
    std::vector<Array> own, outputs;
    // While the body is recorded, update() increments t and computes nothing, so t is restored. If the body
    // fails, gradients in the memory of the recording, which is never launched, are cleared.
    const std::int64_t t = optimizer_.t_;
    bool done = false;
    optimizer_.is_counted_ = true;
    const OnExit undo{[&] {
        optimizer_.t_ = t;
        optimizer_.is_counted_ = false;
        for (const auto& slot : optimizer_.slots_) {
            const Variable& variable = slot.parameter.variable;
            if (!done && variable.grad() && is_of_recording(variable.grad())) variable.cleargrad();
        }
    }};
    try {
        for (const Array& input : inputs)
            own.push_back(Array::empty(input.shape(), input.dtype(), input.device()));
        recording.capture = Capture(
            stream_, [&] { outputs = body_(own); }, 0, "of a training step");
    } catch (const MemoryError&) {
        recording.not_before = steps_ + patience;
        return false;
    }
    if (const std::int64_t updates = optimizer_.t_ - t; updates != 1) {
        recording.capture = {};
        fail<InvalidError>("[RecordedStep] body: expected one update() of the optimizer, got {}",
                           updates);
    }
    done = true;
    recording.inputs = std::move(own);
    recording.outputs = std::move(outputs);
    recording.memory = optimizer_.memory_;
    return true;
}

std::size_t RecordedStep::recordings() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        recordings_, [](const Recording& each) { return bool(each.capture); }));
}
std::uint64_t RecordedStep::size() const {
    std::uint64_t n = 0;
    for (const Recording& each : recordings_) {
        if (each.capture) n += each.capture.size();
    }
    return n;
}

}  // namespace catena

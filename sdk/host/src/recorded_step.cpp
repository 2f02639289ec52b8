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
    if (recording->capture && recording->identity != optimizer_.identity())
        *recording = {.inputs = recording->inputs};
    if (recording->runs < 2) {
        optimizer_.prepare_recording();
        std::vector<Array> outputs = body_(inputs);
        ++recording->runs;
        return outputs;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) recording->inputs[i].copy_from(inputs[i]);
    if (!recording->capture) record(*recording);
    optimizer_.prepare_launch();
    recording->capture.launch();
    return recording->outputs;
}

// Null: no more of them, or a device that does not record.
RecordedStep::Recording* RecordedStep::find(std::span<const Array> inputs) {
    if (!Capture::supported(stream_.device())) return nullptr;
    for (Recording& each : recordings_) {
        if (alike(each.inputs, inputs)) return &each;
    }
    if (recordings_.size() == most_shapes) return nullptr;
    Recording& added = recordings_.emplace_back();
    for (const Array& input : inputs)
        added.inputs.push_back(Array::empty(input.shape(), input.dtype(), input.device()));
    return &added;
}

void RecordedStep::record(Recording& recording) {
    const std::int64_t t = optimizer_.t();
    // update() counts while it is recorded, and computes nothing.
    const struct Restore {
        Optimizer& optimizer;
        std::int64_t t;
        ~Restore() {
            optimizer.t_ = t;
            optimizer.is_counted_ = false;
        }
    } restore{optimizer_, t};
    optimizer_.is_counted_ = true;
    recording.capture = Capture(
        stream_, [&] { recording.outputs = body_(recording.inputs); }, 0, "of a training step");
    recording.identity = optimizer_.identity();
    recording.memory = optimizer_.memory_;
    if (const std::int64_t updates = optimizer_.t() - t; updates != 1) {
        recording.capture = {};
        throw InvalidError(fmt::format(
            "[RecordedStep] body: expected one update() of the optimizer, got {}", updates));
    }
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

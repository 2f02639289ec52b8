// Numbers the work of streams, and answers which of it is over when other work begins.
#include "order.hpp"

#include <algorithm>
#include <deque>

#include "config.hpp"
#include "stream.hpp"

namespace catena_emulator {
namespace {

struct Known {
    std::size_t stream;
    std::uint32_t in_stream;
    const catena_machine::Kernel* kernel;
};
struct History {
    std::mutex mutex;
    std::deque<Known> operations;                       // by number - 1
    std::vector<std::vector<std::uint32_t>> of_stream;  // the first number of each work, in order
};
History& history() {
    static auto* const all = new History;
    return *all;
}

std::uint32_t new_number(std::size_t stream, std::uint32_t in_stream) {
    const std::lock_guard lock(history().mutex);
    History& h = history();
    h.operations.push_back({stream, in_stream, nullptr});
    const auto number = static_cast<std::uint32_t>(h.operations.size());
    if (h.of_stream.size() <= stream) h.of_stream.resize(stream + 1);
    if (h.of_stream[stream].size() < in_stream) h.of_stream[stream].push_back(number);
    return number;
}

bool is_over(const void* context, std::uint32_t number) {
    const Operation& now = *static_cast<const InOrder*>(context)->now;
    // Neighbouring elements were usually accessed by the same operation.
    static thread_local std::uint32_t asked_by = 0, over = 0;
    if (asked_by == now.number && over == number) return true;
    const std::lock_guard lock(history().mutex);
    const Known& k = history().operations[number - 1];
    if (k.stream >= now.before.size() || now.before[k.stream] < k.in_stream) return false;
    asked_by = now.number;
    over = number;
    return true;
}

const catena_machine::Kernel* kernel_of(const void*, std::uint32_t number) {
    const std::lock_guard lock(history().mutex);
    return history().operations[number - 1].kernel;
}

// Returns the device whose heap has the address; nullptr if none has.
const Device* owner(const void* data) {
    for (const auto& device : devices())
        if (device->heap.holds(reinterpret_cast<std::uintptr_t>(data))) return device.get();
    return nullptr;
}

}  // namespace

void merge(Clock& into, const Clock& from) {
    if (into.size() < from.size()) into.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

Clock& host_clock() {
    static auto* const clock = new Clock;
    return *clock;
}

void host_waited(const Clock& clock) {
    const std::lock_guard lock(api());
    merge(host_clock(), clock);
}

Operation next_operation(Stream& stream) {
    merge(stream.clock, host_clock());
    if (stream.clock.size() <= stream.index) stream.clock.resize(stream.index + 1);
    Operation made = {0, stream.index, stream.clock[stream.index] + 1, stream.clock};
    stream.clock[stream.index] = made.in_stream;
    made.number = new_number(made.stream, made.in_stream);
    return made;
}

Operation& running() {
    static thread_local Operation now;
    return now;
}

void next_node() {
    Operation& now = running();
    now.before[now.stream] = now.in_stream;  // the nodes before it
    now.number = new_number(now.stream, now.in_stream);
}

void set_order(catena_machine::Launch& launch, const InOrder& context,
               const catena_machine::Kernel* kernel) {
    const std::uint32_t number = context.now->number;
    launch.number = number;
    launch.after = is_over;
    launch.kernel_of = kernel_of;
    launch.user = &context;
    const std::lock_guard lock(history().mutex);
    history().operations[number - 1].kernel = kernel;
    // What comes before the first work of any stream that may not be over.
    launch.over = number - 1;
    const Clock& before = context.now->before;
    for (std::size_t s = 0; s < history().of_stream.size(); ++s) {
        const auto& numbers = history().of_stream[s];
        const std::size_t first = s < before.size() ? before[s] : 0;
        if (first < numbers.size()) launch.over = std::min(launch.over, numbers[first] - 1);
    }
}

std::string touch(const void* data, std::size_t bytes, bool write) {
    const Device* const device = owner(data);
    if (device == nullptr || !config().races) return {};
    catena_machine::Launch launch = {};
    const InOrder context = {&running()};
    set_order(launch, context, nullptr);
    return catena_machine::touch(device->heap.region(), reinterpret_cast<std::uintptr_t>(data),
                                 bytes, write, launch);
}

std::string writer_of(const void* data) {
    const Device* const device = owner(data);
    if (device == nullptr) return "memory of no device";
    catena_machine::Launch launch = {};
    launch.kernel_of = kernel_of;
    return catena_machine::last_writer(device->heap.region(),
                                       reinterpret_cast<std::uintptr_t>(data), launch);
}

}  // namespace catena_emulator

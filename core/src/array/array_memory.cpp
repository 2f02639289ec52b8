// Memory of arrays: copies between host and devices, on which queue, and who waits.
#include "array/array_ops.hpp"
#include "array/recording.hpp"
#include "device/context.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace catena {
namespace {

bool plain(const DeviceState& device) { return device.host_accessible() && !device.async(); }

// A queue of the device that comes after the last write anyway, else the thread's.
Queue& reading_queue(ArrayBody& body) {
    Queue& writer = *owner_of(body).queue.load(std::memory_order_acquire);
    return &writer.device == body.device ? writer : current_queue(*body.device);
}

bool is_pinned_for(ArrayBody& body, const DeviceState& device) {
    const ArrayExtra* extra = owner_of(body).extra.load(std::memory_order_acquire);
    return extra && extra->pinned && extra->pinned->backend() == &device.table && device.memory &&
           device.memory->copy_async;
}

void check_status(Queue& queue, catena_ctx& ctx, catena_status status) {
    queue.check(ctx, status);
    queue.advance();
}

// Between the device of the queue and memory pinned for it.
void copy_beside(Queue& queue, ArrayBody& to, ArrayBody& from, int direction) {
    DeviceState& device = queue.device;
    before_read(from, queue);
    before_write(to, queue);
    catena_ctx ctx;
    ctx.device = &device;
    check_status(queue, ctx,
                 device.memory->copy_async(&ctx, device.dev, queue.native, memory_of(to),
                                           memory_of(from), to.tensor.nbytes, direction));
    after_write(to, queue, queue.last());
}

// False where the backend cannot.
bool copy_between(Queue& queue, ArrayBody& to, ArrayBody& from) {
    DeviceState& a = *to.device;
    DeviceState& b = *from.device;
    if (&a.table != &b.table || !a.memory || !a.memory->copy_peer) return false;
    before_read(from, queue);
    before_write(to, queue);
    catena_ctx ctx;
    ctx.device = &a;
    const catena_status status = a.memory->copy_peer(&ctx, a.dev, queue.native, memory_of(to),
                                                     b.dev, memory_of(from), to.tensor.nbytes);
    if (status == CATENA_E_UNSUPPORTED) return false;
    check_status(queue, ctx, status);
    after_write(to, queue, queue.last());
    return true;
}

// queue: of to's device; of from's, where only that has one that does not work at once.
void copy_on(Queue& queue, ArrayBody& to, ArrayBody& from) {
    DeviceState& a = *to.device;
    DeviceState& b = *from.device;
    const std::uint64_t bytes = to.tensor.nbytes;
    if (bytes == 0) return;
    if (plain(a) && plain(b)) {
        before_host(from, false);
        before_host(to, true);
        std::memmove(memory_of(to), memory_of(from), bytes);
        after_write(to, a.main(), 0);
    } else if (&a == &b) {
        before_read(from, queue);
        before_write(to, queue);
        a.copy(queue, memory_of(to), memory_of(from), bytes, CATENA_COPY_DEVICE_TO_DEVICE);
        after_write(to, queue, queue.last());
    } else if (plain(b)) {
        if (is_pinned_for(from, a)) return copy_beside(queue, to, from, CATENA_COPY_HOST_TO_DEVICE);
        before_host(from, false);
        before_write(to, queue);
        a.copy(queue, memory_of(to), memory_of(from), bytes, CATENA_COPY_HOST_TO_DEVICE);
        after_write(to, queue, queue.last());
    } else if (plain(a)) {
        if (&queue.device == &b && is_pinned_for(to, b))
            return copy_beside(queue, to, from, CATENA_COPY_DEVICE_TO_HOST);
        Queue& reading = reading_queue(from);
        before_read(from, reading);
        before_host(to, true);
        b.copy(reading, memory_of(to), memory_of(from), bytes, CATENA_COPY_DEVICE_TO_HOST);
        after_write(to, a.main(), 0);
    } else if (!copy_between(queue, to, from)) {  // two devices that know nothing of each other
        std::unique_ptr<char[]> staging;
        const void* const elements = on_host(from, staging);
        before_write(to, queue);
        a.copy(queue, memory_of(to), elements, bytes, CATENA_COPY_HOST_TO_DEVICE);
        after_write(to, queue, queue.last());
    }
}

// Into another dtype, on the device itself. False where the backend cannot.
bool convert_there(ArrayBody& to, ArrayBody& from) {
    DeviceState& device = *to.device;
    if (!device.memory || !device.memory->convert || from.tensor.nbytes == 0) return false;
    Queue& queue = current_queue(device);
    before_read(from, queue);
    before_write(to, queue);
    const auto n = from.tensor.nbytes / (from.meta.dtype.bits / 8u);
    catena_ctx ctx;
    ctx.device = &device;
    const catena_status status =
        device.memory->convert(&ctx, device.dev, queue.native, memory_of(to), to.meta.dtype,
                               memory_of(from), from.meta.dtype, n);
    if (status == CATENA_E_UNSUPPORTED) return false;
    check_status(queue, ctx, status);
    after_write(to, queue, queue.last());
    return true;
}

DeviceState& host_device() {
    DeviceState& state = default_device();
    if (plain(state)) return state;
    throw DeviceError("[array] pinned(): expected a device in the host's memory, got none");
}

}  // namespace

const void* on_host(const ArrayBody& body, std::unique_ptr<char[]>& staging) {
    auto& from = const_cast<ArrayBody&>(body);
    if (body.device->host_accessible()) {
        before_host(from, false);
        return memory_of(body);
    }
    staging = std::make_unique_for_overwrite<char[]>(body.tensor.nbytes);
    Queue& queue = reading_queue(from);
    before_read(from, queue);
    body.device->copy(queue, staging.get(), memory_of(body), body.tensor.nbytes,
                      CATENA_COPY_DEVICE_TO_HOST);
    return staging.get();
}

Array Array::to(Device device) const {
    const ArrayBody& body = need_memory(*this);
    if (body.device == device.state()) return *this;
    Array target = empty(shape(), dtype(), device);
    target.copy_from(*this);
    return target;
}

Array Array::to(Device device, const Stream& stream) const {
    const ArrayBody& body = need_memory(*this);
    if (body.device == device.state()) return *this;
    if (!device || !stream) throw InvalidError("[to] expected a device and a stream, got none");
    Queue& queue = recorded(*stream.queue());
    DeviceState& a = *device.state();
    const bool out = &queue.device == body.device && plain(a);
    if (!out && &queue.device != &a) {
        throw DeviceError(fmt::format("[to] stream: expected one of {}, got one of {}",
                                      (plain(a) ? *body.device : a).name, queue.device.name));
    }
    Array target =
        out ? pinned(shape(), dtype(), stream.device()) : empty_on(queue, shape(), dtype());
    written(*target.body_);
    copy_on(queue, *target.body_, *body_);
    queue.mark();
    return target;
}

Array Array::astype(Dtype target) const {
    ArrayBody& body = need_memory(*this);
    if (target == dtype()) return *this;
    Array converted = empty(shape(), target, Device(body.device));
    ArrayBody& to = *converted.body_;
    if (convert_there(to, body)) return converted;
    std::unique_ptr<char[]> staging;
    const void* const source = on_host(body, staging);
    if (plain(*body.device)) {
        convert(dtype(), source, target, memory_of(to), size());
        return converted;
    }
    const auto result = std::make_unique_for_overwrite<char[]>(to.tensor.nbytes);
    convert(dtype(), source, target, result.get(), size());
    Queue& queue = current_queue(*body.device);
    body.device->copy(queue, memory_of(to), result.get(), to.tensor.nbytes,
                      CATENA_COPY_HOST_TO_DEVICE);
    after_write(to, queue, queue.last());
    return converted;
}

void Array::copy_from(const Array& source) const {
    ArrayBody& to = need_memory(*this);
    ArrayBody& from = need_memory(source);
    if (!(shape() == source.shape()) || dtype() != source.dtype()) {
        throw ShapeError(fmt::format("[copy] source: expected {} {}, got {} {}",
                                     catena::to_string(shape()), name(dtype()),
                                     catena::to_string(source.shape()), name(source.dtype())));
    }
    written(to);
    copy_on(current_queue(*to.device), to, from);
}

void write_bytes(const Array& array, const void* bytes) {
    ArrayBody& to = need_memory(array);
    Queue& queue = current_queue(*to.device);
    written(to);
    before_write(to, queue);
    DeviceState& device = *to.device;
    const auto* const source = static_cast<const char*>(bytes);
    char* const target = static_cast<char*>(memory_of(to));
    const std::uint64_t n = to.tensor.nbytes;
    if (device.memory && device.memory->fill) {
        for (std::uint64_t at = 0, width = 0; at < n; at += width) {
            width = 16;  // as much as is left, and the address is a multiple of
            while (width > n - at || reinterpret_cast<std::uintptr_t>(target + at) % width != 0)
                width /= 2;
            alignas(16) char element[16];
            std::memcpy(element, source + at, width);
            catena_ctx ctx;
            ctx.device = &device;
            check_status(queue, ctx,
                         device.memory->fill(&ctx, device.dev, queue.native, target + at, element,
                                             static_cast<std::uint32_t>(width), 1));
        }
        queue.advance();
    } else {
        device.copy(queue, target, source, n, CATENA_COPY_HOST_TO_DEVICE);
    }
    after_write(to, queue, queue.last());
}

void Array::fill(double value) const {
    ArrayBody& body = need_memory(*this);
    const std::int64_t n = size();
    if (n == 0) return;
    written(body);
    DeviceState& device = *body.device;
    const std::size_t item = body.meta.dtype.bits / 8u;
    const std::uint64_t bytes = body.tensor.nbytes;
    const auto fill_host = [&](char* target) {
        convert(Dtype::float64, &value, dtype(), target, 1);
        for (std::size_t done = item; done < bytes; done *= 2) {  // double what is there
            std::memcpy(target + done, target, std::min<std::size_t>(done, bytes - done));
        }
    };
    if (plain(device)) {
        before_host(body, true);
        fill_host(static_cast<char*>(memory_of(body)));
        return after_write(body, device.main(), 0);
    }
    Queue& queue = current_queue(device);
    before_write(body, queue);
    if (device.memory && device.memory->fill) {
        alignas(16) char element[16];
        convert(Dtype::float64, &value, dtype(), element, 1);
        catena_ctx ctx;
        ctx.device = &device;
        check_status(
            queue, ctx,
            device.memory->fill(&ctx, device.dev, queue.native, memory_of(body), element,
                                static_cast<std::uint32_t>(item), static_cast<std::uint64_t>(n)));
    } else {
        std::vector<char> staging(bytes);
        fill_host(staging.data());
        device.copy(queue, memory_of(body), staging.data(), bytes, CATENA_COPY_HOST_TO_DEVICE);
    }
    after_write(body, queue, queue.last());
}

namespace {

ArrayBody& host_body(const Array& array, Dtype wanted) {
    ArrayBody& body = need_memory(array);
    if (!body.device->host_accessible()) {
        throw DeviceError(
            fmt::format("[array] host(): expected a device that the host can reach, "
                        "got {}; copy it with to()",
                        body.device->name));
    }
    if (wanted != array.dtype()) {
        throw DtypeError(
            fmt::format("[array] host(): expected {}, got {}", name(wanted), name(array.dtype())));
    }
    return body;
}

}  // namespace

void* Array::host_data(Dtype wanted) const {
    ArrayBody& body = host_body(*this, wanted);
    before_host(body, true);
    // Threads that fill parts of an array may be here at once: one change or several is the same.
    const std::atomic_ref version(owner_of(body).version);
    version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return memory_of(body);
}

void* Array::host_data_to_read(Dtype wanted) const {
    ArrayBody& body = host_body(*this, wanted);
    before_host(body, false);
    return memory_of(body);
}

void Array::require_item() const {
    if (size() != 1) {
        throw ShapeError(fmt::format("[array] item(): expected one element, got shape {}",
                                     catena::to_string(shape())));
    }
}

void Array::to_host(Dtype wanted, void* target) const {
    std::unique_ptr<char[]> staging;
    const void* const elements = on_host(need_memory(*this), staging);
    convert(dtype(), elements, wanted, target, size());
}

void Array::synchronize() const {
    ArrayBody& owner = owner_of(need_memory(*this));
    owner.queue.load(std::memory_order_acquire)->finish(owner.ticket);
}

Array Array::wrap(Device device, void* data, const Shape& shape, Dtype dtype,
                  std::function<void()> release) {
    if (!device) device = Device::current();
    Ref<ArrayBody> body = make_body(shape, dtype, *device.state());
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto item = static_cast<std::uintptr_t>(item_size(dtype));
    if (address % item != 0 || (!data && body->tensor.nbytes)) {
        throw InvalidError(
            fmt::format("[array] wrap(): expected an address aligned to {} bytes, "
                        "got {}",
                        item, data));
    }
    static char nothing;  // has_memory() tells arrays from mere shapes by their block
    Queue& queue = current_queue(*device.state());
    if (release) extra_of(*body).release = std::move(release);
    body->block = data ? data : &nothing;
    body->tensor.dl.data = data;
    body->tensor.align_log2 =
        static_cast<std::uint32_t>(data ? std::min(std::countr_zero(address), 6) : 6);
    body->queue.store(&queue, std::memory_order_relaxed);
    body->ticket = queue.now();
    return Array(std::move(body));
}

Array Array::pinned(const Shape& shape, Dtype dtype, Device device) {
    if (!device) device = Device::current();
    DeviceState& host = host_device();
    Ref<ArrayBody> body = make_body(shape, dtype, host);
    PinnedPool& pool = device.state()->pinned;
    std::uint64_t capacity = 0;
    void* const memory = pool.allocate(body->tensor.nbytes, capacity);
    if (!memory) return empty_on(host.main(), shape, dtype);
    extra_of(*body).pinned = &pool;
    body->block = body->tensor.dl.data = memory;
    body->capacity = capacity;
    body->queue.store(&host.main(), std::memory_order_relaxed);
    return Array(std::move(body));
}

bool Array::is_pinned() const {
    const ArrayExtra* extra = owner_of(need_memory(*this)).extra.load(std::memory_order_acquire);
    return extra && extra->pinned;
}

}  // namespace catena

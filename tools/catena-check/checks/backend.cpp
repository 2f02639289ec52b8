// Checks backends: devices, their memory, copies to and from it, and streams.
#include "check.hpp"
#include "control.hpp"

#include <testing/library.hpp>

#include <catena/testing/report.hpp>

#include <algorithm>

namespace catena::check::backend {
namespace {

using testing::World;
using Bytes = std::vector<std::uint8_t>;

constexpr std::int32_t most_devices = 8;
constexpr std::uintptr_t alignment = 64;

// A device of a backend. The caller opens and closes it, as a host does.
class Device {
public:
    Device(const catena_backend& backend, World& world, std::int32_t ordinal)
        : table(backend),
          name(fmt::format("{}:{}", backend.name, ordinal)),
          ctx{&world, {}, {}},
          ordinal_(ordinal) {}
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    void open() {
        call("open()", table.open, ordinal_, &dev);
        if (async()) call("stream_create()", table.stream_create, dev, &stream);
    }
    void close() {
        if (stream != nullptr) table.stream_destroy(dev, stream);
        doing("{}: close()", name);
        table.close(dev);
    }
    bool async() const { return (table.flags & CATENA_BACKEND_ASYNC) != 0; }
    // Calls a function of the table. Throws if it fails.
    template <class Function, class... Args>
    void call(const std::string& what, Function function, const Args&... args) {
        doing("{}: {}", name, what);
        const catena_status status = function(&ctx, args...);
        if (status == CATENA_OK) return;
        throw std::runtime_error(fmt::format("{}: {}: status {}: {}", name, what, status,
                                             ctx.error.empty() ? "no text" : ctx.error));
    }
    std::uint8_t* alloc(std::uint64_t bytes) {
        void* data = nullptr;
        call(fmt::format("alloc() of {} bytes", bytes), table.alloc, dev, stream, bytes, &data);
        return static_cast<std::uint8_t*>(data);
    }
    void free(std::uint8_t* data, std::uint64_t bytes) {
        doing("{}: free() of {} bytes", name, bytes);
        table.free(dev, stream, data, bytes);
    }
    // On an asynchronous backend, sync() waits for the end of a copy to the host.
    void copy(void* to, const void* from, std::uint64_t bytes, int direction) {
        static constexpr const char* const words[] = {"to the device", "to the host",
                                                      "within the device"};
        call(fmt::format("copy() of {} bytes {}", bytes, words[direction]), table.copy, dev, stream,
             to, from, bytes, direction);
    }
    void sync() {
        if (async()) call("stream_sync()", table.stream_sync, dev, stream);
    }

    const catena_backend& table;
    const std::string name;
    catena_ctx ctx;
    void* dev = nullptr;
    catena_stream* stream = nullptr;

private:
    std::int32_t ordinal_;
};

// The backends of the plugin, which is loaded as in a host.
class Backends {
public:
    explicit Backends(const Subject& subject)
        : module_(subject.file), table_(module_.table(World::host(), world_, true)) {}
    std::span<const catena_backend* const> all() const {
        return {table_.backends, table_.n_backends};
    }
    // Calls body with each device, opened. Closes the device afterwards, unless an error is thrown.
    template <class Body>
    void devices(Findings& findings, const Body& body) {
        std::string without = "it brings no backend";
        bool any = false;
        for (const catena_backend* b : all()) {
            const std::int32_t n = count(*b);
            if (n < 1) without = fmt::format("{}: this machine has none", b->name);
            any = any || n > 0;
            for (std::int32_t ordinal = 0; ordinal < std::min(n, most_devices); ++ordinal) {
                Device device(*b, world_, ordinal);
                device.open();
                body(device);
                device.close();
            }
        }
        if (!any) findings.skip("{}", without);
    }
    std::int32_t count(const catena_backend& b) {
        catena_ctx ctx{&world_, {}, {}};
        std::int32_t n = 0;
        doing("{}: count()", b.name);
        return b.count(&ctx, &n) == CATENA_OK ? n : 0;
    }
    World& world() { return world_; }

private:
    World world_{std::vector<std::string>()};
    testing::detail::Module module_;
    const catena_plugin& table_;
};

template <void (*look)(Device&, Findings&)>
void at_devices(const Subject& subject, Findings& findings) {
    Backends(subject).devices(findings, [&](Device& device) { look(device, findings); });
}

// Fails the check unless the call returned CATENA_E_NOMEM or CATENA_E_DEVICE with a text.
void need_refusal(Findings& findings, const std::string& what, catena_status status,
                  const catena_ctx& ctx) {
    if (status == CATENA_OK) findings.fail("{}: expected a refusal, got none", what);
    else if (status != CATENA_E_NOMEM && status != CATENA_E_DEVICE)
        findings.fail("{}: expected CATENA_E_NOMEM or CATENA_E_DEVICE, got {}", what, status);
    else if (ctx.error.empty()) findings.fail("{}: expected a text, got none", what);
}

void devices(const Subject& subject, Findings& findings) {
    Backends backends(subject);
    for (const catena_backend* b : backends.all()) {
        const std::int32_t n = backends.count(*b);
        if (const std::int32_t again = backends.count(*b); again != n || n < 0)
            findings.fail("{}: count(): expected 0 or more, the same each time, got {} and {}",
                          b->name, n, again);
        Device none(*b, backends.world(), std::max(n, 0));
        const std::string what = fmt::format("open() of {}, where there are {}", none.name, n);
        doing("{}", what);
        need_refusal(findings, what, b->open(&none.ctx, std::max(n, 0), &none.dev), none.ctx);
    }
    backends.devices(findings, [&](Device& device) {
        doing("{}: supports_isa(), get_extension()", device.name);
        if (device.table.supports_isa(device.dev, "org.example.none") != 0)
            findings.fail("{}: supports_isa(): expected 0 for org.example.none, got 1",
                          device.name);
        if (device.table.get_extension != nullptr &&
            device.table.get_extension(device.dev, "org.example.none/1") != nullptr)
            findings.fail("{}: get_extension(): expected NULL for org.example.none/1, got another",
                          device.name);
    });
}
const Registered r1{
    {"backend", "devices",
     "count(), open() and close() work; open() refuses a missing device with a message", devices}};

void check_sizes(Device& device, Findings& findings) {
    std::vector<std::pair<std::uint8_t*, std::uint64_t>> blocks;
    for (const std::uint64_t bytes : {1, 3, 64, 65, 4096, 100'001, 1 << 20})
        blocks.emplace_back(device.alloc(bytes), bytes);
    for (const auto& [data, bytes] : blocks)
        if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
            findings.fail(
                "{}: alloc() of {} bytes: expected an address that is a multiple of {}, got {}",
                device.name, bytes, alignment, static_cast<void*>(data));
    auto sorted = blocks;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (sorted[i - 1].first + sorted[i - 1].second > sorted[i].first)
            findings.fail(
                "{}: alloc(): expected blocks apart, got one of {} bytes that reaches into one of "
                "{}",
                device.name, sorted[i - 1].second, sorted[i].second);
    for (const auto& [data, bytes] : blocks) device.free(data, bytes);
    device.free(device.alloc(0), 0);
}

void memory(Device& device, Findings& findings) {
    check_sizes(device, findings);
    for (const std::uint64_t bytes : {std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
        if (!allocations_fail()) break;  // a sanitizer's malloc() ends the process
        const std::string what = fmt::format("{}: alloc() of {} bytes", device.name, bytes);
        doing("{}", what);
        void* data = nullptr;
        device.ctx.error.clear();
        need_refusal(findings, what,
                     device.table.alloc(&device.ctx, device.dev, device.stream, bytes, &data),
                     device.ctx);
    }
    device.free(device.alloc(1), 1);  // the device still works
    if (device.table.memory == nullptr) return;
    std::uint64_t left = 0, all = 0;
    device.call("memory()", device.table.memory, device.dev, &left, &all);
    if (all == 0 || left > all)
        findings.fail(
            "{}: memory(): expected some bytes, and as many or fewer of them left, got {} of "
            "{}",
            device.name, left, all);
}
const Registered r2{{"backend", "memory",
                     "blocks of 0, 1 and odd sizes are aligned and separate; too large ones are "
                     "refused with a message",
                     at_devices<memory>}};

// Returns pseudo-random bytes.
Bytes pattern(std::size_t bytes, std::uint8_t first) {
    Bytes result(bytes);
    std::uint32_t state = first;
    for (std::uint8_t& byte : result) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<std::uint8_t>(state >> 24);
    }
    return result;
}

// Copies bytes to a block, from it to another one, and back; `shift` sets the offsets.
void round_trip(Device& device, std::size_t bytes, std::size_t shift, Findings& findings) {
    const std::size_t room = bytes + 2 * shift + 8;
    std::uint8_t* const first = device.alloc(room);
    std::uint8_t* const second = device.alloc(room);
    const Bytes background = pattern(room, 1), numbers = pattern(bytes, 2);
    for (std::uint8_t* const block : {first, second})
        device.copy(block, background.data(), room, CATENA_COPY_HOST_TO_DEVICE);
    Bytes lent(bytes + shift);
    std::copy(numbers.begin(), numbers.end(), lent.begin() + static_cast<std::ptrdiff_t>(shift));
    device.copy(first + shift, lent.data() + shift, bytes, CATENA_COPY_HOST_TO_DEVICE);
    std::fill(lent.begin(), lent.end(), std::uint8_t{0});  // copy() has read it
    device.copy(second + 2 * shift, first + shift, bytes, CATENA_COPY_DEVICE_TO_DEVICE);
    const auto compare = [&](const std::uint8_t* block, std::size_t at, const char* what) {
        Bytes want = background, got(room + shift);
        std::copy(numbers.begin(), numbers.end(), want.begin() + static_cast<std::ptrdiff_t>(at));
        device.copy(got.data() + shift, block, room, CATENA_COPY_DEVICE_TO_HOST);
        device.sync();
        for (std::size_t i = 0; i < room; ++i)
            if (got[shift + i] != want[i])
                return findings.fail(
                    "{}: copy() of {} bytes {}, by {}: byte {} of the block of {}: expected {}, "
                    "got {}",
                    device.name, bytes, what, at, i, room, want[i], got[shift + i]);
    };
    compare(first, shift, "to the device and back");
    compare(second, 2 * shift, "to the device, within it and back");
    device.free(second, room);
    device.free(first, room);
}

void copies(Device& device, Findings& findings) {
    for (const std::size_t bytes : {1, 7, 64, 4099, (3 << 20) + 5})
        for (const std::size_t shift : {0, 1, 12}) round_trip(device, bytes, shift, findings);
}
const Registered r3{{"backend", "copy",
                     "copies in every direction and at any offset preserve all bytes",
                     at_devices<copies>}};

void streams(const Subject& subject, Findings& findings) {
    Backends backends(subject);
    bool any = false;
    backends.devices(findings, [&](Device& device) {
        const catena_backend& b = device.table;
        any = any || device.async();
        if (!device.async()) return;
        catena_stream* other = nullptr;
        catena_event* event = nullptr;
        device.call("stream_create()", b.stream_create, device.dev, &other);
        device.call("event_create()", b.event_create, device.dev, &event);
        device.call("event_record()", b.event_record, device.dev, event, device.stream);
        device.call("event_wait()", b.event_wait, device.dev, event, other);
        device.call("stream_sync()", b.stream_sync, device.dev, other);
        doing("{}: event_destroy(), stream_destroy()", device.name);
        b.event_destroy(device.dev, event);
        b.stream_destroy(device.dev, other);
        device.call("sync()", b.sync, device.dev);
    });
    if (!any) findings.skip("it brings no asynchronous device that is there");
}
const Registered r4{{"backend", "streams",
                     "an asynchronous backend has streams and events, and they work", streams}};

}  // namespace
}  // namespace catena::check::backend

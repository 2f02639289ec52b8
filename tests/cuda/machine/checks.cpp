// Finds where the addresses of a kernel lead, and whether it may access what is there.
#include "checks.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace catena_machine {
namespace {

static_assert(sizeof(Touched) == touched_bytes);

std::string text_of(const Instruction& in, std::uint64_t address, bool write) {
    char text[80];
    std::snprintf(text, sizeof text, "%s %d bytes at 0x%llx: ", write ? "writes" : "reads",
                  in.bytes, static_cast<unsigned long long>(address));
    return text;
}

// How far the threads are apart that read a word one after the other.
enum : std::uint8_t { one_thread, one_warp, one_block, several_blocks };

std::uint8_t distance(std::uint32_t a, std::uint32_t b, std::uint32_t threads) {
    if (a == b) return one_thread;
    if (a / threads != b / threads) return several_blocks;
    return a % threads / 32 == b % threads / 32 ? one_warp : one_block;
}

// Whether nothing orders the noted access before that of `me`.
// launch: nullptr for shared memory, in which other blocks have left what is not theirs any more.
bool concurrent(const Touch& t, const Touch& me, const Launch* launch, std::uint32_t threads) {
    if (t.launch == 0) return false;
    if (t.launch != me.launch)
        return launch != nullptr && t.launch > launch->over && launch->after != nullptr &&
               !launch->after(launch->user, t.launch);
    const auto apart = std::max<std::uint32_t>(t.spread, distance(t.thread, me.thread, threads));
    if (apart == one_thread) return false;
    if (apart == several_blocks) return true;
    if (t.barriers != me.barriers) return false;
    return apart == one_block || t.warp_barriers == me.warp_barriers;
}

std::string text_of(const Touch& t, const Code* code, std::uint32_t threads) {
    if (code == nullptr) return "a copy or fill";
    std::string text = describe(*code, t.pc);
    if (threads == 0) return text + ", thread " + std::to_string(t.thread) + " of the grid";
    return text + ", block " + std::to_string(t.thread / threads) + ", thread " +
           std::to_string(t.thread % threads);
}

// own: the kernel that accesses now; nullptr: a copy or fill.
std::string other_access(const Touch& t, const Touch& me, const Launch* launch, const Code* own,
                         std::uint32_t threads, const char* did) {
    const bool same = t.launch == me.launch;
    const Kernel* const other =
        same || launch->kernel_of == nullptr ? nullptr : launch->kernel_of(launch->user, t.launch);
    return std::string("race: ") + did + " by " +
           text_of(t,
                   same               ? own
                   : other != nullptr ? other->code.get()
                                      : nullptr,
                   same ? threads : 0) +
           (same ? ", with no barrier in between"
                 : ", and no event or wait orders the two streams");
}

// Notes an access of a word. Returns why it is a race, else "". `same`: a write that changes nothing,
// which several threads may do.
[[gnu::no_sanitize("thread")]] std::string note(Touched& noted, Touch me, bool write, bool same,
                                                const Launch* launch, const Code* own,
                                                std::uint32_t threads) {
    const Touched word = {std::bit_cast<Touch>(at_once(noted.write)),
                          std::bit_cast<Touch>(at_once(noted.read))};
    const auto clash = [&](const Touch& t) {
        return (t.bytes & me.bytes) != 0 && !(t.atomic != 0 && me.atomic != 0) && !same &&
               concurrent(t, me, launch, threads);
    };
    if (clash(word.write)) return other_access(word.write, me, launch, own, threads, "written");
    if (write && clash(word.read)) return other_access(word.read, me, launch, own, threads, "read");
    // Of several threads only the last is kept, and how far they are apart; of threads that access
    // different bytes, only the last; of readers in two streams without an order, only the first.
    const Touch& mine = write ? word.write : word.read;
    if (!write && mine.launch != me.launch && concurrent(mine, me, launch, threads)) return {};
    if (mine.launch == me.launch) {
        const bool no_barrier =
            mine.barriers == me.barriers && mine.warp_barriers == me.warp_barriers;
        if (mine.thread == me.thread && no_barrier) {
            me.bytes |= mine.bytes;
            me.atomic &= mine.atomic;
            me.spread = mine.spread;
        } else if (!write && (mine.bytes & me.bytes) != 0 &&
                   concurrent(mine, me, launch, threads)) {
            me.bytes |= mine.bytes;
            me.spread =
                std::max<std::uint32_t>(mine.spread, distance(mine.thread, me.thread, threads)) & 3;
        }
    }
    set_at_once(write ? noted.write : noted.read, std::bit_cast<TouchBits>(me));
    return {};
}

}  // namespace

void Block::begin(const Launch& l, std::uint64_t n, std::uint32_t n_threads) {
    launch = &l;
    code = l.kernel->code.get();
    threads = n_threads;
    number = static_cast<std::uint32_t>(n);
    index = {static_cast<unsigned>(n % l.grid.x), static_cast<unsigned>(n / l.grid.x % l.grid.y),
             static_cast<unsigned>(n / l.grid.x / l.grid.y)};
    barriers = 0;
    if (l.profile != nullptr) sectors.clear();
    if (++serial == 0) ++serial;
    const std::size_t bytes = (code->shared_bytes + 15) / 16 * 16 + l.dynamic_shared_bytes;
    shared.resize(std::max(shared.size(), bytes + 16));
    shared_states.resize(shared.size());
    shared_touched.resize(shared.size() / 4 + 1);
    std::fill_n(shared_states.begin(), bytes, Byte::unwritten);
    const std::size_t local_bytes = code->local_bytes * threads;
    local.resize(std::max(local.size(), local_bytes + 16));
    local_states.resize(local.size());
    std::fill_n(local_states.begin(), local_bytes, Byte::unwritten);
}

namespace {

// Where an address leads, what is known of its bytes, and who accessed them.
struct Found {
    unsigned char* data;
    Byte* states;
    Touched* touched;
};

}  // namespace

static void* locate(Warp& w, const Instruction& in, int lane, std::uint64_t address, bool write,
                    bool atomic, const void* value) {
    Block& b = *w.block;
    const std::size_t n = in.bytes;
    const auto refuse = [&](int error, const std::string& why) {
        throw Stopped{error, lane, text_of(in, address, write) + why};
    };
    if ((address & (n - 1)) != 0)
        refuse(misaligned_address,
               "expected an address that is a multiple of " + std::to_string(n));
    // Instructions of shared memory take offsets. The arguments of calls are in local memory.
    const bool is_offset = in.space == Space::shared && address >> 32 == 0;
    const std::uint64_t window = is_offset ? shared_window : address & window_mask;
    std::uint64_t at = address & ~window_mask;
    const bool fits = in.space == Space::generic  ? true
                      : in.space == Space::shared ? is_offset
                      : in.space == Space::local  ? window == local_window
                      : in.space == Space::param  ? window == param_window || window == local_window
                                                  : window == 0;
    if (!fits) {
        constexpr const char* windows[] = {"global memory", "shared memory", "local memory"};
        const bool known = window <= local_window;
        refuse(illegal_address, std::string("an address of ") +
                                    (known ? windows[window >> 56] : "a parameter or of nothing") +
                                    ", which the instruction cannot access");
    }
    Found f = {};
    bool shared = false;
    if (window == 0) {
        const auto search = [&](const std::vector<Region>& regions) {
            for (const Region& r : regions)
                if (address >= r.begin && address < r.end && n <= r.end - address) {
                    const std::size_t offset = address - r.begin;
                    f = {reinterpret_cast<unsigned char*>(address),
                         r.states != nullptr ? r.states + offset : nullptr,
                         r.touched != nullptr ? r.touched + offset / 4 : nullptr};
                    return true;
                }
            return false;
        };
        if (!search(b.launch->regions) && !search(b.code->variables))
            refuse(illegal_address, b.launch->describe != nullptr
                                        ? b.launch->describe(b.launch->user, address)
                                        : "memory that is not the kernel's");
    } else if (window == shared_window) {
        shared = true;
        const std::size_t fixed = b.code->shared_bytes, dynamic = b.launch->dynamic_shared_bytes;
        const bool is_dynamic = at >= dynamic_shared;
        if (is_dynamic) at -= dynamic_shared;
        if (at + n > (is_dynamic ? dynamic : fixed))
            refuse(illegal_address, "beyond the " + std::to_string(is_dynamic ? dynamic : fixed) +
                                        " bytes of shared memory");
        if (is_dynamic) at += (fixed + 15) / 16 * 16;
        f = {&b.shared[at], &b.shared_states[at], &b.shared_touched[at / 4]};
    } else if (window == local_window) {
        if (at + n > b.code->local_bytes)
            refuse(illegal_address, "beyond the local memory of the thread");
        at += (w.first_thread + static_cast<std::uint32_t>(lane)) * b.code->local_bytes;
        f = {&b.local[at], &b.local_states[at], nullptr};
    } else {
        if (window != param_window || write || at + n > b.code->argument_bytes)
            refuse(illegal_address, "beyond the arguments of the kernel");
        return const_cast<std::byte*>(b.launch->arguments) + at;
    }
    if (f.states != nullptr && !all_are(f.states, n, Byte::written)) {
        for (std::size_t i = 0; i < n; ++i)
            if (f.states[i] == Byte::free)
                refuse(illegal_address, b.launch->describe != nullptr && !shared
                                            ? b.launch->describe(b.launch->user, address + i)
                                            : "memory that is free");
        if (!write || atomic) refuse(launch_failure, "memory that nobody has written");
        std::fill_n(f.states, n, Byte::written);
    }
    if (f.touched != nullptr) {
        const bool same = value != nullptr && std::memcmp(f.data, value, n) == 0;
        Touch me;
        me.launch = shared ? b.serial : b.launch->number;
        me.thread = b.number * b.threads + w.first_thread + static_cast<std::uint32_t>(lane);
        me.barriers = b.barriers;
        me.warp_barriers = w.barriers;
        me.atomic = atomic ? 1 : 0;
        me.pc = static_cast<std::uint32_t>(w.pc) & 0xffffff;
        for (std::size_t word = 0; word < (n + 3) / 4; ++word) {
            me.bytes = (n >= 4 ? 0xf : ((1u << n) - 1) << (at & 3)) & 0xf;
            if (const std::string why = note(f.touched[word], me, write, same,
                                             shared ? nullptr : b.launch, b.code, b.threads);
                !why.empty())
                refuse(launch_failure, why);
        }
    }
    return f.data;
}

void* Warp::access(const Instruction& in, int lane, std::uint64_t address, bool write,
                   bool atomic) {
    return locate(*this, in, lane, address, write, atomic, nullptr);
}
void Warp::store(const Instruction& in, int lane, std::uint64_t address, const void* value) {
    std::memcpy(locate(*this, in, lane, address, true, false, value), value, in.bytes);
}

std::string touch(const Region& region, std::uintptr_t begin, std::size_t bytes, bool write,
                  const Launch& by) {
    if (region.touched == nullptr || bytes == 0) return {};
    Touch me;
    me.launch = by.number;
    for (std::size_t at = begin - region.begin, end = at + bytes; at < end; at = (at / 4 + 1) * 4) {
        me.bytes = (0xfu << (at & 3) & (end / 4 == at / 4 ? (1u << (end & 3)) - 1 : 0xfu)) & 0xf;
        Touched& noted = region.touched[at / 4];
        if (noted.write.launch <= by.over && noted.read.launch <= by.over) {  // as usual
            set_at_once(write ? noted.write : noted.read, std::bit_cast<TouchBits>(me));
            continue;
        }
        std::string why = note(noted, me, write, false, &by, nullptr, 1);
        if (!why.empty()) return why;
    }
    return {};
}

std::string last_writer(const Region& region, std::uintptr_t address, const Launch& by) {
    if (region.touched == nullptr || address < region.begin || address >= region.end)
        return "unknown";
    const Touch& t = region.touched[(address - region.begin) / 4].write;
    if (t.launch == 0) return "nobody";
    const Kernel* const kernel =
        by.kernel_of != nullptr ? by.kernel_of(by.user, t.launch) : nullptr;
    return text_of(t, kernel != nullptr ? kernel->code.get() : nullptr, 0);
}

}  // namespace catena_machine

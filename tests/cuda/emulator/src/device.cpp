// Devices, their memory, and the classification of addresses.
#include "device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "config.hpp"

namespace catena_emulator {
namespace {

using catena_machine::Byte;

constexpr std::size_t quarantine = std::size_t{32} << 20;
constexpr std::size_t unit = 512;                         // alignment of blocks and smallest gap
constexpr unsigned char fresh_byte = 0xff;                // NaN in every floating type, and -1
constexpr std::size_t fresh_most = std::size_t{1} << 20;  // maximum bytes that are filled per block

long number(const char* name, long otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr || *text == 0 ? otherwise : std::strtol(text, nullptr, 10);
}

struct Pinned {
    std::map<std::uintptr_t, std::size_t> blocks;
};
Pinned& pinned() {
    static auto* const p = new Pinned;
    return *p;
}

std::mutex& access_mutex() {
    static auto* const m = new std::mutex;
    return *m;
}
int accesses = 0;

void* as_pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

bool is_mapped(std::uintptr_t address) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    unsigned char resident = 0;
    return mincore(as_pointer(address & ~(page - 1)), page, &resident) == 0;
}

}  // namespace

const Config& config() {
    static const Config c = {
        .devices = static_cast<int>(number("CATENA_EMULATOR_DEVICES", 2)),
        .memory = static_cast<std::size_t>(number("CATENA_EMULATOR_MEMORY", 1L << 30)),
        .capability = static_cast<int>(number("CATENA_EMULATOR_CAPABILITY", 90)),
        .threads = static_cast<int>(number("CATENA_EMULATOR_THREADS", 1)),
        .reversed = number("CATENA_EMULATOR_REVERSED", 0) != 0,
        .delay_us = static_cast<int>(number("CATENA_EMULATOR_DELAY", 0)),
        .staging = number("CATENA_EMULATOR_STAGING", 0) != 0,
        .pageable = number("CATENA_EMULATOR_PAGEABLE", 0) != 0,
        .peers = number("CATENA_EMULATOR_PEERS", 1) != 0,
        .shares = number("CATENA_EMULATOR_SHARES", 1) != 0,
        .guarded = number("CATENA_EMULATOR_GUARD", 1) != 0,
        .races = number("CATENA_EMULATOR_RACES", 1) != 0,
        .driver_error = static_cast<int>(number("CATENA_EMULATOR_ERROR", 0)),
    };
    return c;
}

std::mutex& api() {
    static auto* const m = new std::mutex;
    return *m;
}

// Bytes that hold who accessed so many bytes of memory.
static std::size_t touched_room(std::size_t bytes) {
    return bytes / 4 * catena_machine::touched_bytes;
}

void Heap::map() {
    size_ = config().memory + (std::size_t{64} << 20);  // for the gaps between blocks
    file_ = memfd_create("catena-emulated-device", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0) return;
    const bool closed = config().guarded && accesses == 0;
    void* base = mmap(nullptr, size_, closed ? PROT_NONE : PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, file_, 0);
    void* states = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || states == MAP_FAILED) return;
    states_ = static_cast<Byte*>(states);  // all are free
    if (config().races) {
        void* const touched = mmap(nullptr, touched_room(size_), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (touched != MAP_FAILED) touched_ = static_cast<catena_machine::Touched*>(touched);
    }
    base_ = reinterpret_cast<std::uintptr_t>(base);
    next_ = base_;
}

void Heap::protect(bool closed) const {
    if (base_ != 0) mprotect(as_pointer(base_), size_, closed ? PROT_NONE : PROT_READ | PROT_WRITE);
}

void* Heap::allocate(std::size_t bytes) {
    if (bytes > config().memory - used_) return nullptr;
    if (base_ == 0) {
        const std::lock_guard lock(access_mutex());
        map();
    }
    if (base_ == 0) return nullptr;
    const std::size_t room = (bytes + unit - 1) / unit * unit + unit;
    // Freed memory is reused late, but not so late that the process touches all of the heap.
    if (next_ - base_ > quarantine + 2 * used_) next_ = base_;
    for (int round = 0; round < 2; ++round) {
        std::uintptr_t at = round == 0 ? next_ : base_;
        for (auto next = blocks_.lower_bound(at); at + room <= base_ + size_; ++next) {
            if (next == blocks_.end() || next->first - at >= room) {
                blocks_[at] = bytes;
                next_ = at + room;
                used_ += bytes;
                std::fill_n(states(at), bytes, Byte::unwritten);
                const Access access;
                std::memset(as_pointer(at), fresh_byte, std::min(bytes, fresh_most));
                return as_pointer(at);
            }
            at = next->first + (next->second + unit - 1) / unit * unit + unit;
        }
    }
    return nullptr;
}

void Heap::release(void* data) {
    const auto block = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
    {
        const Access access;
        std::memset(data, fresh_byte, std::min(block->second, fresh_most));
    }
    std::fill_n(states(block->first), block->second, Byte::free);
    used_ -= block->second;
    blocks_.erase(block);
}

bool Heap::holds(std::uintptr_t address) const {
    return base_ != 0 && address >= base_ && address < base_ + size_;
}

const std::pair<const std::uintptr_t, std::size_t>* Heap::find(std::uintptr_t address) const {
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) return nullptr;
    --block;
    return address <= block->first + block->second ? &*block : nullptr;
}

std::vector<std::unique_ptr<Device>>& devices() {
    static auto* const all = [] {
        auto* list = new std::vector<std::unique_ptr<Device>>;
        for (int i = 0; i < config().devices; ++i) {
            list->push_back(std::make_unique<Device>());
            list->back()->ordinal = i;
        }
        return list;
    }();
    return *all;
}

Device& current_device() { return *devices()[static_cast<std::size_t>(current_ordinal())]; }

std::map<std::uintptr_t, Block>& imported() {
    static auto* const all = new std::map<std::uintptr_t, Block>;
    return *all;
}

Place place_of(const void* data, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    for (const auto& device : devices()) {
        if (!device->heap.holds(at)) continue;
        const auto* block = device->heap.find(at);
        const bool inside = block != nullptr && at + bytes <= block->first + block->second;
        return {inside ? Place::Kind::device : Place::Kind::invalid, device->ordinal};
    }
    const auto contains = [&](const auto& map, auto size) {
        auto block = map.upper_bound(at);
        if (block == map.begin()) return map.end();
        --block;
        return at + bytes <= block->first + size(*block) ? block : map.end();
    };
    const auto foreign = contains(imported(), [](const auto& b) { return b.second.bytes; });
    if (foreign != imported().end()) return {Place::Kind::device, foreign->second.device};
    if (contains(pinned().blocks, [](const auto& b) { return b.second; }) != pinned().blocks.end())
        return {Place::Kind::pinned, 0};
    return {data == nullptr ? Place::Kind::invalid : Place::Kind::pageable, 0};
}

Byte* states_of(const void* data) {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    for (const auto& device : devices())
        if (device->heap.holds(at)) return device->heap.states(at);
    return nullptr;
}

std::vector<catena_machine::Region> regions_of(const Device& device) {
    std::vector<catena_machine::Region> all = {device.heap.region()};
    for (const int peer : device.peers)
        all.push_back(devices()[static_cast<std::size_t>(peer)]->heap.region());
    for (const auto& [begin, bytes] : pinned().blocks) all.push_back({begin, begin + bytes});
    for (const auto& [begin, block] : imported()) all.push_back({begin, begin + block.bytes});
    return all;
}

std::string wrong_address(std::uintptr_t address, const Device& device) {
    for (const auto& other : devices()) {
        if (!other->heap.holds(address)) continue;
        const auto* block = other->heap.find(address);
        if (block == nullptr || address == block->first + block->second)
            return "device memory that is nobody's: freed, or beyond a block";
        if (other.get() == &device || device.peers.contains(other->ordinal)) return {};
        return "memory of device " + std::to_string(other->ordinal) + ", which device " +
               std::to_string(device.ordinal) + " has no access to";
    }
    const Place place = place_of(as_pointer(address), 1);
    if (place.kind != Place::Kind::pageable || !is_mapped(address)) return {};
    return "memory of the host";
}

Access::Access() {
    const std::lock_guard lock(access_mutex());
    if (accesses++ == 0 && config().guarded)
        for (const auto& device : devices()) device->heap.protect(false);
}
Access::~Access() {
    const std::lock_guard lock(access_mutex());
    if (--accesses == 0 && config().guarded)
        for (const auto& device : devices()) device->heap.protect(true);
}

void* pinned_allocate(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    void* data = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (data != nullptr) pinned().blocks[reinterpret_cast<std::uintptr_t>(data)] = bytes;
    return data;
}
bool pinned_release(void* data) {
    if (pinned().blocks.erase(reinterpret_cast<std::uintptr_t>(data)) == 0) return false;
    std::free(data);
    return true;
}

}  // namespace catena_emulator

// Where the arguments of a callback are: on the heap, at the very end of readable memory, or in structs
// that are larger than those which the plugin knows.
#pragma once

#include <catena/abi.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace catena::testing::detail {

// The sizes that structs had in each released minor: numbers, but in the last line, which is these
// headers'.
struct Release {
    std::uint16_t minor;
    std::size_t host, call, gradient_call, plan, tensor, meta;
};
inline constexpr Release releases[] = {
    {0, 112, 136, 80, 24, 80, 144},
    {1, sizeof(catena_host), sizeof(catena_call), sizeof(catena_gradient_call), sizeof(catena_plan),
     sizeof(catena_tensor), sizeof(catena_meta)},
};

inline std::size_t size_in(const Release& r, const catena_host*) { return r.host; }
inline std::size_t size_in(const Release& r, const catena_call*) { return r.call; }
inline std::size_t size_in(const Release& r, const catena_gradient_call*) {
    return r.gradient_call;
}
inline std::size_t size_in(const Release& r, const catena_plan*) { return r.plan; }
inline std::size_t size_in(const Release& r, const catena_tensor*) { return r.tensor; }
inline std::size_t size_in(const Release& r, const catena_meta*) { return r.meta; }

struct Placement {
    enum class Kind {
        heap,
        fenced,  // each argument ends at an inaccessible page
        strict,  // also, const memory cannot be written; supports() and plan() get no data
        larger,  // structs are longer than in these headers
    } kind = Kind::heap;
    Release release = releases[std::size(releases) - 1];
};

// The memory of one callback's arguments.
class Ground {
public:
    explicit Ground(const Placement& placement) : placement_(placement) {}

    const Placement& placement() const { return placement_; }
    bool strict() const { return placement_.kind == Placement::Kind::strict; }
    bool fenced() const { return strict() || placement_.kind == Placement::Kind::fenced; }

    // A growable struct, as a host of the placement's release has it.
    template <class T>
    const T* lend(T value) {
        return place(value, true);
    }
    template <class T>
    T* lend_writable(T value) {
        return place(value, false);
    }
    template <class T>
    const T* list(const std::vector<T>& items) {
        return reinterpret_cast<const T*>(
            bytes(items.data(), items.size() * sizeof(T), alignof(T), true));
    }
    template <class T>
    const T* list(const T* items, std::size_t n) {
        return reinterpret_cast<const T*>(bytes(items, n * sizeof(T), alignof(T), true));
    }
    template <class T>
    T* writable_list(const std::vector<T>& items) {
        return reinterpret_cast<T*>(
            bytes(items.data(), items.size() * sizeof(T), alignof(T), false));
    }
    // A copy of n bytes; of 0xff where there is nothing to copy.
    std::byte* bytes(const void* from, std::size_t n, std::size_t alignment, bool read_only);
    // Where the page begins of the last bytes().
    std::byte* last_page() const { return last_page_; }

private:
    static constexpr std::size_t growth = 64;

    template <class T>
    T* place(T value, bool read_only) {
        std::size_t size = size_in(placement_.release, &value);
        std::byte image[sizeof(T) + growth];
        std::memset(image, 0xa7, sizeof image);
        if (placement_.kind == Placement::Kind::larger) size = sizeof image;
        value.struct_size = static_cast<std::uint32_t>(size);
        std::memcpy(image, &value, sizeof(T));
        return reinterpret_cast<T*>(bytes(image, size, alignof(T), read_only));
    }

    Placement placement_;
    std::vector<std::shared_ptr<void>> fenced_;
    // Blocks without control blocks: faults/leak of catena-check counts bytes of the heap.
    std::vector<std::unique_ptr<std::max_align_t[]>> heap_;
    std::byte* last_page_ = nullptr;
};

}  // namespace catena::testing::detail

// The memory of a callback's arguments: on the heap, or before an inaccessible page.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <new>

#include "testing/engine.hpp"

namespace catena::testing::detail {
namespace {

// Memory whose last byte, up to the alignment, is the last one before an inaccessible page.
class Fenced {
public:
    Fenced(std::size_t bytes, std::size_t alignment)
        : size_((bytes + alignment + page - 1) / page * page) {
        std::vector<std::byte*>& ready = spare[size_];
        if (!ready.empty()) {
            pages = ready.back();
            ready.pop_back();
        } else {
            void* memory = mmap(nullptr, size_ + page, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) throw std::bad_alloc();
            pages = static_cast<std::byte*>(memory);
        }
        if (mprotect(pages, size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        std::memset(pages, 0xa7, std::min(size_, page));
        data = pages + (size_ - bytes) / alignment * alignment;
    }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    ~Fenced() {
        if (size_ <= largest_spare * page) spare[size_].push_back(pages);
        else munmap(pages, size_ + page);
    }
    void make_read_only() { mprotect(pages, size_, PROT_READ); }

    std::byte* pages = nullptr;  // the accessible pages
    std::byte* data = nullptr;

private:
    static constexpr std::size_t largest_spare = 16;  // pages
    static inline const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    // Free mappings for reuse, by size: mapping takes most of the time of a small call.
    static inline std::map<std::size_t, std::vector<std::byte*>> spare;

    std::size_t size_;  // without the inaccessible page
};

}  // namespace

std::byte* Ground::bytes(const void* from, std::size_t n, std::size_t alignment, bool read_only) {
    std::shared_ptr<Fenced> fence;
    std::byte* to = nullptr;
    if (fenced()) {
        fenced_.push_back(fence = std::make_shared<Fenced>(n, alignment));
        to = fence->data;
        last_page_ = fence->pages;
    } else {
        const std::size_t size = (n + alignment) / sizeof(std::max_align_t) + 1;
        to = reinterpret_cast<std::byte*>(
            heap_.emplace_back(std::make_unique_for_overwrite<std::max_align_t[]>(size)).get());
        to += (alignment - reinterpret_cast<std::uintptr_t>(to) % alignment) % alignment;
        last_page_ = to;
    }
    if (n > 0 && from != nullptr) std::memcpy(to, from, n);
    else if (n > 0) std::memset(to, 0xff, n);
    if (fence && read_only && strict()) fence->make_read_only();
    return to;
}

}  // namespace catena::testing::detail

// Memory that ends where a page begins that nobody may touch.
#include "testing/ground.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <new>

namespace catena::testing::detail {
namespace {

std::size_t page_size() {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}
// Mapped before and free now, by size: mapping is most of the time of a small call.
std::map<std::size_t, std::vector<std::byte*>>& spare() {
    static std::map<std::size_t, std::vector<std::byte*>> all;
    return all;
}
constexpr std::size_t largest_spare = 16;  // pages

void fill(std::byte* to, const void* from, std::size_t n) {
    if (n == 0) return;
    if (from != nullptr) std::memcpy(to, from, n);
    else std::memset(to, 0xff, n);
}

}  // namespace

Fenced::Fenced(std::size_t bytes, std::size_t alignment) {
    const std::size_t page = page_size();
    size_ = (bytes + alignment + page - 1) / page * page;
    std::vector<std::byte*>& ready = spare()[size_];
    if (!ready.empty()) {
        pages_ = ready.back();
        ready.pop_back();
    } else {
        void* memory = mmap(nullptr, size_ + page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        pages_ = static_cast<std::byte*>(memory);
    }
    if (mprotect(pages_, size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::memset(pages_, 0xa7, std::min(size_, page));
    data_ = pages_ + (size_ - bytes) / alignment * alignment;
}
Fenced::~Fenced() {
    const std::size_t page = page_size();
    if (size_ <= largest_spare * page) spare()[size_].push_back(pages_);
    else munmap(pages_, size_ + page);
}
void Fenced::make_read_only() { mprotect(pages_, size_, PROT_READ); }

std::byte* Ground::bytes(const void* from, std::size_t n, std::size_t alignment, bool read_only) {
    std::byte* to = nullptr;
    if (fenced()) {
        Fenced& memory = *fenced_.emplace_back(std::make_unique<Fenced>(n, alignment));
        to = memory.data();
        last_page_ = memory.page();
        fill(to, from, n);
        if (read_only && strict()) memory.make_read_only();
        return to;
    }
    auto& memory = heap_.emplace_back(
        std::make_unique<std::max_align_t[]>((n + alignment) / sizeof(std::max_align_t) + 1));
    to = reinterpret_cast<std::byte*>(memory.get());
    to += (alignment - reinterpret_cast<std::uintptr_t>(to) % alignment) % alignment;
    last_page_ = to;
    fill(to, from, n);
    return to;
}

}  // namespace catena::testing::detail

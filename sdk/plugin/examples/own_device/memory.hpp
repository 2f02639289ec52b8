// The memory of an "island": a file that is mapped twice. The host gets addresses of the first
// mapping, which cannot be read or written, as with a real accelerator. The device's own code uses
// the second.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

class Memory {
public:
    // The system allocates pages on first use.
    static constexpr std::uint64_t size = std::uint64_t{4} << 30;

    Memory() {
        const int file = memfd_create("island", MFD_CLOEXEC);
        if (file >= 0 && ftruncate(file, size) == 0) {
            far_ = map(file, PROT_NONE);
            near_ = map(file, PROT_READ | PROT_WRITE);
        }
        if (file >= 0) close(file);
        if (far_ && near_) free_.emplace(0, size);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        if (far_) munmap(far_, size);
        if (near_) munmap(near_, size);
    }
    bool works() const { return !free_.empty(); }

    // Returns the first free block that is large enough; null if there is none.
    void* allocate(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        if (bytes > size) return nullptr;  // before it is rounded, which may overflow to 0
        bytes = rounded(bytes);
        for (auto block = free_.begin(); block != free_.end(); ++block) {
            const auto [offset, room] = *block;
            if (room < bytes) continue;
            free_.erase(block);
            if (room > bytes) free_.emplace(offset + bytes, room - bytes);
            return far_ + offset;
        }
        return nullptr;
    }
    void release(void* data, std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(data) - far_);
        bytes = rounded(bytes);
        madvise(near_ + offset, bytes, MADV_REMOVE);  // frees the pages
        const auto next = free_.find(offset + bytes);
        if (next != free_.end()) {
            bytes += next->second;
            free_.erase(next);
        }
        const auto after = free_.upper_bound(offset);
        if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == offset)
            std::prev(after)->second += bytes;
        else free_.emplace(offset, bytes);
    }
    std::uint64_t available() const {
        const std::lock_guard lock(mutex_);
        std::uint64_t sum = 0;
        for (const auto& [offset, room] : free_) sum += room;
        return sum;
    }

    // Returns the device's own address for a host's address, or null for other memory.
    void* near(const void* address) const {
        const auto offset = static_cast<const std::byte*>(address) - far_;
        return offset >= 0 && static_cast<std::uint64_t>(offset) < size ? near_ + offset : nullptr;
    }

private:
    static std::byte* map(int file, int rights) {
        void* const at = mmap(nullptr, size, rights, MAP_SHARED | MAP_NORESERVE, file, 0);
        return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
    }
    static std::uint64_t rounded(std::uint64_t bytes) {
        constexpr std::uint64_t page = 4096;
        return (bytes + page - 1) / page * page;
    }

    std::byte* far_ = nullptr;
    std::byte* near_ = nullptr;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes
};

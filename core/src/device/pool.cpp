// Free lists of the thread for small blocks.
#include <catena/core/pool.hpp>

#include "device/recycle.hpp"
#include "device/thread_exit.hpp"

#include <cstdint>
#include <new>

namespace catena {
namespace {

constexpr std::size_t granule = 64;
constexpr std::size_t classes = 16;
constexpr std::size_t most_kept_bytes = std::size_t{16} << 20;  // in one class of one thread

struct Block {
    Block* next;
};

struct FreeLists {
    Block* head[classes] = {};
    std::size_t count[classes] = {};
};

// Plain pointers, so that the hot path has no initialisation guard. `closed` marks a thread whose
// lists are gone: destructors of later objects fall back to the heap.
__attribute__((tls_model("initial-exec"))) thread_local FreeLists* lists = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local bool closed = false;

void close_lists(void* of_thread) {
    closed = true;
    lists = nullptr;
    auto* mine = static_cast<FreeLists*>(of_thread);
    for (Block* block : mine->head) {
        while (block) {
            Block* next = block->next;
            ::operator delete(block);
            block = next;
        }
    }
    delete mine;
}

// NULL where the thread ends, or without memory.
FreeLists* open_lists() noexcept {
    static const ThreadExit at_exit(close_lists);
    if (closed) return nullptr;
    auto* mine = new (std::nothrow) FreeLists;
    if (!mine || at_exit.set(mine)) return lists = mine;
    delete mine;
    return nullptr;
}

}  // namespace

void* pool_allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / granule;
    if (!recycle || index >= classes) return ::operator new(bytes);
    FreeLists* mine = lists;
    if (mine) {
        if (Block* block = mine->head[index]) {
            mine->head[index] = block->next;
            --mine->count[index];
            return block;
        }
    }
    return ::operator new((index + 1) * granule);
}

void pool_free(void* memory, std::size_t bytes) noexcept {
    const std::size_t index = (bytes - 1) / granule;
    FreeLists* mine = lists;
    if (!recycle || index >= classes) return ::operator delete(memory);
    if (!mine) mine = open_lists();
    if (!mine || mine->count[index] * (index + 1) * granule >= most_kept_bytes) {
        return ::operator delete(memory);
    }
    Block* block = new (memory) Block{mine->head[index]};
    mine->head[index] = block;
    ++mine->count[index];
}

}  // namespace catena

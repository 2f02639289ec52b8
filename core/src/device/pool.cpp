// Objects of a thread, and its free lists of small blocks.
#include <catena/core/per_thread.hpp>
#include <catena/core/pool.hpp>

#include "device/recycle.hpp"

#include <pthread.h>

#include <new>

namespace catena {

// Destroyed through a pthread key: glibc ends the process if it has no memory to register a
// thread_local object with a destructor.
struct ThreadObjects {
    // In the reverse order of construction. A destructor may construct another object.
    static void end(void*) {
        while (ThreadObject* last = first) {
            first = last->next_;
            delete last;
        }
    }
    static void add(std::unique_ptr<ThreadObject> object) {
        static pthread_key_t key;
        static const bool made = pthread_key_create(&key, end) == 0;
        if (!first && (!made || pthread_setspecific(key, &first) != 0)) throw std::bad_alloc();
        object->next_ = first;
        first = object.release();
    }
    static thread_local constinit ThreadObject* first;
};
thread_local constinit ThreadObject* ThreadObjects::first = nullptr;

void keep_for_thread(std::unique_ptr<ThreadObject> object) {
    ThreadObjects::add(std::move(object));
}

namespace {

constexpr std::size_t granule = 64;
constexpr std::size_t classes = 16;
constexpr std::size_t most_kept_bytes = std::size_t{16} << 20;  // in one class of one thread

struct Block {
    Block* next;
};

struct FreeLists {
    ~FreeLists() {
        for (Block* block : head)
            while (block) ::operator delete(std::exchange(block, block->next));
    }
    Block* head[classes] = {};
    std::size_t count[classes] = {};
};

__attribute__((tls_model("initial-exec"))) thread_local constinit PerThread<FreeLists> lists;

}  // namespace

void* pool_allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / granule;
    if (!recycle || index >= classes) return ::operator new(bytes);
    if (FreeLists* mine = lists.find()) {
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
    FreeLists* mine = recycle && index < classes ? lists.try_get() : nullptr;
    if (!mine || mine->count[index] * (index + 1) * granule >= most_kept_bytes)
        return ::operator delete(memory);
    mine->head[index] = new (memory) Block{mine->head[index]};
    ++mine->count[index];
}

}  // namespace catena

// A function that runs when a thread ends.
#pragma once

#include <pthread.h>

namespace catena {

// What a thread_local object with a destructor does, but it can be refused: glibc ends the process if it
// has no memory to register such an object. It does not run for the main thread.
class ThreadExit {
public:
    explicit ThreadExit(void (*end)(void*)) noexcept : made_(pthread_key_create(&key_, end) == 0) {}

    // Returns whether end(object) will run when the calling thread ends.
    bool set(void* object) const noexcept {
        return made_ && pthread_setspecific(key_, object) == 0;
    }

private:
    pthread_key_t key_ = 0;
    bool made_;
};

}  // namespace catena

// A list of objects for each thread, destroyed when the thread ends.
#include <catena/core/per_thread.hpp>

#include <new>

#include "device/thread_exit.hpp"

namespace catena {

struct ThreadObjects {
    // In the reverse order of construction. A destructor may construct another object.
    static void end(void*) {
        while (ThreadObject* last = first) {
            first = last->next_;
            delete last;
        }
    }
    static void add(std::unique_ptr<ThreadObject> object) {
        static const ThreadExit at_exit(end);
        if (first == nullptr && !at_exit.set(&first)) throw std::bad_alloc();
        object->next_ = first;
        first = object.release();
    }
    static thread_local constinit ThreadObject* first;
};
thread_local constinit ThreadObject* ThreadObjects::first = nullptr;

void keep_for_thread(std::unique_ptr<ThreadObject> object) {
    ThreadObjects::add(std::move(object));
}

}  // namespace catena

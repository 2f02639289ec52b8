// Keeps track of the variables that threads use while they compute without the interpreter's lock.
#include "in_use.hpp"

#include <catena/core/grad.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

namespace catena::python {
namespace {

thread_local InUse* current_use = nullptr;  // the scope in which the thread computes

// Threads wait here, without the interpreter's lock, until a scope has ended.
struct Ends {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t count = 0;
};
Ends& ends() {
    static auto* const all = new Ends();  // threads may wait until the process ends
    return *all;
}

}  // namespace

InUse* InUse::first_ = nullptr;
int InUse::working_ = 0;
int InUse::waiting_ = 0;
int InUse::to_look_ = 0;

InUse::InUse(By what, std::span<const Variable* const> variables, const void* object)
    : what_(what), object_(object) {
    for (const Variable* each : variables)
        if (each != nullptr && *each) given_.push_back(&each->node());
    begin(true);
    before_ = std::exchange(current_use, this);
    next_ = std::exchange(first_, this);
}

InUse::~InUse() {
    end();
    current_use = before_;
    InUse** place = &first_;
    while (*place != this) place = &(*place)->next_;
    *place = next_;
    for (Variable& each : handles_) drop(each);
}

void InUse::begin(bool signals) {
    if (what_ == By::gradients && working_ != 0) to_look_ = look_after_meeting;
    const bool looks = what_ == By::gradients && to_look_ != 0;
    if (looks) --to_look_;
    for (;;) {
        if (looks && (signals || !found_)) {
            try {
                find_all();
            } catch (...) {  // no memory: without signals, it waits until no other pass works
                if (signals) throw;
            }
        }
        if (!conflicts()) break;
        wait_for_a_change();
        if (signals && PyErr_CheckSignals() != 0) throw PythonError();
    }
    works_ = true;
    ++working_;
}

void InUse::end() noexcept {
    if (!std::exchange(works_, false)) return;
    --working_;
    if (waiting_ == 0) return;
    {
        const std::lock_guard<std::mutex> lock(ends().mutex);
        ++ends().count;
    }
    ends().changed.notify_all();
}

// Finds what a pass may use: the variables and calls of the graph, and the other results of the calls. The
// references and handles keep it from freeing variables in other threads, which changes calls and data.
void InUse::find_all() {
    auto found = std::make_unique<Found>();
    std::vector<VariableNode*> todo;
    const auto see = [&](VariableNode* node) {
        if (node == nullptr || !found->nodes.insert(node).second) return;
        if (node->requires_grad || !node->has_users()) found->exclusive.insert(node);
        found->references.emplace_back(node);
        if (node->has_users()) handles_.emplace_back(Ref<VariableNode>(node));
        todo.push_back(node);
    };
    for (VariableNode* each : given_) see(each);
    while (!todo.empty()) {
        const VariableNode& node = *todo.back();
        todo.pop_back();
        see(node.grad_node.get());
        GraphNode* const call = node.creator.get();
        if (call == nullptr || !found->nodes.insert(call).second) continue;
        for (const Ref<VariableNode>& input : call->inputs()) see(input.get());
        for (VariableNode* output : call->outputs()) see(output);
    }
    found_ = std::move(found);
}

bool InUse::uses(const void* object, By by) const {
    if (object == object_) return true;
    if (what_ == By::gradients) return !found_ || found_->nodes.contains(object);
    return by == By::call && std::ranges::find(given_, object) != given_.end();
}

// Whether another thread computes with something that this scope uses exclusively.
bool InUse::conflicts() const {
    if (what_ == By::call || working_ == 0) return false;
    for (const InUse* other = first_; other != nullptr; other = other->next_) {
        if (other == this || !other->works_ || other->what_ == By::call) continue;
        if (!found_ || !other->found_) return true;
        if (object_ != nullptr && object_ == other->object_) return true;
        const auto* few = &found_->exclusive;
        const auto* many = &other->found_->exclusive;
        if (few->size() > many->size()) std::swap(few, many);
        if (std::ranges::any_of(*few, [&](const void* node) { return many->contains(node); }))
            return true;
    }
    return false;
}

void InUse::wait_for_a_change() noexcept {
    Ends& all = ends();
    const std::uint64_t seen = [&] {
        const std::lock_guard<std::mutex> lock(all.mutex);
        return all.count;
    }();
    ++waiting_;
    PyThreadState* const thread = PyEval_SaveThread();
    {
        std::unique_lock<std::mutex> lock(all.mutex);
        // The limit is for handlers of signals, which the caller runs.
        all.changed.wait_for(lock, std::chrono::milliseconds(100),
                             [&] { return all.count != seen; });
    }
    in_python([&] { PyEval_RestoreThread(thread); });
    --waiting_;
}

void InUse::wait_until_free(const void* object, By by) {
    to_look_ = look_after_meeting;
    const auto is_used = [&] {
        for (const InUse* each = first_; each != nullptr; each = each->next_)
            if (each->works_ && each->uses(object, by)) return true;
        return false;
    };
    while (is_used()) {
        wait_for_a_change();
        if (PyErr_CheckSignals() != 0) throw PythonError();
    }
}

void InUse::keep(const Variable& variable) noexcept {
    const VariableNode& node = variable.node();
    if (node.unique() && !node.creator && !node.grad_node) return;  // no graph has it
    to_look_ = look_after_meeting;
    for (InUse* each = first_; each != nullptr; each = each->next_) {
        if (!each->works_ || each->what_ == By::call || each->found_) continue;
        try {
            each->handles_.push_back(variable);
        } catch (...) {  // no memory: the variable stays forever
            variable.node().retain();
            variable.node().add_user();
        }
        return;
    }
}

InUse* pause_use() noexcept {
    InUse* const use = std::exchange(current_use, nullptr);
    if (use != nullptr) use->end();
    return use;
}

void resume_use(InUse* use) noexcept {
    current_use = use;
    if (use != nullptr) use->begin(false);
}

std::vector<const Variable*> pointers_to(std::initializer_list<std::span<const Variable>> lists) {
    std::vector<const Variable*> pointers;
    for (const std::span<const Variable> list : lists)
        for (const Variable& each : list) pointers.push_back(&each);
    return pointers;
}

namespace {

// Called before each call of a pass. Only the main thread runs handlers. To take the interpreter's lock each
// time would cost more than a small call, so the clock decides.
void check_signals() {
    static thread_local constinit std::int64_t last =
        0;  // time in ns; -1 in other threads than main
    if (last < 0) return;
    constexpr std::int64_t interval = 50'000'000;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const std::int64_t time = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
    if (time - last < interval) return;
    last = gettid() == getpid() ? time : -1;
    if (last < 0) return;
    const WithLock lock;
    if (PyErr_CheckSignals() != 0) throw PythonError();
}

}  // namespace

void check_signals_in_backward() { set_backward_check(check_signals); }

}  // namespace catena::python

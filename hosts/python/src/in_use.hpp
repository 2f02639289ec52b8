// Keeps track of the variables that threads use while they compute without the interpreter's lock.
// Other threads wait before they change them.
#pragma once

#include "python.hpp"

#include <catena/core/memory.hpp>
#include <catena/core/variable.hpp>

#include <initializer_list>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

namespace catena::python {

// The variables that a thread uses in a scope of WithoutLock. Other threads wait before they change
// one of them, until the scope ends or runs Python: a function that Python defines may change
// variables itself, so they can change there. A thread that waits uses nothing, so no two threads
// wait for each other. Constructed, destroyed and asked with the lock.
class InUse {
public:
    // call: reads the data of the variables. gradients: reads and writes gradients and edges of all
    // variables from which these were computed.
    enum class By { call, gradients };
    // Waits for scopes whose gradients have a variable in common. object: another thing that is in
    // use. The variables, or null pointers, must outlive the scope. May run handlers of signals.
    InUse(By what, std::span<const Variable* const> variables, const void* object = nullptr);
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse();

    // Called before the data or the edges of a variable change, or another thing does.
    static void before_change(const Variable& variable) {
        if (working_ != 0 && variable) wait_until_free(&variable.node(), By::call);
    }
    static void before_change(const void* object) {
        if (working_ != 0) wait_until_free(object, By::call);
    }
    // Called before the gradient of a variable is read or changed.
    static void before_gradient(const Variable& variable) {
        if (working_ != 0 && variable) wait_until_free(&variable.node(), By::gradients);
    }
    // Makes the handle empty. Its data is kept as long as a scope may use it. Does not wait.
    static void drop(Variable& variable) noexcept {
        if (working_ != 0 && variable) keep(variable);
        variable = Variable();
    }

private:
    friend InUse* pause_use() noexcept;
    friend void resume_use(InUse* use) noexcept;

    static void wait_until_free(const void* object, By by);
    static void keep(const Variable& variable) noexcept;
    static void wait_for_a_change() noexcept;
    void begin(bool signals);
    void end() noexcept;
    void find_all();
    bool uses(const void* object, By by) const;
    bool conflicts() const;

    // The variables and calls that a pass may use.
    struct Found {
        std::unordered_set<const void*> nodes;      // of the graph: variables and calls
        std::unordered_set<const void*> exclusive;  // variables that no other pass may use as well
        std::vector<Ref<VariableNode>> references;
    };

    const By what_;
    bool works_ = false;
    const void* const object_;
    SmallVector<VariableNode*, 6> given_;
    std::unique_ptr<Found> found_;   // null: unknown, so it may use every variable
    std::vector<Variable> handles_;  // not shared with other owners
    InUse* next_ = nullptr;
    InUse* before_ = nullptr;

    static InUse* first_;
    static int working_;  // the number of scopes that compute now
    static int waiting_;  // the number of threads that wait
    // Passes that still look for their variables. Without a meeting of threads they need not.
    static int to_look_;
    static constexpr int look_after_meeting = 100;
};

// WithoutLock, if it is worth it, for a scope that uses variables.
class WithoutLockOn {
public:
    WithoutLockOn(InUse::By what, std::span<const Variable* const> variables, bool worth = true,
                  const void* object = nullptr) {
        if (!worth) return;
        use_.emplace(what, variables, object);
        others_.emplace();
    }

private:
    std::optional<InUse> use_;
    std::optional<WithoutLock> others_;  // destroyed first
};

// Pointers to the variables of lists.
std::vector<const Variable*> pointers_to(std::initializer_list<std::span<const Variable>> lists);

// Lets handlers of signals run during long passes over graphs, such as that of Ctrl-C.
void check_signals_in_backward();

}  // namespace catena::python

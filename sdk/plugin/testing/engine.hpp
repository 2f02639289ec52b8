// The one caller of catena::testing and catena-check: calls a function's callbacks and its kernels
// with all that a host lends them, in memory of a chosen kind, and says what came back.
#pragma once

#include <limits>

#include "testing/functions.hpp"
#include "testing/ground.hpp"

namespace catena::testing::detail {

// During a backward pass: the arguments that are NULL, in words, for crash handlers. Otherwise empty.
extern char absent[256];

enum class Step { infer, supports, plan, run, gradient };
const char* name_of(Step step);

// What came back from the last callback that was called.
struct Reply {
    Step step = Step::infer;
    catena_status status = CATENA_OK;
    bool served = true;              // false: supports() or plan() say that the kernel cannot do it
    std::string text;                // of fail()
    std::string thrown;              // an exception's that left the callback
    std::string piece_thrown;        // one's that left a piece of parallel_for()
    std::string misuse;              // what a plugin may not do to its host
    std::string damage;              // a write out of bounds
    std::string changed;             // a write to read-only arguments
    std::vector<catena_meta> metas;  // infer
    std::vector<Array> results;      // outputs and updated inputs; gradients
    // Told by a Watch: a fault that was asked for happened; calls of fail().
    bool fired = false;
    int failures = 0;

    bool ok() const { return served && status == CATENA_OK && thrown.empty() && misuse.empty(); }
};

// Sees each callback begin and end; `last`: it is the one that was asked for.
class Watch {
public:
    virtual void begin(bool last) = 0;
    virtual void end(Reply& reply) = 0;

protected:
    ~Watch() = default;
};

struct Given {
    std::vector<Array> x;
    std::vector<Array> y = {};   // backward
    std::vector<Array> gy = {};  // backward
    template <class Change>
    Given changed(const Change& change) const {
        Given result = *this;
        for (auto* arrays : {&result.x, &result.y, &result.gy})
            for (Array& a : *arrays)
                if (a) a = change(a);
        return result;
    }
};

class Engine {
public:
    // `attrs` has a value for each attribute.
    Engine(World& world, const catena_function& f, const std::vector<catena_value>& attrs,
           const Options& options);

    Placement placement;
    Watch* watch = nullptr;
    const World* owner;  // of the devices
    // The most memory that a call gets; one that needs more counts as not served.
    std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
    catena_ctx ctx;

    Reply infer(const Metas& x);
    // The callbacks up to `last`; outputs have the shapes and dtypes of y.
    Reply forward(const catena_kernel& k, const std::vector<Array>& x,
                  const std::vector<catena_meta>& y, Step last = Step::run) {
        std::vector<Array> saved;
        return forward(k, x, y, last, saved);
    }
    // `before`: the forward kernels of its variant. The first that serves the call runs, with random
    // numbers from `drawn` on.
    Reply backward(const catena_kernel& k, const std::vector<const catena_kernel*>& before,
                   const Given& given, std::uint64_t drawn, Step last = Step::run);
    // The variables of a composition.
    struct Vars {
        std::vector<catena_var*> x;
        std::vector<catena_var*> y;
        std::vector<catena_var*> gy;
        std::vector<catena_var*> gx;
    };
    // As the function gets them: variables that are not retained are missing or garbage.
    Vars lend(const Vars& vars, const Given& given);
    Vars make(const Given& given);
    // The function's composition.
    Reply gradient(const Given& given, Vars& vars);
    Reply gradient(const Given& given) {
        Vars vars = make(given);
        return gradient(given, vars);
    }
    // The inputs whose gradients are wanted: bit i % 64 of word i / 64.
    std::vector<std::uint64_t> targets(const std::vector<Array>& x) const;

private:
    struct Call;
    template <class Body>
    void enter(Reply& reply, Step step, bool last, const Body& body);
    const catena_value* attributes(Ground& ground) const;
    bool kernel_call(Call& call, std::vector<Array>& saved, Step last, Reply& reply);
    bool plan(Call& call, const catena_call* early, std::vector<Array>& saved,
              std::uint64_t& scratch, Step last, Reply& reply);
    Reply forward(const catena_kernel& k, const std::vector<Array>& x,
                  const std::vector<catena_meta>& y, Step last, std::vector<Array>& saved);
    Reply save(const std::vector<const catena_kernel*>& kernels, Given& given, std::uint64_t drawn,
               std::vector<Array>& saved);
    void lend(Call& call, Given& now, std::vector<Array>& gx, std::uint64_t kept_x,
              std::uint64_t kept_y);
    Unretained lends(bool retained, std::size_t port) const;

    World& world_;
    const catena_function& f_;
    std::vector<catena_value> attrs_;
    Options options_;
    bool armed_ = true;  // false: a forward kernel that a backward one needs
};

}  // namespace catena::testing::detail

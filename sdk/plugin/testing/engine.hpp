// The engine of catena::testing and catena-check for calls: calls a function's callbacks and
// kernels with a host's arguments, in memory of a chosen kind, and returns the outcome.
#pragma once

#include <catena/abi.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "testing/functions.hpp"

namespace catena::testing::detail {

// The sizes of structs in each released minor version: fixed numbers, except for the last line,
// which has the sizes in the current headers.
struct Release {
    std::uint16_t minor;
    std::size_t host, call, gradient_call, compose_call, plan, tensor, meta;
};
inline constexpr Release releases[] = {
    {0, sizeof(catena_host), sizeof(catena_call), sizeof(catena_gradient_call),
     sizeof(catena_compose_call), sizeof(catena_plan), sizeof(catena_tensor), sizeof(catena_meta)},
};

inline std::size_t size_in(const Release& r, const catena_host*) { return r.host; }
inline std::size_t size_in(const Release& r, const catena_call*) { return r.call; }
inline std::size_t size_in(const Release& r, const catena_gradient_call*) {
    return r.gradient_call;
}
inline std::size_t size_in(const Release& r, const catena_compose_call*) { return r.compose_call; }
inline std::size_t size_in(const Release& r, const catena_plan*) { return r.plan; }
inline std::size_t size_in(const Release& r, const catena_tensor*) { return r.tensor; }
inline std::size_t size_in(const Release& r, const catena_meta*) { return r.meta; }

struct Placement {
    enum class Kind {
        heap,
        fenced,  // each argument ends at an inaccessible page
        strict,  // also, const memory is read-only; supports() and plan() get no data
        larger,  // structs are longer than in these headers
    } kind = Kind::heap;
    Release release = releases[std::size(releases) - 1];
};

// The memory of one callback's arguments.
class Ground {
public:
    explicit Ground(const Placement& placement) : placement_(placement) {}

    const Placement& placement() const { return placement_; }
    bool strict() const { return placement_.kind == Placement::Kind::strict; }
    bool fenced() const { return strict() || placement_.kind == Placement::Kind::fenced; }

    // Lends a growable struct, with the size that it has in the placement's release.
    template <class T>
    const T* lend(T value) {
        return place(value, true);
    }
    template <class T>
    T* lend_writable(T value) {
        return place(value, false);
    }
    template <class T>
    const T* list(const std::vector<T>& items) {
        return list(items.data(), items.size());
    }
    template <class T>
    const T* list(const T* items, std::size_t n) {
        return reinterpret_cast<const T*>(bytes(items, n * sizeof(T), alignof(T), true));
    }
    template <class T>
    T* writable_list(const std::vector<T>& items) {
        return reinterpret_cast<T*>(
            bytes(items.data(), items.size() * sizeof(T), alignof(T), false));
    }
    // Returns a copy of n bytes; bytes of 0xff if `from` is null.
    std::byte* bytes(const void* from, std::size_t n, std::size_t alignment, bool read_only);
    // Returns the start of the mapping of the last bytes(); without a fence, the same as bytes().
    std::byte* last_page() const { return last_page_; }

private:
    static constexpr std::size_t growth = 64;

    template <class T>
    T* place(T value, bool read_only) {
        std::size_t size = size_in(placement_.release, &value);
        std::byte image[sizeof(T) + growth];
        std::memset(image, 0xa7, sizeof image);
        if (placement_.kind == Placement::Kind::larger) size = sizeof image;
        value.struct_size = static_cast<std::uint32_t>(size);
        std::memcpy(image, &value, sizeof(T));
        return reinterpret_cast<T*>(bytes(image, size, alignof(T), read_only));
    }

    Placement placement_;
    std::vector<std::shared_ptr<void>> fenced_;
    // Not std::shared_ptr: faults/leak of catena-check counts heap bytes, including control blocks.
    std::vector<std::unique_ptr<std::max_align_t[]>> heap_;
    std::byte* last_page_ = nullptr;
};

// The names of the NULL arguments of the backward pass that is running, for crash handlers; else
// null. If several threads run one, those of the last pass.
extern std::atomic<const char*> absent;

enum class Step { infer, supports, plan, run, gradient, compose };
const char* name_of(Step step);

// The outcome of the last callback that was called.
struct Reply {
    Step step = Step::infer;
    catena_status status = CATENA_OK;
    bool served = true;              // false: supports() or plan() refused the call
    std::string text;                // passed to fail()
    std::string thrown;              // by the callback: the exception's text
    std::string piece_thrown;        // by a piece of parallel_for(): its text
    std::string misuse;              // a violation of the host's rules
    std::string damage;              // a write out of bounds
    std::string changed;             // a write to read-only arguments
    std::vector<catena_meta> metas;  // of the outputs, by infer()
    Arrays results;                  // outputs and updated inputs; gradients
    // Set by a Watch: whether a requested fault happened, and the number of calls of fail().
    bool fired = false;
    int failures = 0;

    bool ok() const { return served && status == CATENA_OK && thrown.empty() && misuse.empty(); }
};

// Observes the begin and the end of each callback; `last`: it is the requested one. The plugin gets
// handles in place of contexts and variables.
class Watch {
public:
    virtual void begin(Step step, bool last) = 0;
    virtual void end(Reply& reply) = 0;
    virtual catena_ctx* handle(catena_ctx* ctx) = 0;
    virtual catena_var* handle(catena_var* var) = 0;
    virtual catena_var* variable(catena_var* handle) = 0;  // null if there is none of this handle
    virtual void forget_handles() = 0;                     // of the last callback

protected:
    ~Watch() = default;
};

struct Given {
    Arrays x;
    Arrays y = {};   // backward
    Arrays gy = {};  // backward
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
    catena_ctx ctx;

    // `before` is the initial value of each byte of the outputs.
    Reply infer(const Metas& x, int before = 0xff);
    // Returns shapes and dtypes by infer(), or by compose() without it.
    Reply shapes(const Arrays& x, int before = 0xff);
    // Runs the callbacks up to `last`; outputs have the shapes and dtypes of y.
    Reply forward(const catena_kernel& k, const Arrays& x, const std::vector<catena_meta>& y,
                  Step last = Step::run) {
        Arrays saved;
        return forward(k, x, y, last, saved);
    }
    // `before` are the forward kernels of its variant. The first that serves the call runs first,
    // with random numbers from `drawn` on.
    Reply backward(const catena_kernel& k, const std::vector<const catena_kernel*>& before,
                   const Given& given, std::uint64_t drawn, Step last = Step::run);
    // The variables of a gradient.
    struct Vars {
        std::vector<catena_var*> x;
        std::vector<catena_var*> y;
        std::vector<catena_var*> gy;
        std::vector<catena_var*> gx;
    };
    // Returns the variables as the function gets them: others than retained are missing or garbage.
    Vars lend(const Vars& vars, const Given& given);
    Vars make(const Given& given);
    // Runs gradient().
    Reply gradient(const Given& given, Vars& vars);
    Reply gradient(const Given& given) {
        Vars vars = make(given);
        return gradient(given, vars);
    }
    // Runs compose(). `shapes`: its calls compute shapes and dtypes alone.
    Reply compose(const std::vector<catena_var*>& x, std::vector<catena_var*>& y,
                  bool shapes = false);
    // The inputs whose gradients are wanted: bit i % 64 of word i / 64.
    std::vector<std::uint64_t> targets(const Arrays& x) const;

private:
    struct Call;
    void enter(Reply& reply, Step step, bool last,
               const std::function<catena_status(catena_ctx*)>& body);
    void begin_variables();
    std::vector<catena_var*> handles(const std::vector<catena_var*>& vars) const;
    const catena_value* attributes(Ground& ground) const;
    bool kernel_call(Call& call, Arrays& saved, Step last, Reply& reply);
    bool plan(Call& call, const catena_call* early, Arrays& saved, std::uint64_t& scratch,
              Step last, Reply& reply);
    Reply forward(const catena_kernel& k, const Arrays& x, const std::vector<catena_meta>& y,
                  Step last, Arrays& saved);
    Reply save(const std::vector<const catena_kernel*>& kernels, Given& given, std::uint64_t drawn,
               Arrays& saved);
    void lend(Call& call, Given& now, Arrays& gx, std::uint64_t kept_x, std::uint64_t kept_y);
    Unretained lends(bool retained, std::size_t port) const;
    // Returns an array of the bytes that stand for uninitialized memory.
    Array unwritten(const Dims& shape, catena_dtype dtype) const;

    World& world_;
    const catena_function& f_;
    std::vector<catena_value> attrs_;
    Options options_;
    bool armed_ = true;  // false while a forward kernel runs for a backward one
};

// Shapes and dtypes of the outputs by infer(), or by compose() without it or if the options say so, as
// arrays without memory. With `runs`, it throws if no kernel could
// serve the call and there is no composition.
Arrays shapes_of(World& world, const catena_function& f, const Arrays& x, const Attrs& attrs,
                 const Options& options, bool runs = false);

// World::backward(). `drawn` is the number of random numbers drawn before the forward call.
Arrays backward(World& world, const catena_function& f, const Given& given, const Attrs& attrs,
                const Options& options, std::uint64_t drawn);

}  // namespace catena::testing::detail

// The services of the controlled host.
#include "control.hpp"

#include <testing/exam.hpp>

#include <sys/mman.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <system_error>
#include <thread>

namespace catena::check {

Control control;

namespace {

constinit thread_local bool in_piece = false;

const catena_host& world() { return testing::World::host(); }

void in_pool(const char* service) {
    if (in_piece)
        control.blame(std::string("it calls ") + service +
                      "() on a worker of parallel_for(), where fail() alone is allowed");
}

// Calls body(ctx) with the context of a handle, or fails if this is the call that has to fail.
template <class Body>
catena_status service(catena_ctx* handle, const char* name, const Body& body) {
    const Inside host(false);
    in_pool(name);
    catena_ctx* const ctx = control.context(handle, name);
    if (ctx == nullptr) return CATENA_E_INVALID;
    if (control.fails()) return world().fail(ctx, CATENA_E_DEVICE, injected);
    const catena_status status = body(ctx);
    if (status != CATENA_OK) {  // the host told the reason
        const std::lock_guard lock(control.mutex);
        ++control.failures;
        if (control.text.empty()) control.text = ctx->error;
    }
    return status;
}
// Returns the variable of a handle; null and blames the plugin if it is not of the running callback.
catena_var* variable(const catena_var* handle, const char* service) {
    catena_var* const var = control.variable(const_cast<catena_var*>(handle));
    if (var == nullptr)
        control.blame(std::string("it passes a variable to ") + service +
                      "() that is not of this callback");
    return var;
}

catena_status call(catena_ctx* handle, const catena_callable* function,
                   const catena_named_value* attrs, std::uint32_t n_attrs, catena_var* const* x,
                   std::uint32_t n_x, catena_var** y, std::uint32_t n_y) {
    return service(handle, "call", [&](catena_ctx* ctx) -> catena_status {
        if (!control.has_variables()) {
            control.blame("it calls call() outside gradient() and compose()");
            return world().fail(ctx, CATENA_E_INVALID,
                                "call(): only within gradient() and compose()");
        }
        std::vector<catena_var*> inputs, results(n_y);
        for (std::uint32_t i = 0; i < n_x; ++i) {
            inputs.push_back(x[i] == nullptr ? nullptr : variable(x[i], "call"));
            if (x[i] != nullptr && inputs.back() == nullptr)
                return world().fail(ctx, CATENA_E_INVALID, "call(): not of this callback");
        }
        const catena_status status =
            world().call(ctx, function, attrs, n_attrs, inputs.data(), n_x, results.data(), n_y);
        for (std::uint32_t i = 0; status == CATENA_OK && i < n_y; ++i)
            y[i] = control.handle(results[i]);
        return status;
    });
}
catena_status read(catena_ctx* handle, const catena_var* var, const void** elements) {
    return service(handle, "read", [&](catena_ctx* ctx) -> catena_status {
        catena_var* const known = variable(var, "read");
        if (known == nullptr) return world().fail(ctx, CATENA_E_INVALID, "read(): no variable");
        const auto at = std::find(ctx->x.begin(), ctx->x.end(), known);
        const auto i = static_cast<std::size_t>(at - ctx->x.begin());
        if (ctx->composes == nullptr || at == ctx->x.end() ||
            (testing::detail::input_flags(*ctx->composes, i) & CATENA_PORT_HOST) == 0)
            control.blame("it calls read() for a variable that is no HOST input of compose()");
        return world().read(ctx, known, elements);
    });
}

using Piece = std::pair<std::int64_t, std::int64_t>;  // begin, end

void run_piece(catena_range_fn fn, void* user, Piece piece, std::int32_t slot) {
    const Inside plugin(true);
    const bool before = in_piece;
    in_piece = true;
    const std::string thrown =
        testing::detail::thrown_by([&] { fn(user, piece.first, piece.second, slot); });
    in_piece = before;
    if (thrown.empty()) return;
    const Inside host(false);
    control.blame("an exception leaves a piece of parallel_for(): " + thrown);
}

void run_pieces(catena_range_fn fn, void* user, std::vector<Piece> pieces) {
    const std::int32_t slots = control.slots;
    std::minstd_rand engine(7);
    if (control.pieces == Pieces::descending) std::reverse(pieces.begin(), pieces.end());
    if (control.pieces == Pieces::shuffled) std::shuffle(pieces.begin(), pieces.end(), engine);
    if (control.pieces != Pieces::threads) {
        std::int32_t slot = control.pieces == Pieces::ascending ? 0 : slots - 1;
        for (const Piece& piece : pieces) {
            run_piece(fn, user, piece, slot);
            if (control.pieces == Pieces::shuffled)
                slot = static_cast<std::int32_t>(engine() % static_cast<unsigned>(slots));
        }
        return;
    }
    std::atomic<std::size_t> next{0};
    const auto work = [&](std::int32_t slot) {
        for (std::size_t i; (i = next++) < pieces.size();) run_piece(fn, user, pieces[i], slot);
    };
    std::vector<std::jthread> team;
    team.reserve(static_cast<std::size_t>(slots));
    for (std::int32_t slot = slots; slot-- > 0;) {  // even if there are fewer pieces
        try {
            team.emplace_back(work, slot);
        } catch (const std::system_error&) {  // no more threads: this thread runs the pieces
            work(slot);
        }
    }
}

void parallel_for(catena_ctx* handle, std::int64_t n, std::int64_t grain, catena_range_fn fn,
                  void* user) {
    const Inside host(false);
    control.context(handle, "parallel_for");
    if (fn == nullptr) return control.blame("it calls parallel_for() without a function");
    if (grain < 1) {
        control.blame("it calls parallel_for() with a grain of " + std::to_string(grain));
        grain = 1;
    }
    if (n <= 0) return;
    if (in_piece || control.pieces == Pieces::whole || control.pieces == Pieces::nested) {
        const std::int32_t slot = control.pieces == Pieces::nested ? control.slots - 1 : 0;
        return run_piece(fn, user, {0, n}, slot);
    }
    grain *= std::max<std::int64_t>(1, n / grain / 4096);  // limits the number of pieces
    std::vector<Piece> pieces;
    for (std::int64_t begin = 0; begin < n; begin += std::min(grain, n - begin))
        pieces.emplace_back(begin, begin + std::min(grain, n - begin));
    run_pieces(fn, user, std::move(pieces));
}

catena_host make_host() {
    catena_host h = world();
    h.name = "catena-check";
    h.log = [](catena_ctx*, std::int32_t, const char* text) {
        const Inside host(false);
        in_pool("log");
        if (text == nullptr) control.blame("it calls log() without a text");
    };
    h.fail = [](catena_ctx* handle, catena_status status, const char* text) -> catena_status {
        const Inside host(false);
        catena_ctx* const ctx = control.context(handle, "fail");
        const std::lock_guard lock(control.mutex);
        ++control.failures;
        if (text == nullptr) control.misuse = "it calls fail() without a text";
        else if (control.text.empty()) control.text = text;
        if (status == CATENA_OK) control.misuse = "it calls fail() with CATENA_OK";
        return ctx == nullptr ? status : world().fail(ctx, status, text == nullptr ? "" : text);
    };
    h.parallel_for = parallel_for;
    h.slots = [](catena_ctx* handle) {
        const Inside host(false);
        control.context(handle, "slots");
        return control.slots;
    };
    h.philox = [](catena_ctx* handle, std::uint64_t n, std::uint64_t* seed, std::uint64_t* offset) {
        return service(handle, "philox",
                       [&](catena_ctx* ctx) { return world().philox(ctx, n, seed, offset); });
    };
    h.config = [](catena_ctx* handle, const char* key, std::int64_t otherwise) {
        const Inside host(false);
        in_pool("config");
        return world().config(control.context(handle, "config"), key, otherwise);
    };
    h.extensions = [](catena_ctx* handle, const char* id) -> const void* const* {
        static const void* const none[] = {nullptr};
        const Inside host(false);
        in_pool("extensions");
        if (control.empty_handed || control.fails()) return none;
        return world().extensions(control.context(handle, "extensions"), id);
    };
    h.find = [](catena_ctx* handle, const char* function, const catena_callable** out) {
        return service(handle, "find",
                       [&](catena_ctx* ctx) { return world().find(ctx, function, out); });
    };
    h.call = call;
    h.meta = [](catena_ctx* handle, const catena_var* var, catena_meta* out) {
        return service(handle, "meta", [&](catena_ctx* ctx) -> catena_status {
            const catena_var* const known = variable(var, "meta");
            return known == nullptr ? world().fail(ctx, CATENA_E_INVALID, "meta(): no variable")
                                    : world().meta(ctx, known, out);
        });
    };
    h.read = read;
    return h;
}

}  // namespace

void Control::begin(testing::detail::Step step, bool last) {
    forget();
    if (last && arm) arm();
    ++entered;
    step_ = step;
    inside_.emplace(true);
}
void Control::end(testing::detail::Reply& reply) {
    inside_.reset();
    step_.reset();
    reply.fired = allocation_failed() || fired;
    fail_allocation(0);
    failing_call = 0;
    reply.failures = failures;
    reply.text = text;
    reply.misuse = misuse;
}
// The addresses of handles: nobody can read there, and each is used once.
void* Control::add_handle(void* object) {
    constexpr std::size_t size = std::size_t{1} << 32, step = 16;
    static char* const begin = static_cast<char*>(
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (begin == MAP_FAILED) throw std::bad_alloc();
    static std::size_t next = 0;
    const std::lock_guard lock(handles_mutex_);
    void* const handle = begin + next;
    next = (next + step) % size;
    handles_[handle] = object;
    return handle;
}
catena_ctx* Control::handle(catena_ctx* ctx) { return static_cast<catena_ctx*>(add_handle(ctx)); }
catena_var* Control::handle(catena_var* var) { return static_cast<catena_var*>(add_handle(var)); }
void* Control::object_of(const void* handle) {
    const std::lock_guard lock(handles_mutex_);
    const auto found = handles_.find(handle);
    return found == handles_.end() ? nullptr : found->second;
}
catena_var* Control::variable(catena_var* handle) {
    return static_cast<catena_var*>(object_of(handle));
}
void Control::forget_handles() {
    const std::lock_guard lock(handles_mutex_);
    handles_.clear();
}
catena_ctx* Control::context(catena_ctx* handle, const char* service) {
    if (!step_ || handle == nullptr) return handle;  // entry() and init() get the context itself
    if (void* const ctx = object_of(handle)) return static_cast<catena_ctx*>(ctx);
    blame(std::string("it calls ") + service + "() with a context that is not of this callback");
    return nullptr;
}
bool Control::has_variables() const {
    using testing::detail::Step;
    return step_ == Step::gradient || step_ == Step::compose;
}
void Control::forget() {
    const std::lock_guard lock(mutex);
    failures = 0;
    text.clear();
    misuse.clear();
    calls = 0;
    fired = false;
}
bool Control::fails() {
    if (failing_call == 0) return false;
    const bool now = ++calls == failing_call;
    fired = fired || now;
    return now;
}
void Control::blame(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (misuse.empty()) misuse = what;
}

std::string judge(const testing::detail::Reply& r, const catena_function& f) {
    using testing::detail::Step;
    const auto said = [&](const std::string& text) {
        return fmt::format("{}() {}", name_of(r.step), text);
    };
    if (!r.thrown.empty()) return said("lets an exception out: " + r.thrown);
    if (!r.misuse.empty()) return said("and the host: " + r.misuse);
    if (r.status == CATENA_OK)
        return r.failures == 0 ? "" : said("returns CATENA_OK after fail(\"" + r.text + "\")");
    if (r.step == Step::plan && r.status == CATENA_E_UNSUPPORTED) return {};
    if (r.failures == 0)
        return r.fired ? "" : said(fmt::format("returns status {} without fail()", r.status));
    if (r.text.empty()) return said("gives an empty text to fail()");
    if (r.status == CATENA_E_NOMEM) return {};  // there may be no memory to format a text
    const bool shapes = r.step == Step::infer || r.step == Step::compose;
    const bool named = !shapes || testing::detail::explains(f, r.text);
    if (r.text[0] != '[' || r.text.find("] ") == std::string::npos || !named)
        return said(
            fmt::format("says \"{}\": expected \"[{}] what: expected X, got Y\"", r.text, f.name));
    return {};
}

const catena_host& controlled_host() {
    static const catena_host table = make_host();
    return table;
}

}  // namespace catena::check

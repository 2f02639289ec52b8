// Plugins in C++: exceptions, new, and libraries that are linked statically.
#include <new>
#include <stdexcept>
#include <string>

#include "../../bad_plugins/module.h"

static void use_library() {
    try {
        throw std::runtime_error(std::to_string(the_function.version));
    } catch (const std::exception &e) {
        if (e.what() != std::string("1")) the_function.version = 0;
    }
}
// good_static_library fails: nothing
// A statically linked C++ library contributes a constructor and a call of getentropy().
// needs: -static-libstdc++
SPOIL(good_static_library) { use_library(); }

// good_static_stripped fails: nothing
// Without symbol names, the C++ library's own constructors cannot be recognized.
// needs: -static-libstdc++
// link: -s
SPOIL(good_static_stripped) { use_library(); }

// leaks_new fails: faults/leak
// A kernel in C++ that deletes none of the memory that it allocates.
// once: faults/leak
// says: bytes more with each call: memory that nobody frees
INSTEAD(leaks_new, forward32) {
    static char *volatile made;
    made = new (std::nothrow) char[40]();
    if (made == nullptr) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] out of memory");
    return forward32(ctx, call);
}

// nan_throws fails: values/nan faults/exception fuzz/attributes fuzz/shapes
// A kernel throws an exception if an input is NaN.
BEFORE(nan_throws, forward64) {
    const double *x = static_cast<const double *>(data_of(call->x[0]));
    for (int64_t i = 0; i < size_of(call->x[0]); ++i)
        if (x[i] != x[i]) throw std::domain_error("x");
}

// throws_large fails: faults/exception
// A kernel throws an exception if an input is large.
BEFORE(throws_large, forward64) {
    const double *x = static_cast<const double *>(data_of(call->x[0]));
    for (int64_t i = 0; i < size_of(call->x[0]); ++i)
        if (x[i] > 1e17 && x[i] < 1e19) throw std::out_of_range("x");
}

struct work {
    const double *x;
    double *y;
    double scale;
};
static void CATENA_CALL piece(void *user, int64_t begin, int64_t end, int32_t) {
    const work &w = *static_cast<const work *>(user);
    for (int64_t i = begin; i < end; ++i) {
        if (w.x[i] != w.x[i]) throw std::domain_error("x");
        w.y[i] = w.scale * w.x[i] * w.x[i];
    }
}
// piece_throws fails: values/nan faults/exception fuzz/attributes fuzz/shapes
// A piece of parallel_for() throws an exception through the host if an input is NaN.
// says: an exception leaves a piece of parallel_for(): x
INSTEAD(piece_throws, forward64) {
    work w = {static_cast<const double *>(data_of(call->x[0])),
              static_cast<double *>(data_of(call->y[0])), SCALE};
    host->parallel_for(ctx, size_of(call->y[0]), 64, piece, &w);
    return CATENA_OK;
}

static catena_status CATENA_CALL throwing(catena_ctx *ctx, const catena_compose_call *call) {
    catena_meta meta = {};
    meta.struct_size = sizeof meta;
    const catena_callable *callable;
    catena_status status = host->meta(ctx, call->x[0], &meta);
    if (meta.ndim == 3) throw std::domain_error("three axes");
    if (status == CATENA_OK) status = host->find(ctx, "catena.neg", &callable);
    return status != CATENA_OK ? status
                               : host->call(ctx, callable, nullptr, 0, call->x, 1, call->y, 1);
}
// compose_throws fails: faults/exception inference/ranks
// A composition throws an exception if an input has three axes.
// options: --only faults --only inference/ranks
SPOIL(compose_throws) {
    the_function.infer = nullptr;
    the_function.retain_x = 0;
    the_function.compose = throwing;
    the_plugin.n_kernels = 0;
}

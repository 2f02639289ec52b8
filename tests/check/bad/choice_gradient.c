// The gradient ignores a bool attribute that no example sets.
// expect: gradients/kernel
// says: negative=true
#include "module.h"
static catena_attr_spec negative = {.struct_size = sizeof(catena_attr_spec),
                                    .kind = CATENA_ATTR_BOOL,
                                    .name = "negative",
                                    .doc = "the other sign",
                                    .def = {CATENA_ATTR_BOOL, 1, {.i = 0}}};
static const catena_attr_spec *both[] = {&attr_scale, &negative};
#define SPOILT(T)                                                                           \
    static catena_status CATENA_CALL spoilt_##T(catena_ctx *ctx, const catena_call *call) { \
        const catena_status status = forward_##T(ctx, call);                                \
        T *y = (T *)data_of(call->y[0]);                                                    \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n && call->attrs[1].v.i != 0; ++i) \
            y[i] = -y[i];                                                                   \
        return status;                                                                      \
    }
SPOILT(float)
SPOILT(double)
SPOIL {
    the_function.attrs = both;
    the_function.n_attrs = 2;
    forward32.run = spoilt_float;
    forward64.run = spoilt_double;
}

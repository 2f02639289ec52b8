// Binds dtypes, broadcasts shapes and determines layouts in every call; it allocates no memory.
#include "binding.hpp"

#include <cmath>

namespace catena_jit {
namespace {

Extents extents_of(const catena_tensor& tensor) {
    Extents extents;
    extents.ndim = tensor.dl.ndim;
    std::copy_n(tensor.dl.shape, extents.ndim, extents.at);
    return extents;
}

bool is_dense(const catena_tensor& tensor) {
    if ((tensor.flags & CATENA_TENSOR_CONTIGUOUS) != 0) return true;
    int64_t expected = 1;
    for (int d = tensor.dl.ndim - 1; d >= 0; --d) {
        if (tensor.dl.shape[d] == 0) return true;
        if (tensor.dl.shape[d] != 1 && tensor.dl.strides[d] != expected) return false;
        expected *= tensor.dl.shape[d];
    }
    return true;
}

// Whether an integer type can represent the number exactly; bool accepts any integer.
bool holds(int type, const catena_operand& x, bool floating) {
    // Rejects NaN and numbers outside of int64.
    if (floating && !(x.number.f >= -0x1p63 && x.number.f < 0x1p63)) return false;
    if (floating && std::trunc(x.number.f) != x.number.f) return false;
    const int64_t value = floating ? static_cast<int64_t>(x.number.f) : x.number.i;
    const catena_dtype& dtype = type_at(type).dtype;
    if (dtype.code == CATENA_CODE_BOOL || dtype.bits == 64) return true;
    const bool is_signed = dtype.code == CATENA_CODE_INT;
    const int64_t end = int64_t{1} << (dtype.bits - (is_signed ? 1 : 0));
    return value < end && value >= (is_signed ? -end : 0);
}

// Adds an innermost dimension; merges it with the last one if all arguments' strides allow it.
template <class Stride>
void append(Dims& dims, std::size_t arguments, int64_t extent, const Stride& stride) {
    if (extent == 1) return;
    const int last = dims.n - 1;
    bool joins = last >= 0;
    for (std::size_t k = 0; joins && k < arguments; ++k)
        joins = dims.stride[k][last] == stride(k) * extent;
    if (!joins) ++dims.n;
    const int d = dims.n - 1;
    dims.extent[d] = joins ? dims.extent[d] * extent : extent;
    for (std::size_t k = 0; k < arguments; ++k) dims.stride[k][d] = stride(k);
}

// Adds a dimension of extent 1 if there is none, because the source needs at least one.
void fill_up(Dims& dims, std::size_t arguments, bool neighbours) {
    if (dims.n != 0) return;
    dims.n = 1;
    dims.extent[0] = 1;
    for (std::size_t k = 0; k < arguments; ++k) dims.stride[k][0] = neighbours ? 1 : 0;
}

}  // namespace

Binding::Binding(const Formula& f, const catena_formula_call& c) : formula(f), call(c) {
    if (call.n_x != formula.n_x || (call.y != nullptr && call.n_y != formula.n_y))
        refuse(CATENA_E_INVALID, "arguments", formula.signature(),
               std::to_string(call.n_x) + " inputs");
    std::memset(&key, 0, sizeof key);
    key.dev = call.dev;
    bind_types();
    if (!formula.is_reduction() && lay_out_flat()) return;
    find_loop();
    if (formula.is_reduction()) lay_out_reduction();
    else lay_out();
}

void Binding::refuse_letter(std::size_t i, int bound, int type) const {
    std::string other;
    for (std::size_t k = 0; k < i && other.empty(); ++k)
        if (formula.at(k).letter == formula.at(i).letter && tensor(k) != nullptr)
            other = name_of(k);
    refuse(CATENA_E_DTYPE, name_of(i),
           std::string(type_at(bound).name) + " (" + formula.at(i).letter + ", as " + other + ")",
           type_at(type).name);
}

void Binding::bind_types() {
    std::ranges::fill(letter, -1);
    for (std::size_t i = 0; i < formula.count(); ++i) {
        const catena_tensor* t = tensor(i);
        if (t == nullptr) continue;
        const int type = type_of(t->dl.dtype);
        if (type < 0) refuse(CATENA_E_DTYPE, name_of(i), "a dtype that formulas know", "another");
        const Parameter& p = formula.at(i);
        if (p.letter != 0) {
            int& bound = letter[p.letter - 'A'];
            if (bound < 0) bound = type;
            else if (bound != type) refuse_letter(i, bound, type);
        } else if (p.type != type) {
            refuse(CATENA_E_DTYPE, name_of(i), type_at(p.type).name, type_at(type).name);
        }
        key.type[i] = static_cast<uint8_t>(type);
        if ((formula.is_output(i) || formula.at(i).writes) &&
            (t->flags & CATENA_TENSOR_READONLY) != 0)
            refuse(CATENA_E_INVALID, name_of(i), "an array that may be written", "a read-only one");
        if (formula.at(i).raw) {
            if (!is_dense(*t))
                refuse(CATENA_E_UNSUPPORTED, name_of(i), "a dense array", "a strided one");
            key.form[i] = form_raw;
        }
    }
    // Arrays bind placeholders first; numbers are then converted to the bound type.
    for (std::size_t i = 0; i < formula.n_x; ++i) {
        const catena_operand& x = call.x[i];
        if (x.tensor != nullptr) continue;
        if (formula.at(i).raw) refuse(CATENA_E_INVALID, name_of(i), "an array", "a number");
        const int given = type_of(x.dtype);
        int type = formula.at(i).type;
        if (formula.at(i).letter != 0) {
            int& bound = letter[formula.at(i).letter - 'A'];
            if (bound < 0) bound = given;
            type = bound;
        }
        if (!is_floating(type) && !holds(type, x, is_floating(given)))
            refuse(CATENA_E_DTYPE, name_of(i), std::string("a number for ") + type_at(type).name,
                   is_floating(given) ? std::to_string(x.number.f) : std::to_string(x.number.i));
        key.type[i] = static_cast<uint8_t>(type);
        key.form[i] = form_number;
    }
    for (std::size_t i = formula.n_x; i < formula.count(); ++i) {
        if (tensor(i) != nullptr) continue;
        const Parameter& p = formula.at(i);
        const int type = p.letter != 0 ? letter[p.letter - 'A'] : p.type;
        if (type < 0)
            refuse(CATENA_E_DTYPE, name_of(i),
                   std::string("an input of dtype ") + p.letter + " or an array for the output",
                   "neither");
        key.type[i] = static_cast<uint8_t>(type);
        key.form[i] = p.raw ? form_raw : form_next;
    }
}

// The usual case: contiguous arrays of the same shape, and numbers. Returns false in other cases.
bool Binding::lay_out_flat() {
    const catena_tensor* first = nullptr;
    for (std::size_t i = 0; i < formula.count(); ++i) {
        const catena_tensor* t = tensor(i);
        if (t == nullptr || formula.at(i).raw) continue;
        if (first == nullptr) first = t;
        if ((t->flags & CATENA_TENSOR_CONTIGUOUS) == 0 || t->dl.ndim != first->dl.ndim)
            return false;
        for (int d = 0; d < t->dl.ndim; ++d)
            if (t->dl.shape[d] != first->dl.shape[d]) return false;
        key.form[i] = form_next;
    }
    if (first == nullptr || (call.flags & CATENA_FORMULA_SHAPE) != 0) return false;
    loop = extents_of(*first);
    size = outputs = loop.size();
    output = loop;
    key.dims = 1;
    return true;
}

void Binding::join(std::size_t i, const Extents& shape) {
    Extents all;
    all.ndim = std::max(loop.ndim, shape.ndim);
    for (int d = 0; d < all.ndim; ++d) {
        const auto from_end = [&](const Extents& e) {
            const int at = d - (all.ndim - e.ndim);
            return at < 0 ? int64_t{1} : e.at[at];
        };
        const int64_t a = from_end(loop);
        const int64_t b = from_end(shape);
        if (a != b && a != 1 && b != 1)
            refuse(CATENA_E_SHAPE, name_of(i), "a shape that goes with " + loop.text(),
                   shape.text());
        all.at[d] = a == 1 ? b : a;
    }
    loop = all;
}

// Plain arrays determine the loop; without any, the call's shape or the first indexed array does.
void Binding::find_loop() {
    loop.ndim = 0;
    bool known = false;
    if ((call.flags & CATENA_FORMULA_SHAPE) != 0) {
        loop.ndim = call.ndim;
        std::copy_n(call.shape, call.ndim, loop.at);
        known = true;
    }
    const Extents asked = loop;
    const bool reduction = formula.is_reduction();
    for (std::size_t i = 0; i < (reduction ? formula.n_x : formula.count()); ++i) {
        const catena_tensor* t = tensor(i);
        if (t == nullptr || formula.at(i).raw) continue;
        const Extents shape = extents_of(*t);
        join(i, shape);
        if (formula.is_output(i) && !(loop == shape))
            refuse(CATENA_E_SHAPE, name_of(i), "shape " + loop.text(), shape.text());
        known = true;
    }
    if ((call.flags & CATENA_FORMULA_SHAPE) != 0 && !(loop == asked))
        refuse(CATENA_E_SHAPE, "shape", loop.text(), asked.text());
    for (std::size_t i = 0; i < formula.count() && !known; ++i) {
        const catena_tensor* t = tensor(i);
        // An indexed input does not determine the shape of outputs that do not exist yet.
        const bool outputs_follow = !reduction && formula.n_y != 0;
        if (t == nullptr || (outputs_follow && !formula.is_output(i))) continue;
        loop = extents_of(*t);
        known = true;
    }
    if (!known)
        refuse(CATENA_E_INVALID, "size",
               "a plain array argument, an array for an output or over(shape)", "none");
    size = loop.size();
}

// Computes the strides of an argument along the dimensions of loop; 0 where it is broadcast.
void Binding::strides_of(std::size_t i, int64_t* strides) const {
    const catena_tensor* t = tensor(i);
    std::fill_n(strides, loop.ndim, int64_t{0});
    if (formula.at(i).raw) return;
    if (t == nullptr && formula.is_output(i)) {
        int64_t step = 1;
        for (int d = loop.ndim - 1; d >= 0; --d) {
            strides[d] = step;
            step *= loop.at[d];
        }
        return;
    }
    if (t == nullptr) return;
    for (int d = 0; d < t->dl.ndim; ++d)
        if (t->dl.shape[d] != 1) strides[loop.ndim - t->dl.ndim + d] = t->dl.strides[d];
}

void Binding::set_forms(const Dims& lanes) {
    const std::size_t plain = formula.is_reduction() ? formula.n_x : formula.count();
    for (std::size_t i = 0; i < plain; ++i) {
        if (key.form[i] == form_number || formula.at(i).raw) continue;
        const int64_t step = lanes.stride[i][lanes.n - 1];
        key.form[i] = step == 0 ? form_once : step == 1 ? form_next : form_strided;
    }
}

void Binding::lay_out() {
    int64_t strides[max_arguments][CATENA_MAX_NDIM];
    const std::size_t n = formula.count();
    for (std::size_t i = 0; i < n; ++i) strides_of(i, strides[i]);
    for (int d = 0; d < loop.ndim; ++d)
        append(dims, n, loop.at[d], [&](std::size_t i) { return strides[i][d]; });
    fill_up(dims, n, true);
    set_forms(dims);
    output = loop;
    outputs = size;
    key.dims = static_cast<uint8_t>(dims.n);
}

void Binding::lay_out_reduction() {
    bool chosen[CATENA_MAX_NDIM] = {};
    if ((call.flags & CATENA_FORMULA_AXES) == 0) std::ranges::fill(chosen, true);
    for (int32_t k = 0; (call.flags & CATENA_FORMULA_AXES) != 0 && k < call.n_axes; ++k) {
        const int axis = call.axes[k] < 0 ? call.axes[k] + loop.ndim : call.axes[k];
        if (axis < 0 || axis >= loop.ndim || chosen[axis])
            refuse(CATENA_E_INVALID, "axis",
                   "each from " + std::to_string(-loop.ndim) + " to " +
                       std::to_string(loop.ndim - 1) + " once, for the shape " + loop.text(),
                   call.axes[k]);
        chosen[axis] = true;
    }
    int64_t strides[max_arguments][CATENA_MAX_NDIM];
    const std::size_t n = formula.n_x;
    for (std::size_t i = 0; i < n; ++i) strides_of(i, strides[i]);
    const bool keepdims = (call.flags & CATENA_FORMULA_KEEPDIMS) != 0;
    outputs = reduced = 1;
    key.along = 1;
    int last = -1;  // last dimension added: 1 reduced, 0 kept, -1 none
    for (int d = 0; d < loop.ndim; ++d) {
        const auto stride = [&](std::size_t i) { return strides[i][d]; };
        if (chosen[d]) {
            reduced *= loop.at[d];
            if (keepdims) output.at[output.ndim++] = 1;
        } else {
            outputs *= loop.at[d];
            output.at[output.ndim++] = loop.at[d];
        }
        if (loop.at[d] == 1) continue;
        append(chosen[d] ? reduced_dims : dims, n, loop.at[d], stride);
        last = chosen[d] ? 1 : 0;
    }
    if (last == 0) key.along = 0;
    fill_up(dims, n, false);
    fill_up(reduced_dims, n, false);
    set_forms(key.along != 0 ? reduced_dims : dims);
    key.dims = static_cast<uint8_t>(dims.n);
    key.reduced = static_cast<uint8_t>(reduced_dims.n);
    for (std::size_t i = formula.n_x; i < formula.count(); ++i) {
        const catena_tensor* t = tensor(i);
        if (t == nullptr) continue;
        if (!(extents_of(*t) == output) || !is_dense(*t))
            refuse(CATENA_E_SHAPE, name_of(i), "a dense array of shape " + output.text(),
                   extents_of(*t).text());
        key.form[i] = form_next;
    }
    if (reduced == 0 && outputs != 0 && !formula.has_identity)
        refuse(CATENA_E_VALUE, "axis", "at least one element in each reduced part",
               "shape " + loop.text() + " and no identity");
}

std::string Binding::types_text() const {
    return formula.listed([&](std::size_t i) {
        return (key.form[i] == form_raw ? "raw " : "") + std::string(type_at(key.type[i]).name) +
               " " + name_of(i) + (key.form[i] == form_number ? " (a number)" : "");
    });
}

}  // namespace catena_jit

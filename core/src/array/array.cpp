// Arrays: bodies, views, shapes and dtypes.
#include "array/array_ops.hpp"

#include <cstring>

namespace catena {

Ref<ArrayBody> new_body(DeviceState& device) {
    auto* body = new (pool_allocate(sizeof(ArrayBody))) ArrayBody;
    body->device = &device;
    body->meta.ndim = -1;  // unknown until infer() has run
    body->meta.dtype = {};
    body->meta.struct_size = sizeof(catena_meta);
    body->meta.device_type = device.table.dlpack_type;
    catena_tensor& t = body->tensor;
    t.struct_size = sizeof(catena_tensor);
    t.flags = CATENA_TENSOR_CONTIGUOUS;
    t.dl.data = nullptr;
    t.dl.device_type = device.table.dlpack_type;
    t.dl.device_id = device.ordinal;
    t.dl.shape = body->meta.shape;
    t.dl.strides = body->strides;
    t.dl.byte_offset = 0;
    t.align_log2 = 6;
    t.reserved = 0;
    t.host_ref = nullptr;
    return Ref<ArrayBody>::adopt(body);
}

bool shape_known(ArrayBody& body) {
    const std::uint32_t item = body.meta.dtype.bits / 8u;
    std::int64_t size = 1, room = 1;  // room: without extents of 0, so no partial product overflows
    bool sane = body.meta.ndim >= 0 && body.meta.ndim <= CATENA_MAX_NDIM;
    for (int i = sane ? body.meta.ndim - 1 : -1; sane && i >= 0; --i) {
        const std::int64_t extent = body.meta.shape[i];
        body.strides[i] = size;
        sane = extent >= 0 && !__builtin_mul_overflow(room, extent > 0 ? extent : 1, &room);
        size = extent > 0 && size > 0 ? room : 0;
    }
    body.meta.device_type = body.tensor.dl.device_type;  // infer() may have overwritten it
    body.tensor.dl.ndim = body.meta.ndim;
    body.tensor.dl.dtype = body.meta.dtype;
    body.tensor.nbytes = static_cast<std::uint64_t>(size) * item;
    return sane && room <= std::int64_t{1} << 59;  // 2^62 bytes at most
}

void alias(ArrayBody& view, const Ref<ArrayBody>& source) {
    view.tensor.dl.data = source->tensor.dl.data;
    view.tensor.align_log2 = source->tensor.align_log2;
    ArrayBody* owner = source->base ? source->base : source.get();
    owner->retain();
    view.base = owner;
}

void ArrayBody::destroy() noexcept {
    drop_memory(*this);
    this->~ArrayBody();
    pool_free(this, sizeof(ArrayBody));
}

void make_shell(Array& array) noexcept {
    ArrayBody& body = *array.body();
    if (body.unique()) {
        drop_memory(body);
        body.tensor.dl.data = nullptr;
        return;
    }
    try {
        Ref<ArrayBody> shell = new_body(*body.device);
        shell->meta = body.meta;
        shape_known(*shell);
        array = Array(std::move(shell));
    } catch (const std::bad_alloc&) {  // the array stays as it is
    }
}

Ref<ArrayBody> make_body(const Shape& shape, Dtype dtype, DeviceState& device) {
    Ref<ArrayBody> body = new_body(device);
    body->meta.dtype = to_abi(dtype);
    body->meta.ndim = shape.ndim();
    std::copy(shape.begin(), shape.end(), body->meta.shape);
    if (!shape_known(*body)) {
        raise<MemoryError>(
            "[array] shape {}: expected extents other than 0 that multiply to at most 2^59", shape);
    }
    seal(*body);
    return body;
}

namespace {

const ArrayBody& need(const Array& array) {
    if (!array) raise<InvalidError>("[array] expected an array, got an empty handle");
    return *array.body();
}

constexpr std::string_view dtype_names[dtype_count] = {"float16", "bfloat16", "float32", "float64",
                                                       "int32",   "int64",    "uint8",   "bool"};

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Converts an element, half precision by way of float.
template <class To, class From>
To converted(From value) {
    if constexpr (is_half<From>) return converted<To>(to_float(value));
    else if constexpr (is_half<To> && !std::is_same_v<From, float>) {
        return converted<To>(catena_to_float_odd(static_cast<double>(value)));
    } else if constexpr (std::is_same_v<To, float16>) return to_float16(value);
    else if constexpr (std::is_same_v<To, bfloat16>) return to_bfloat16(value);
    else if constexpr (std::is_same_v<To, bool>) return value != From(0);
    else return static_cast<To>(value);
}

}  // namespace

ArrayBody& need_memory(const Array& array) {
    need(array);
    if (!has_memory(*array.body())) {
        raise<GraphError>(
            "[array] expected data, got only a shape: the graph does not keep the data of a "
            "variable without handles");
    }
    return *array.body();
}

Array Array::empty(const Shape& shape, Dtype dtype, Device device) {
    return empty_on(current_queue(state_or_current(device)), shape, dtype);
}

Array empty_on(Queue& queue, const Shape& shape, Dtype dtype) {
    Ref<ArrayBody> body = make_body(shape, dtype, queue.device);
    allocate(*body, queue);
    return Array(std::move(body));
}

Array Array::without_memory(const Shape& shape, Dtype dtype, Device device) {
    return Array(make_body(shape, dtype, state_or_current(device)));
}

Array Array::full(const Shape& shape, double value, Dtype dtype, Device device) {
    Array array = empty(shape, dtype, device);
    array.fill(value);
    return array;
}

Shape Array::shape() const {
    const ArrayBody& body = need(*this);
    return Shape(std::span(body.meta.shape, static_cast<std::size_t>(body.meta.ndim)));
}
int Array::ndim() const { return need(*this).meta.ndim; }
std::int64_t Array::nbytes() const { return static_cast<std::int64_t>(need(*this).tensor.nbytes); }
std::int64_t Array::size() const {
    const ArrayBody& body = need(*this);
    return static_cast<std::int64_t>(body.tensor.nbytes) / (body.meta.dtype.bits / 8);
}
Device Array::device() const { return Device(need(*this).device); }
Dtype Array::dtype() const {
    Dtype dtype{};
    from_abi(need(*this).meta.dtype, dtype);
    return dtype;
}

Array Array::reshape(std::initializer_list<std::int64_t> extents) const {
    if (std::count(extents.begin(), extents.end(), -1) != 1) return reshape(Shape(extents));
    std::int64_t others = 1;
    for (std::int64_t extent : extents) others *= extent == -1 ? 1 : extent;
    if (others <= 0 ? size() != 0 : size() % others != 0) {
        raise<ShapeError>("[reshape] shape: expected {} elements as in {}, got ({})", size(),
                          shape(), fmt::join(extents, ", "));
    }
    std::vector<std::int64_t> known(extents);
    std::replace(known.begin(), known.end(), std::int64_t{-1}, others ? size() / others : 0);
    return reshape(Shape(known));
}

Array Array::reshape(const Shape& target) const {
    need_memory(*this);
    if (target.size() != size()) {
        raise<ShapeError>("[reshape] shape: expected {} elements as in {}, got {}", size(), shape(),
                          target);
    }
    return view(0, target);
}

Array Array::view(std::int64_t begin, const Shape& target) const {
    const ArrayBody& body = need_memory(*this);
    if (begin < 0 || target.size() > size() || begin > size() - target.size()) {
        raise<ShapeError>("[view] elements: expected some of the {} of {}, got {} from {} on",
                          size(), shape(), target.size(), begin);
    }
    Ref<ArrayBody> view = make_body(target, dtype(), *body.device);
    alias(*view, body_);
    if (begin > 0) {
        catena_tensor& t = view->tensor;
        t.dl.data = static_cast<char*>(t.dl.data) + begin * (t.dl.dtype.bits / 8);
        t.align_log2 = alignment_of(t.dl.data);
    }
    return Array(std::move(view));
}

Array Array::copy() const {
    Array target = empty_on(current_queue(*need(*this).device), shape(), dtype());
    target.copy_from(*this);
    return target;
}

// ---- errors, shapes and dtypes: their texts, and the conversion of elements on the host

std::string one_line(std::string text) {
    const auto control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
    std::ranges::replace_if(text, control, '?');
    return text;
}

std::string beginning(std::string_view text) {
    std::size_t n = 200;
    if (text.size() <= n) return std::string(text);
    while (n > 0 && (text[n] & 0xc0) == 0x80) --n;
    return std::string(text.substr(0, n)) + "...";
}

void throw_status(catena_status status, const std::string& text) {
    const auto throw_known = [&]<catena_status... S>(std::integer_sequence<catena_status, S...>) {
        (..., (status == S ? throw ErrorOf<S>(text) : void()));
    };
    throw_known(
        std::integer_sequence<catena_status, CATENA_E_INVALID, CATENA_E_DTYPE, CATENA_E_SHAPE,
                              CATENA_E_UNSUPPORTED, CATENA_E_NOMEM, CATENA_E_DEVICE,
                              CATENA_E_INTERNAL, CATENA_E_NOT_DIFFERENTIABLE, CATENA_E_VALUE>());
    throw Error(text + " (status " + std::to_string(status) + ")", status);
}

Shape::Shape(std::span<const std::int64_t> extents) : ndim_(static_cast<int>(extents.size())) {
    if (extents.size() > CATENA_MAX_NDIM) {
        raise<ShapeError>("[shape] rank: expected at most {}, got {}",
                          static_cast<int>(CATENA_MAX_NDIM), extents.size());
    }
    if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent < 0; })) {
        raise<ShapeError>("[shape] extents: expected none below 0, got ({})",
                          fmt::join(extents, ", "));
    }
    std::copy(extents.begin(), extents.end(), extents_);
}

std::string shape_to_string(const std::int64_t* extents, int ndim) {
    return fmt::format("({}{})", fmt::join(extents, extents + ndim, ", "), ndim == 1 ? "," : "");
}

std::string to_string(const Shape& shape) { return shape_to_string(shape.data(), shape.ndim()); }

std::string_view name(Dtype dtype) noexcept { return dtype_names[static_cast<int>(dtype)]; }

std::string name(catena_dtype abi) {
    Dtype dtype;
    if (from_abi(abi, dtype)) return std::string(name(dtype));
    return fmt::format("dtype(code {}, {} bits, {} lanes)", abi.code, abi.bits, abi.lanes);
}

Dtype dtype_from_name(std::string_view text) {
    for (int i = 0; i < dtype_count; ++i)
        if (dtype_names[i] == text) return static_cast<Dtype>(i);
    raise<DtypeError>("[dtype] name: expected one of {}, got '{}'", fmt::join(dtype_names, " "),
                      beginning(text));
}

void convert(Dtype from, const void* source, Dtype to, void* target, std::int64_t n) {
    if (n == 0) return;
    if (from == to) {
        std::memcpy(target, source, static_cast<std::size_t>(n * item_size(from)));
        return;
    }
    with_type(from, [&]<class From>(From) {
        with_type(to, [&]<class To>(To) {
            const auto* in = static_cast<const From*>(source);
            std::transform(in, in + n, static_cast<To*>(target),
                           [](From value) { return converted<To>(value); });
        });
    });
}

}  // namespace catena

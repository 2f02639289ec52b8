// Arrays for tests: guarded memory, and elements of any dtype.
#include "catena/testing/array.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "testing/types.hpp"

namespace catena::testing {

Array::Array(Dims shape, catena_dtype dtype, std::size_t shift, std::uint8_t pattern)
    : shape_(std::move(shape)), dtype_(dtype), shift_(shift), pattern_(pattern) {
    strides_.resize(shape_.size());
    for (std::size_t d = shape_.size(); d-- > 0; size_ = plugin::times(size_, shape_[d]))
        strides_[d] = size_;
    // Allocates 8 bytes per element: a kernel that writes wider elements is detected and does no harm.
    allocate((8 - std::min(8u, dtype.bits / 8u)) * static_cast<std::size_t>(size_),
             is_floating(dtype) ? 0xff : pattern);
}

Array Array::without_memory(Dims shape, catena_dtype dtype) {
    Array a;
    a.shape_ = std::move(shape);
    a.dtype_ = dtype;
    a.size_ = plugin::size_of(a.shape_);
    a.shape_only_ = true;
    return a;
}

Array Array::room(std::int64_t bytes, std::uint8_t initial) {
    Array a;
    a.shape_ = {bytes};
    a.dtype_ = dtype_of<std::uint8_t>();
    a.strides_ = {1};
    a.size_ = bytes;
    a.allocate(0, initial);
    return a;
}

Array Array::random(Dims shape, catena_dtype dtype, unsigned seed, double low, double high) {
    Array a(std::move(shape), dtype);
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> draw(low, high);
    std::vector<double> values(static_cast<std::size_t>(a.size_));
    for (double& value : values) value = draw(engine);
    a.set_numbers(values);
    return a;
}

Array Array::constant(Dims shape, catena_dtype dtype, double value) {
    Array a(std::move(shape), dtype);
    a.set_numbers(std::vector<double>(static_cast<std::size_t>(a.size_), value));
    return a;
}

double Array::at(std::int64_t i) const {
    return detail::with_type(dtype_, [&]<class T>(T) { return detail::to_double(data<T>()[i]); });
}
void Array::set(std::int64_t i, double value) {
    detail::with_type(dtype_, [&]<class T>(T) {
        reinterpret_cast<T*>(bytes())[i] = detail::from_double<T>(value);
    });
}
std::vector<double> Array::numbers() const {
    std::vector<double> values(static_cast<std::size_t>(size_));
    detail::with_type(dtype_, [&]<class T>(T) {
        std::transform(data<T>(), data<T>() + size_, values.begin(), detail::to_double<T>);
    });
    return values;
}
void Array::set_numbers(const std::vector<double>& values) {
    need_size(values.size());
    detail::with_type(dtype_, [&]<class T>(T) {
        std::transform(values.begin(), values.end(), reinterpret_cast<T*>(bytes()),
                       detail::from_double<T>);
    });
}
void Array::fill(std::uint8_t byte) {
    if (nbytes() > 0) std::memset(bytes(), byte, nbytes());
}

Array Array::to(catena_dtype dtype) const {
    if (plugin::same(dtype, dtype_)) return moved(0);  // double cannot represent large integers
    Array a(shape_, dtype);
    a.set_numbers(numbers());
    return a;
}
Array Array::reshaped(Dims shape) const {
    Array a(std::move(shape), dtype_);
    a.take(*this);
    return a;
}
Array Array::moved(std::size_t shift, std::uint8_t pattern) const {
    Array a(shape_, dtype_, shift, pattern);
    a.take(*this);
    return a;
}

std::string Array::damage() const {
    const auto* all = reinterpret_cast<const std::uint8_t*>(chunks_.read());
    const std::uint8_t* first = data<std::uint8_t>();
    const std::uint8_t* last = first + nbytes();
    const std::uint8_t* end = all + memory_bytes();
    const auto whole = [&](const std::uint8_t* from, const std::uint8_t* to) {
        const auto n = static_cast<std::size_t>(to - from);
        return n == 0 || (*from == pattern_ && std::memcmp(from, from + 1, n - 1) == 0);
    };
    const auto foreign = [&](std::uint8_t b) { return b != pattern_; };
    const auto text = [](std::ptrdiff_t near, std::ptrdiff_t far, const char* where) {
        const std::string bytes = near == far ? "byte " : "bytes ";
        return bytes + std::to_string(near) + (near == far ? "" : " to " + std::to_string(far)) +
               where;
    };
    if (!whole(last, end)) {
        const auto* from = std::find_if(last, end, foreign);
        const auto* to = end;
        while (!foreign(to[-1])) --to;
        // Checks whether the damage is that of a write of elements of another size.
        std::string as;
        for (const std::int64_t size : {2, 4, 8})
            if (8 * size > dtype_.bits && to - first > size * (size_ - 1) &&
                to - first <= size * size_)
                as = ", as if its elements had " + std::to_string(size) + " bytes";
        return text(from - last + 1, to - last, " behind its end") + as;
    }
    if (!whole(all, first)) {
        const auto* from = std::find_if(all, first, foreign);
        const auto* to = first;
        while (!foreign(to[-1])) --to;
        return text(first - to + 1, first - from, " before its beginning");
    }
    return {};
}

bool Array::operator==(const Array& other) const {
    if (!*this || !other) return bool(*this) == bool(other);
    return shape_ == other.shape_ && plugin::same(dtype_, other.dtype_) &&
           std::memcmp(data<char>(), other.data<char>(), nbytes()) == 0;
}

catena_tensor Array::tensor() {
    catena_tensor t = {};
    t.struct_size = sizeof t;
    t.flags = CATENA_TENSOR_CONTIGUOUS;
    t.dl = {has_memory() ? chunks_.lend() + 1 : nullptr,
            1,
            0,
            static_cast<std::int32_t>(shape_.size()),
            dtype_,
            shape_.data(),
            strides_.data(),
            shift_};
    t.nbytes = nbytes();
    t.align_log2 = static_cast<std::uint32_t>(__builtin_ctzll(shift_ | guard));
    return t;
}
catena_meta meta_of(const Dims& shape, catena_dtype dtype) {
    catena_meta m = {};
    m.struct_size = sizeof m;
    m.ndim = static_cast<std::int32_t>(shape.size());
    m.dtype = dtype;
    m.device_type = 1;
    std::copy(shape.begin(), shape.end(), m.shape);
    return m;
}

Array::Chunks::Chunks(std::size_t n) : n_(n) {
    std::size_t room = (n + 1) * sizeof(Chunk);  // the aligned operator new is many times slower
    const auto block = std::make_shared_for_overwrite<std::byte[]>(room);
    void* first = block.get();
    std::align(alignof(Chunk), n * sizeof(Chunk), first, room);
    first_ = {block, static_cast<Chunk*>(first)};
}
void Array::Chunks::copy() {
    Chunks own(n_);
    std::memcpy(own.first_.get(), first_.get(), n_ * sizeof(Chunk));
    first_ = std::move(own.first_);
}

void Array::need_size(std::size_t n) const {
    if (static_cast<std::int64_t>(n) != size_)
        throw std::logic_error("Array: wrong number of values");
}
void Array::allocate(std::size_t spare, std::uint8_t initial) {
    chunks_ = Chunks((nbytes() + spare) / guard + 4);
    std::memset(chunks_.write(), pattern_, guard + shift_);
    std::memset(bytes(), initial, nbytes());
    std::memset(bytes() + nbytes(), pattern_, memory_bytes() - guard - shift_ - nbytes());
}
void Array::take(const Array& other) {
    if (nbytes() != other.nbytes()) throw std::logic_error("Array: other bytes");
    if (nbytes() > 0) std::memcpy(bytes(), other.data<char>(), nbytes());
}

}  // namespace catena::testing

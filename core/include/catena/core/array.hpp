// Array: a dense, row-major block of elements on one device.
#pragma once

#include <catena/core/device.hpp>
#include <catena/core/dtype.hpp>
#include <catena/core/memory.hpp>

#include <numeric>

namespace catena {

// The extents of an array, at most 16, without heap memory. Pointers into a temporary would dangle
// in vector(a.shape().begin(), a.shape().end()), so they need a shape with a name.
class Shape {
public:
    Shape() = default;  // 0-d: a scalar
    Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents)) {}
    // Throws ShapeError for more than 16 extents or a negative one.
    explicit Shape(std::span<const std::int64_t> extents);

    int ndim() const noexcept { return ndim_; }
    std::int64_t operator[](int i) const& noexcept { return extents_[i]; }
    std::int64_t& operator[](int i) & noexcept { return extents_[i]; }
    const std::int64_t* data() const& noexcept { return extents_; }
    const std::int64_t* begin() const& noexcept { return extents_; }
    const std::int64_t* end() const& noexcept { return extents_ + ndim_; }
    const std::int64_t* data() const&& = delete;   // const Shape shape = a.shape(); shape.data()
    const std::int64_t* begin() const&& = delete;  // const Shape shape = a.shape(); shape.begin()
    const std::int64_t* end() const&& = delete;    // const Shape shape = a.shape(); shape.end()
    // Number of elements; 1 for a scalar.
    std::int64_t size() const noexcept {
        return std::accumulate(begin(), end(), std::int64_t{1}, std::multiplies());
    }
    bool operator==(const Shape& other) const noexcept {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

private:
    int ndim_ = 0;
    std::int64_t extents_[CATENA_MAX_NDIM];
};

// NumPy's format: "(2, 3)", "(5,)", "()".
std::string to_string(const Shape& shape);
std::string shape_to_string(const std::int64_t* extents, int ndim);

class CachingAllocator;
class Queue;
class Stream;
struct ArrayExtra;

// The object behind an Array: its memory, and the descriptors that kernels receive without
// conversion. Allocated from a pool. Only the functions in array.cpp create and destroy it.
class ArrayBody {
public:
    void retain() noexcept { references_.add(); }
    void release() noexcept {
        if (references_.drop()) destroy();
    }
    bool unique() const noexcept { return references_.get() == 1; }
    // Whether nobody else can see the memory, except recordings, which use its content at launch.
    bool exclusive() const noexcept {
        const ArrayBody& owner = base ? *base : *this;
        return (!base || unique()) &&
               owner.references_.get() == 1 + owner.recordings.load(std::memory_order_relaxed);
    }

    catena_tensor tensor;  // shape points into meta, strides to the field below
    catena_meta meta;
    std::int64_t strides[CATENA_MAX_NDIM];
    DeviceState* device = nullptr;
    void* block = nullptr;             // the memory, or null
    std::uint64_t capacity = 0;        // bytes of block
    CachingAllocator* home = nullptr;  // owner of the block; null for foreign memory
    ArrayBody* base = nullptr;         // a view keeps the owner of its memory alive

    // In the owner of the memory: the work that must be done before it is used.
    std::atomic<Queue*> queue{nullptr};        // of the last writer
    std::uint64_t ticket = 0;                  // of the last writer in its queue
    std::atomic<ArrayExtra*> extra{nullptr};   // fields that few arrays need
    std::uint32_t version = 0;                 // changes when a call writes into the memory
    std::atomic<std::uint32_t> recordings{0};  // references that recordings hold

private:
    void destroy() noexcept;

    RefCount references_{1};
};

// A shared handle: copies refer to the same elements. A default-constructed Array is empty. Copying
// and destroying handles is thread-safe; writing elements needs synchronization by the caller.
class Array {
public:
    Array() = default;
    explicit Array(Ref<ArrayBody> body) : body_(std::move(body)) {}

    // A shape and a dtype: PluginFunction::infer() takes such arrays, and returns them.
    static Array without_memory(const Shape& shape, Dtype dtype = Dtype::float32,
                                Device device = {});
    // New memory on a device, by default Device::current(). empty() is uninitialized.
    static Array empty(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {});
    static Array full(const Shape& shape, double value, Dtype dtype = Dtype::float32,
                      Device device = {});
    static Array zeros(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {}) {
        return full(shape, 0, dtype, device);
    }
    static Array ones(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {}) {
        return full(shape, 1, dtype, device);
    }
    // Copies host elements in row-major order; throws ShapeError unless there are shape.size().
    template <class T>
    static Array from(std::span<const T> values, const Shape& shape, Device device = {}) {
        return from_host(values.data(), static_cast<std::int64_t>(values.size()), dtype_of<T>,
                         shape, nullptr, device);
    }
    template <class T>
    static Array from(const std::vector<T>& values, const Shape& shape, Device device = {}) {
        return from(std::span<const T>(values), shape, device);
    }
    template <class T>
    static Array from(std::initializer_list<T> values, const Shape& shape, Device device = {}) {
        return from(std::span<const T>(values.begin(), values.size()), shape, device);
    }
    // Copies a strided host view; data points at element 0. Strides count elements and may be <= 0.
    template <class T>
    static Array from_strided(const T* data, const Shape& shape, const std::int64_t* strides,
                              Device device = {}) {
        return from_host(data, shape.size(), dtype_of<T>, shape, strides, device);
    }

    // A non-owning array: the caller owns the memory, whose content is valid after the work
    // launched so far on the thread's current stream. release, if given, is called by the thread
    // that drops the last handle, after all work on the array is done. Throws InvalidError unless
    // data is aligned to the element size.
    static Array wrap(Device device, void* data, const Shape& shape, Dtype dtype = Dtype::float32,
                      std::function<void()> release = {});
    // An uninitialized array in host memory that the given device (default: the current one) can
    // access directly, so copies are asynchronous. Ordinary memory if the device does not support
    // that. It may be written and dropped at any time, like all arrays.
    static Array pinned(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {});
    bool is_pinned() const;

    explicit operator bool() const noexcept { return static_cast<bool>(body_); }
    Shape shape() const;
    int ndim() const;
    std::int64_t size() const;  // elements
    std::int64_t nbytes() const;
    Dtype dtype() const;
    Device device() const;

    // A view of the same memory; one extent may be -1. Throws ShapeError if the sizes differ.
    Array reshape(const Shape& shape) const;
    Array reshape(std::initializer_list<std::int64_t> extents) const;
    // A view of shape.size() elements from `begin` on (row-major). ShapeError if there are fewer.
    Array view(std::int64_t begin, const Shape& shape) const;
    // copy(): new memory on the same device. to(): on another device, or this array if it is
    // already there. astype(): in another dtype, or this array if it has that dtype. A value that
    // an integer dtype cannot represent becomes a number that depends on the device.
    Array copy() const;
    Array to(Device device) const;
    Array astype(Dtype dtype) const;
    // Copies on a stream of `device`. If `device` is the host, the copy runs on a stream of this
    // array's device and the result is pinned. The call is asynchronous if the array on the host is
    // pinned, or if neither array is on the host. Later calls that read the result or write into
    // this array wait for the copy. Throws DeviceError if the stream belongs to another device.
    Array to(Device device, const Stream& stream) const;
    // Waits until all work on the array is done.
    void synchronize() const;

    // Copies into this memory. Shapes and dtypes must be equal, devices may differ.
    void copy_from(const Array& source) const;
    void fill(double value) const;

    // The elements as a span in host memory. T is the C++ type of the dtype: host<const float>() to
    // read, host<float>() to write. Asking for a writable span counts as a write: a graph that kept
    // this array for its gradient throws GraphError in backward(), whether or not an element has
    // changed. A write through an older span is not noticed, so ask for a new span each time. Waits
    // for pending work on the array. Throws DeviceError if the host cannot access the memory,
    // DtypeError if T does not match. The span of an array without a name could dangle.
    template <class T>
    std::span<T> host() const& {
        using Element = std::remove_const_t<T>;
        return {static_cast<T*>(host_data(dtype_of<Element>, !std::is_const_v<T>)),
                static_cast<std::size_t>(size())};
    }
    template <class T>
    std::span<T> host() const&& = delete;  // const Array y = f(x); y.host<T>()
    // A copy of the elements in host memory, converted to T.
    template <class T>
    std::vector<T> to_vector() const {
        std::vector<T> values(static_cast<std::size_t>(size()));
        to_host(dtype_of<T>, values.data());
        return values;
    }
    // The only element, converted to T. Throws ShapeError if there is not exactly one.
    template <class T = double>
    T item() const {
        T value;
        require_item();
        to_host(dtype_of<T>, &value);
        return value;
    }
    // Copies all elements to host memory, converted to dtype.
    void to_host(Dtype dtype, void* target) const;

    ArrayBody* body() const noexcept { return body_.get(); }

private:
    static Array from_host(const void* data, std::int64_t count, Dtype dtype, const Shape& shape,
                           const std::int64_t* strides, Device device);
    void* host_data(Dtype dtype, bool writes) const;
    void require_item() const;

    Ref<ArrayBody> body_;
};

// In its scope, writes into the arrays are no changes for the graph: gradients use the new values.
class KeepVersions {
public:
    explicit KeepVersions(std::span<const Array> arrays) {
        for (const Array& each : arrays) kept_.emplace_back(each, version(each));
    }
    KeepVersions(const KeepVersions&) = delete;
    ~KeepVersions() {
        for (const auto& [array, before] : kept_) version(array) = before;
    }

private:
    static std::uint32_t& version(const Array& array) {
        return (array.body()->base ? *array.body()->base : *array.body()).version;
    }
    std::vector<std::pair<Array, std::uint32_t>> kept_;
};

// Declares that the program will launch work on stream.native() that reads or writes an array. The
// stream waits for pending work on the array; later users of the array wait for the stream.
void use(const Stream& stream, const Array& array, bool writes);

}  // namespace catena

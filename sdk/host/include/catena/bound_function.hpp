// BoundFunction: a function whose attributes change from call to call.
#pragma once

#include <catena/core/plugin_function.hpp>
#include <catena/lists.hpp>

namespace catena {

// An integer or a list as an argument: F::reshape(x, {2, -1}). Non-owning, valid for the call only.
class Ints {
public:
    Ints(std::int64_t value) : one_(value) {}  // NOLINT: is a list
    Ints(std::initializer_list<std::int64_t> v) : Ints(v.begin(), v.size()) {}
    Ints(std::span<const std::int64_t> v) : Ints(v.data(), v.size()) {}     // NOLINT: is a list
    Ints(const std::vector<std::int64_t>& v) : Ints(v.data(), v.size()) {}  // NOLINT: is a list
    Ints(const Shape& shape)
        : Ints(shape.begin(), static_cast<std::size_t>(shape.ndim())) {}  // NOLINT

    std::span<const std::int64_t> view() const {
        return is_one_ ? std::span(&one_, 1) : std::span(values_, n_);
    }

private:
    Ints(const std::int64_t* values, std::size_t n) : values_(values), n_(n), is_one_(false) {}

    std::int64_t one_ = 0;
    const std::int64_t* values_ = nullptr;
    std::size_t n_ = 0;
    bool is_one_ = true;
};

// The value of an attribute as an argument of BoundFunction. Non-owning, valid for the call only.
class AttributeView {
public:
    template <std::integral T>
    AttributeView(T v)  // NOLINT: is a value
        : AttributeView(std::same_as<T, bool> ? Kind::truth : Kind::integer,
                        static_cast<std::int64_t>(v)) {}
    AttributeView(double v)
        : AttributeView(Kind::real, std::bit_cast<std::int64_t>(v)) {}                    // NOLINT
    AttributeView(Dtype v) : AttributeView(Kind::dtype, static_cast<std::int64_t>(v)) {}  // NOLINT
    template <std::convertible_to<std::string_view> T>
    AttributeView(const T& v) : AttributeView(Kind::text, std::string_view(v)) {}  // NOLINT
    AttributeView(std::span<const double> v) : AttributeView(Kind::reals, v) {}    // NOLINT
    AttributeView(const Ints& v) : AttributeView(Kind::integers, v.view()) {       // NOLINT
        if (n_ == 1) *this = AttributeView(Kind::one, v.view()[0]);
    }

    // The bits of a number or of a list of one integer; NULL for other lists.
    const std::int64_t* number() const { return kind_ < Kind::text ? &bits_ : nullptr; }
    AttributeValue value() const;
    // Values as words: for each, its kind and length, then its contents. 16 words need no heap.
    using Key = SmallVector<std::int64_t, 16>;
    void append_to(Key& key) const;
    // Whether the key continues with this value. If so, moves `key` behind it.
    bool equals(const std::int64_t*& key) const;

private:
    enum class Kind : std::int8_t { integer, real, truth, dtype, one, text, integers, reals };
    std::int64_t head() const {
        return static_cast<std::int64_t>(n_ << 8) | static_cast<int>(kind_);
    }
    std::size_t bytes() const { return n_ * (kind_ == Kind::text ? 1 : sizeof(std::int64_t)); }
    AttributeView(Kind kind, std::int64_t bits) : kind_(kind), bits_(bits) {}
    template <class List>
    AttributeView(Kind kind, const List& list) : kind_(kind), n_(list.size()), list_(list.data()) {}

    Kind kind_;
    std::size_t n_ = 1;
    union {
        std::int64_t bits_;
        const void* list_;
    };
};

// A function whose attributes change. It keeps the functions bound to the last 8 sets of values,
// so a call with one of these sets searches no name and checks no attribute. Not thread-safe.
class BoundFunction {
public:
    BoundFunction(std::string_view function, std::initializer_list<std::string_view> names)
        : BoundFunction(function, std::span(names.begin(), names.size())) {}
    BoundFunction(std::string_view function, std::span<const std::string_view> names)
        : function_(function), names_(names.begin(), names.end()) {}
    // A copy has no bound functions yet.
    BoundFunction(const BoundFunction& other) : BoundFunction(other.function_, other.names_) {}
    BoundFunction(BoundFunction&&) = default;
    BoundFunction& operator=(BoundFunction other) noexcept {
        return std::swap(*this, other), *this;
    }

    // Returns the function bound to these values, one for each name. The reference is valid until
    // the next call. Throws as PluginFunction's constructor, and InvalidError for another number.
    const PluginFunction& operator()(std::span<const AttributeView> values);
    const PluginFunction& operator()(std::initializer_list<AttributeView> values) {
        return operator()(std::span(values.begin(), values.size()));
    }

    // Returns the thread's object. The first call makes it.
    static BoundFunction& of_thread(PerThread<BoundFunction>& object, std::string_view function,
                                    std::span<const std::string_view> names);

private:
    struct Entry {
        AttributeView::Key key;
        PluginFunction function;
    };

    std::string_view function_;
    std::vector<std::string_view> names_;
    std::vector<Entry> entries_;
    std::size_t oldest_ = 0;
};

// One BoundFunction per thread. It must be thread_local and constinit, as in generated wrappers.
// Each value must have the same type in all calls.
template <std::size_t n>
class ThreadFunction {
public:
    constexpr ThreadFunction(std::string_view function, const std::string_view (&names)[n])
        : function_(function), names_(std::to_array(names)) {}

    const PluginFunction& operator()(const AttributeView (&values)[n]) {
        // Most calls repeat the last call's numbers. last_ is invalid without the thread's object.
        bool same = last_ != nullptr && bound_.find() != nullptr;
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t* number = values[i].number();
            same = same && number != nullptr && *number == last_numbers_[i];
        }
        return same ? *last_ : bind(values);
    }

private:
    const PluginFunction& bind(const AttributeView (&values)[n]) {
        last_ = nullptr;
        const PluginFunction& found = BoundFunction::of_thread(bound_, function_, names_)(values);
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t* number = values[i].number();
            if (number == nullptr) return found;
            last_numbers_[i] = *number;
        }
        last_ = &found;
        return found;
    }

    std::string_view function_;
    std::array<std::string_view, n> names_;
    PerThread<BoundFunction> bound_;
    const PluginFunction* last_ = nullptr;
    std::array<std::int64_t, n> last_numbers_{};
};

}  // namespace catena

// Binds a function to attributes whose values change.
#include <catena/bound_function.hpp>

#include "../support.hpp"

#include <cstring>

namespace catena {
namespace {
constexpr std::size_t max_entries = 8;
std::size_t words(std::size_t bytes) { return (bytes + 7) / 8; }
}  // namespace

AttributeValue AttributeView::value() const {
    const auto list = [&]<class T>(const T* values) { return std::vector<T>(values, values + n_); };
    switch (kind_) {
        case Kind::integer: return bits_;
        case Kind::real: return std::bit_cast<double>(bits_);
        case Kind::truth: return bits_ != 0;
        case Kind::dtype: return static_cast<Dtype>(bits_);
        case Kind::one: return std::vector<std::int64_t>{bits_};
        case Kind::text: return std::string(static_cast<const char*>(list_), n_);
        case Kind::integers: return list(static_cast<const std::int64_t*>(list_));
        case Kind::reals: break;
    }
    return list(static_cast<const double*>(list_));
}

void AttributeView::append_to(Key& key) const {
    key.push_back(head());
    const std::size_t at = key.size();
    key.resize(at + words(bytes()));
    if (n_ > 0) std::memcpy(&key[at], number() != nullptr ? &bits_ : list_, bytes());
}

bool AttributeView::equals(const std::int64_t*& key) const {
    if (*key++ != head()) return false;
    if (number() != nullptr) return *key++ == bits_;
    if (n_ > 0 && std::memcmp(key, list_, bytes()) != 0) return false;
    key += words(bytes());
    return true;
}

const PluginFunction& BoundFunction::operator()(std::span<const AttributeView> values) {
    if (values.size() != names_.size())
        fail<InvalidError>("[{}] attributes: expected {}, got {}", function_, names_.size(),
                           values.size());
    for (const Entry& entry : entries_) {
        const std::int64_t* key = entry.key.data();
        if (std::ranges::all_of(values, [&](const AttributeView& v) { return v.equals(key); }))
            return entry.function;
    }
    AttributeView::Key key;
    SmallVector<Attribute, 8> attributes;
    for (const AttributeView& v : values) {
        v.append_to(key);
        attributes.emplace_back(names_[attributes.size()], v.value());
    }
    Entry entry{std::move(key), entries_.empty() ? PluginFunction(function_, attributes)
                                                 : entries_[0].function.with(attributes)};
    entries_.reserve(max_entries);
    if (entries_.size() < max_entries) return entries_.emplace_back(std::move(entry)).function;
    Entry& oldest = entries_[oldest_];
    oldest_ = (oldest_ + 1) % max_entries;
    oldest = std::move(entry);
    return oldest.function;
}

BoundFunction& BoundFunction::of_thread(PerThread<BoundFunction>& object, std::string_view function,
                                        std::span<const std::string_view> names) {
    return object.get(function, names);
}

}  // namespace catena

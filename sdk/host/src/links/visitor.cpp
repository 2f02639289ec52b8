// Visitor: joins the names of nested parts to paths.
#include "../support.hpp"

#include <catena/visitor.hpp>

namespace catena {

// Calls visit() with the name appended to the path.
template <class Visit>
Visitor& Visitor::at(std::string_view name, const Visit& visit) {
    const OnExit restore{[this, length = path_.size()] { path_.resize(length); }};
    if (!path_.empty()) path_ += '/';
    path_ += name;
    visit();
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, Parameter& value) {
    note_listed(value);
    return value ? at(name, [&] { parameter(path_, value); }) : *this;
}
Visitor& Visitor::operator()(std::string_view name, Variable& value) {
    if (!value) return *this;
    return at(name, [&] {
        require_parameter("visit", path_, value);
        parameter(path_, value);
    });
}
Visitor& Visitor::operator()(std::string_view name, Array& value) {
    return value ? at(name, [&] { array(path_, value); }) : *this;
}
Visitor& Visitor::running(std::string_view name, Array& value) {
    return value ? at(name, [&] { running_array(path_, value); }) : *this;
}
Visitor& Visitor::part(std::string_view name, Array& value, std::int64_t begin,
                       const Shape& whole) {
    return at(name, [&] { array_part(path_, value, begin, whole); });
}
void Visitor::array_part(const std::string& path, Array& value, std::int64_t begin,
                         const Shape& whole) {
    fail<UnsupportedError>(
        "[visit] {}: expected the whole array of shape {}, got {} of its elements from {} on, "
        "because processes share the state; distributed::Checkpoints save the parts",
        path, to_string(whole), value ? value.size() : 0, begin);
}
Visitor& Visitor::operator()(std::string_view name, std::int64_t& value) {
    return at(name, [&] { integer(path_, value); });
}
Visitor& Visitor::within(std::string_view name, std::int64_t& value, std::int64_t low,
                         std::int64_t high) {
    return at(name, [&] { integer_within(path_, value, low, high); });
}
Visitor& Visitor::operator()(std::string_view name, std::uint64_t& value) {
    return at(name, [&] { integer(path_, value); });
}
Visitor& Visitor::operator()(std::string_view name, double& value) {
    return at(name, [&] { real(path_, value); });
}
Visitor& Visitor::operator()(std::string_view name, Visitable& part) {
    return at(name, [&] { nested(part); });
}
Visitor& Visitor::require(std::string_view name, std::int64_t value) {
    return at(name, [&] { required(path_, value); });
}
Visitor& Visitor::require(std::string_view name, std::string_view value) {
    return at(name, [&] { required(path_, value); });
}
Visitor& Visitor::require_or_convert(std::string_view name, std::string_view value,
                                     std::string_view array, Convert convert) {
    std::string array_path;
    at(array, [&] { array_path = path_; });
    return at(name, [&] { required_or_converted(path_, value, array_path, convert); });
}

}  // namespace catena

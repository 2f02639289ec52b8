// Visitor: joins the names on the way to a value.
#include <catena/visitor.hpp>

namespace catena {

// Appends a name to the path for as long as it lives.
class Visitor::Step {
public:
    Step(std::string& path, std::string_view name) : path_(path), length_(path.size()) {
        if (!path_.empty()) path_ += '/';
        path_ += name;
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() { path_.resize(length_); }

private:
    std::string& path_;
    std::size_t length_;
};

Visitor& Visitor::operator()(std::string_view name, Variable& value) {
    if (value) {
        Step step(path_, name);
        parameter(path_, value);
    }
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, Array& value) {
    if (value) {
        Step step(path_, name);
        array(path_, value);
    }
    return *this;
}

Visitor& Visitor::running(std::string_view name, Array& value) {
    if (value) {
        Step step(path_, name);
        running_array(path_, value);
    }
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, std::int64_t& value) {
    Step step(path_, name);
    integer(path_, value);
    return *this;
}

Visitor& Visitor::within(std::string_view name, std::int64_t& value, std::int64_t low,
                         std::int64_t high) {
    Step step(path_, name);
    integer_within(path_, value, low, high);
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, std::uint64_t& value) {
    Step step(path_, name);
    integer(path_, value);
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, double& value) {
    Step step(path_, name);
    real(path_, value);
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, Visitable& part) {
    Step step(path_, name);
    part.visit(*this);
    return *this;
}

Visitor& Visitor::require(std::string_view name, std::int64_t value) {
    Step step(path_, name);
    required(path_, value);
    return *this;
}

Visitor& Visitor::require(std::string_view name, std::string_view value) {
    Step step(path_, name);
    required(path_, value);
    return *this;
}

Visitor& Visitor::require_or_convert(std::string_view name, std::string_view value,
                                     std::string_view array, Convert convert) {
    std::string array_path;
    {
        Step step(path_, array);
        array_path = path_;
    }
    Step step(path_, name);
    required_or_converted(path_, value, array_path, convert);
    return *this;
}

}  // namespace catena

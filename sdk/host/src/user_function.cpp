// UserFunction: names for messages, and where arrays are.
#include "support.hpp"

#include <catena/cuda/device.hpp>
#include <catena/user_function.hpp>

#include <boost/core/demangle.hpp>

#include <algorithm>

namespace catena {

void throw_count(const char* where, std::size_t expected, std::size_t got) {
    fail<InvalidError>("[{}] values: expected {}, got {}", where, expected, got);
}

std::string class_name(const std::type_info& type) {
    const std::string name = boost::core::demangle(type.name());
    // The last part, not looking into template arguments.
    const std::size_t colon = name.rfind("::", name.find('<'));
    return colon == name.npos ? name : name.substr(colon + 2);
}

std::string UserFunction::label() const { return class_name(typeid(*this)); }

void UserFunction::throw_count(const char* what, std::size_t expected, std::size_t got) const {
    fail<InvalidError>("[{}] {}: expected {}, got {}", label(), what, expected, got);
}

bool UserFunction::any_on_gpu(ArraySpan arrays) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [](const Array& array) { return array && cuda::is_gpu(array.device()); });
}

void UserFunction::throw_missing(const char* where) const {
    fail<UnsupportedError>(
        "[{0}] forward_{1}: expected a class that overrides forward() or forward_{1}(), got one "
        "that overrides neither",
        label(), where);
}

}  // namespace catena

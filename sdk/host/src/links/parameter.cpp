// Parameter: what may be one.
#include <catena/core/error.hpp>
#include <catena/links/parameter.hpp>

#include <fmt/format.h>

namespace catena::links {

Parameter::Parameter(const Array& array) {
    if (!array || !is_floating(array.dtype())) {
        throw DtypeError(fmt::format("[Parameter] array: expected a floating one, got {}",
                                     array ? name(array.dtype()) : "none"));
    }
    W = as_parameter(array);
}

}  // namespace catena::links

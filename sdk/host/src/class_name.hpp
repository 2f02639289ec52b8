// The name of a class, for messages.
#pragma once

#include <string>
#include <typeinfo>

namespace catena {

// "Linear" of catena::links::Linear; template arguments stay whole.
std::string class_name(const std::type_info& type);

}  // namespace catena

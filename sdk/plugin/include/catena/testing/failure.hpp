// Ways in which a call fails.
#pragma once

#include <stdexcept>
#include <string>

#include "catena/abi/base.h"

namespace catena::testing {

// A call that failed: its status and the kernel's text.
class Failure : public std::runtime_error {
public:
    Failure(catena_status status, const std::string& text)
        : std::runtime_error(text), status_(status) {}
    catena_status status() const { return status_; }

private:
    catena_status status_;
};
struct NoKernel : Failure {  // for these dtypes, or none that supports() the call
    using Failure::Failure;
};
struct Violation : Failure {  // no error of the call
    using Failure::Failure;
};
struct OutOfBounds : Violation {  // a kernel wrote beside its memory
    using Violation::Violation;
};
struct Thrown : Violation {  // an exception left a piece of parallel_for()
    using Violation::Violation;
};
struct InputChanged : Violation {  // a kernel wrote what it may only read
    using Violation::Violation;
};

}  // namespace catena::testing

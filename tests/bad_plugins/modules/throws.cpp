// The entry throws a standard exception.
#define MODULE_ID "org.example.throws"
#include "../module.h"

#include <stdexcept>

ENTRY {
    (void)host, (void)ctx, (void)inputs, (void)outputs;
    throw std::runtime_error("thrown on purpose");
}

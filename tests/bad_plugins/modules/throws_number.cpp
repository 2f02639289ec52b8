// The entry throws an int.
#define MODULE_ID "org.example.throws_number"
#include "../module.h"

ENTRY {
    (void)host, (void)ctx, (void)inputs, (void)outputs;
    throw 42;
}

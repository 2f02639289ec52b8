/* catena ABI 1: everything that a plugin and a host agree on, in C99.
 *
 * Read in this order: base, tensor, attribute, function, kernel, backend, host, plugin.
 * sdk/abi/RULES.md has the rules for changes; sdk/abi/layout-1.golden locks every offset.
 * This header needs only <stddef.h> and <stdint.h>, and links to nothing. */
#ifndef CATENA_ABI_H
#define CATENA_ABI_H

#include "catena/abi/attribute.h"
#include "catena/abi/backend.h"
#include "catena/abi/base.h"
#include "catena/abi/function.h"
#include "catena/abi/host.h"
#include "catena/abi/kernel.h"
#include "catena/abi/plugin.h"
#include "catena/abi/tensor.h"

#endif

/* A header of ABI 1.0, without its comments. */
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

// Sizes of the structs of ABI 1.0: the least that a plugin may hand over, whatever this host has
// added since. Never changed; later fields are read after CATENA_HAS() alone.
#pragma once

#include <catena/abi/plugin.h>

#include <cstdint>

namespace catena {

template <class T>
inline constexpr std::uint32_t size_1_0 = 0;
template <>
inline constexpr std::uint32_t size_1_0<catena_manifest> = 312;
template <>
inline constexpr std::uint32_t size_1_0<catena_plugin> = 72;
template <>
inline constexpr std::uint32_t size_1_0<catena_extension> = 32;
template <>
inline constexpr std::uint32_t size_1_0<catena_function> = 104;
template <>
inline constexpr std::uint32_t size_1_0<catena_kernel> = 120;
template <>
inline constexpr std::uint32_t size_1_0<catena_backend> = 168;
template <>
inline constexpr std::uint32_t size_1_0<catena_port_spec> = 32;
template <>
inline constexpr std::uint32_t size_1_0<catena_attr_spec> = 88;

}  // namespace catena

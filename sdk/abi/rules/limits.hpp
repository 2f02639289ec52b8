// Sizes of structs, and bounds of the counts in a plugin's tables, for the core and for the tools. Bounds
// lie far above what any plugin needs: a number beyond is garbage, and reading would pass the list's end.
#pragma once

#include <catena/abi/plugin.h>

#include <cstdint>

namespace catena {

inline constexpr std::uint32_t largest_struct = 65'536;  // bytes; later minors make structs larger
inline constexpr std::uint32_t most_entries = 100'000;   // functions, kernels, backends, extensions
inline constexpr std::uint32_t newest_version = 1'000'000;  // of a function
inline constexpr std::uint32_t most_saved = 64;             // tensors that a kernel saves
inline constexpr std::uint32_t longest_list = 100'000;      // values of a default
inline constexpr std::uint32_t most_choices = 1'000;        // of an attribute
inline constexpr std::int32_t most_devices = 4'096;         // of a backend
inline constexpr std::uint64_t largest_memory = std::uint64_t{1} << 60;  // bytes of one block
// DLDeviceType: DLPack 1.1 has 1 to 18, without 5 and 6; later versions add to them.
inline constexpr std::int32_t listed_device_types = 18;
inline constexpr std::int32_t last_device_type = 255;

// The most dtype rows of a kernel for so many type variables: a host tells at most 16 dtypes apart.
constexpr std::uint32_t most_rows(std::uint32_t type_vars) { return 1u << 4 * type_vars; }

// Sizes of the structs of ABI 1.0: the least that a plugin may hand over, whatever this host has
// added since. Never changed; later fields are read after CATENA_HAS() alone.
constexpr std::uint32_t size_in_1_0(const catena_manifest*) { return 312; }
constexpr std::uint32_t size_in_1_0(const catena_plugin*) { return 72; }
constexpr std::uint32_t size_in_1_0(const catena_extension*) { return 32; }
constexpr std::uint32_t size_in_1_0(const catena_function*) { return 120; }
constexpr std::uint32_t size_in_1_0(const catena_kernel*) { return 120; }
constexpr std::uint32_t size_in_1_0(const catena_backend*) { return 168; }
constexpr std::uint32_t size_in_1_0(const catena_port_spec*) { return 32; }
constexpr std::uint32_t size_in_1_0(const catena_attr_spec*) { return 88; }
template <class T>
inline constexpr std::uint32_t size_1_0 = size_in_1_0(static_cast<const T*>(nullptr));

}  // namespace catena

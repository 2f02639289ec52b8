// Whether freed blocks are kept for the next allocation.
#pragma once

namespace catena {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool recycle = false;  // let the sanitizer see every block die
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool recycle = false;
#else
inline constexpr bool recycle = true;
#endif
#else
inline constexpr bool recycle = true;
#endif

}  // namespace catena

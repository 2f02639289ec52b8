// Where the bodies of catena::testing are compiled: in each file that includes it. A program of several
// files has them once, and is compiled in a fraction of the time, where all define
// CATENA_TESTING_SEPARATE and one includes <catena/testing/separate.hpp>.
#pragma once

#if defined(CATENA_TESTING_SEPARATE)
#define CATENA_TESTING_INLINE
#else
#define CATENA_TESTING_INLINE inline
#endif

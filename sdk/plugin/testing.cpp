// catena::testing of this build's own tests.
#include <catena/testing/separate.hpp>

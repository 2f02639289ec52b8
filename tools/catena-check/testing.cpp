// catena::testing of the program's own: it looks for plugins beside the program.
#include <catena/testing/separate.hpp>

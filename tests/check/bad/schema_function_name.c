// expect: schema/names load/host
// says: expected two or more words with dots between them, each a lower-case letter and then
#include "module.h"
SPOIL {
    the_function.name = "org.example.Square";
    for (int i = 0; i < 4; ++i) ((catena_kernel *)the_kernels[i])->function = the_function.name;
}

// Has only kernels, of a function that no plugin defines.
// expect: values/survives
// skips: values/dtypes gradients/kernel
// options: --only values --only gradients
#include "module.h"
SPOIL {
    the_plugin.n_functions = 0;
    forward32.function = forward64.function = "org.example.nobody";
    backward32.function = backward64.function = "org.example.nobody";
}

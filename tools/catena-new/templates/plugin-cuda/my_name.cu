// The same function on CUDA, in a separate plugin: my_name.cuda.catena.
#include "my_name.hpp"

CATENA_PLUGIN("org.example.my_name.cuda", "0.1.0", my_name_functions::MyName);

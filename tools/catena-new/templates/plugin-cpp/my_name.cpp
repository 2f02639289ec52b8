// The contents of the plugin: its id, its version, its functions.
#include "my_name.hpp"

CATENA_PLUGIN("org.example.my_name", "0.1.0", my_name_functions::MyName);

# catena_share_headers(NAME LIBS target... HEADERS header...)
#
# Precompiles HEADERS once, with the options of programs that link LIBS. Such programs use them with
# target_precompile_headers(PROGRAM REUSE_FROM NAME). The preset dev compiles without precompiled headers,
# so that each file is known to include what it uses.
function(catena_share_headers name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS")
    file(CONFIGURE OUTPUT "${name}.cpp" CONTENT "")
    add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
    target_link_libraries(${name} PRIVATE ${arg_LIBS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE)  # as CMake compiles programs
endfunction()

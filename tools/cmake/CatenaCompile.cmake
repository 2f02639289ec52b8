# Compiler options: warnings, sanitizers, and unity builds and precompiled headers for faster builds.

# With CATENA_FAST_BUILD off, as in the preset dev, each file is compiled by itself, which shows
# whether it includes all headers that it needs.
option(CATENA_FAST_BUILD "Unity builds and precompiled headers" ON)
if(NOT CATENA_FAST_BUILD)
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# Warnings for every target. Headers of packages are system headers, which cause no warnings.
set(catena_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CATENA_WERROR)
    list(APPEND catena_warnings -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${catena_warnings}>")
# GCC 12 wrongly reports overlapping copies in std::string.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>")

# CATENA_SANITIZE, e.g. "address,undefined" or "thread", applies to every target. Findings are fatal.
if(CATENA_SANITIZE)
    if(CATENA_SANITIZE MATCHES "thread" AND CATENA_SANITIZE MATCHES "address")
        message(FATAL_ERROR "CATENA_SANITIZE: thread and address exclude each other, "
                            "got '${CATENA_SANITIZE}'")
    endif()
    set(catena_sanitize "-fsanitize=${CATENA_SANITIZE}" -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${catena_sanitize}>")
    add_link_options("$<$<LINK_LANGUAGE:C,CXX>:-fsanitize=${CATENA_SANITIZE}>")
    if(CATENA_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>")
    endif()
endif()

# catena_unity_build(TARGET N): compiles up to N files of the target as one translation unit, without
# warnings about names that shadow those of another file.
function(catena_unity_build target batch)
    if(CATENA_FAST_BUILD)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
        target_compile_options(${target} PRIVATE
            "$<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow;-Wno-subobject-linkage>")
    endif()
endfunction()

# catena_share_headers(NAME LIBS target... HEADERS header...)
#
# Precompiles HEADERS once, with the options of programs that link LIBS; the caller can change them for
# modules. Targets use the result with target_precompile_headers(TARGET REUSE_FROM NAME).
function(catena_share_headers name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS")
    file(CONFIGURE OUTPUT "${name}.cpp" CONTENT "")
    add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
    target_link_libraries(${name} PRIVATE ${arg_LIBS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIE)  # as CMake compiles programs
endfunction()

# Kernels are compiled for each instruction set, or, with "native", for the baseline and the newest
# that this machine has.
set(CATENA_ISAS all CACHE STRING "Instruction sets of the kernels: all or native")
if(CATENA_ISAS STREQUAL "native")
    file(WRITE "${CMAKE_BINARY_DIR}/native.c" "")
    execute_process(COMMAND "${CMAKE_C_COMPILER}" -march=native -dM -E "${CMAKE_BINARY_DIR}/native.c"
                    OUTPUT_VARIABLE macros ERROR_QUIET)
    set(level 1)
    if(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__F16C__")
        set(level 3)
        if(macros MATCHES "__AVX512BW__" AND macros MATCHES "__AVX512DQ__" AND
           macros MATCHES "__AVX512CD__" AND macros MATCHES "__AVX512VL__")
            set(level 4)
        endif()
    endif()
    message(STATUS "Kernels: for x86-64 and x86-64-v${level}")
    add_compile_definitions("$<$<COMPILE_LANGUAGE:C,CXX>:CATENA_ISA_LEVEL=${level}>")
elseif(NOT CATENA_ISAS STREQUAL "all")
    message(FATAL_ERROR "CATENA_ISAS: expected all or native, got '${CATENA_ISAS}'")
endif()

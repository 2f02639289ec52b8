# Functions for CUDA tests. Each test is written once and added twice: with the label "cuda" it runs the
# emulated modules (tests/cuda/emulator) on any machine; with the label "gpu" it runs the genuine modules
# on a GPU, through tools/gpu-tests or ctest -L gpu. Both need a CUDA toolkit.
get_property(cuda_modules GLOBAL PROPERTY CATENA_CUDA_MODULES)
list(TRANSFORM cuda_modules PREPEND emulated- OUTPUT_VARIABLE emulated_targets)
list(APPEND emulated_targets emulated-libraries)
set(emulated_plugins "${PROJECT_BINARY_DIR}/tests/cuda/plugins")
set(cuda_coverage "${PROJECT_BINARY_DIR}/tests/cuda/coverage/tests")  # see coverage/CMakeLists.txt
set(genuine_plugins "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/catena/plugins")
# The environment variables that select the emulated modules and the replacements of NVIDIA's libraries.
set(emulated_cuda "CATENA_PLUGIN_PATH=${emulated_plugins}")
foreach(library IN ITEMS CUBLAS=libcublas.so.13 CUDNN_LIBRARY=libcudnn.so.9 NCCL=libnccl.so.2
        NVRTC=libnvrtc.so.13)
    string(REPLACE "=" "=${PROJECT_BINARY_DIR}/tests/cuda/vendor/" library "${library}")
    list(APPEND emulated_cuda "CATENA_${library}")
endforeach()

# catena_add_cuda_program(NAME [SOURCES file...] [EMULATED file...] [LIBS target...] [INCLUDES folder...])
#
# Adds a doctest program that calls the CUDA runtime. It is compiled once and linked twice: cuda-NAME has
# the emulator's runtime, and gpu-NAME has NVIDIA's. The files after EMULATED are only in cuda-NAME. Sources
# that include emulator/control.h ask `emulated`.
function(catena_add_cuda_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;EMULATED;LIBS;INCLUDES")
    set(objects "")
    if(arg_SOURCES)
        add_library(${name}-objects OBJECT ${arg_SOURCES})
        _catena_cuda_sources(${name}-objects)
        set_target_properties(${name}-objects PROPERTIES CUDA_ARCHITECTURES 80-virtual)  # compiles fast
        target_compile_options(${name}-objects PRIVATE
            "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>")
        set(objects "$<TARGET_OBJECTS:${name}-objects>")
        _catena_cuda_program(gpu-${name} "${objects}" CUDA::cudart_static)
        add_dependencies(gpu-${name} ${plugin_targets})
    endif()
    _catena_cuda_program(cuda-${name} "${objects};${arg_EMULATED}" catena-cuda-emulator)
    add_dependencies(cuda-${name} ${emulated_targets} ${plugin_targets})
endfunction()
# These functions use the caller's arg_ variables.
function(_catena_cuda_sources target)
    target_link_libraries(${target} PRIVATE ${arg_LIBS} catena-test-main)
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" ${arg_INCLUDES}
        "${PROJECT_SOURCE_DIR}/tests/cuda/emulator/include")
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endfunction()
function(_catena_cuda_program target sources runtime)
    add_executable(${target} ${sources})
    _catena_cuda_sources(${target})
    target_link_libraries(${target} PRIVATE ${runtime} Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY None
        INSTALL_RPATH "$ORIGIN/../../lib" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/test")
endfunction()

# catena_add_cuda_test(NAME COMMAND program word... [LATE] [LABELS label...] [ENVIRONMENT setting...]
#                      [EMULATOR setting...] [ON_EMULATOR word...] [ON_GPU word...])
#
# Adds the tests cuda-NAME and gpu-NAME; gpu-NAME is skipped if there is no GPU. PROGRAM is a target, the
# NAME of a catena_add_cuda_program(), or a program in PATH. The words of the command and the settings of
# the environment must name all files that the test reads, because tools/gpu-tests copies these files to
# another machine. "MODULES" in them is replaced by the folder of the modules.
#
# A test that also runs on a GPU gets a third test, cuda-NAME-one, on an emulator with one device, like a
# machine with one GPU; there, copies from pageable memory first wait for their stream, as CUDA allows. A
# slow test sets EMULATOR DEVICES=1 and runs only with one device.
#   LATE        also adds cuda-NAME-late: in the emulator streams are delayed, blocks run on two threads,
#               and the last threads of a block run first. Code that does not synchronize fails there.
#   EMULATOR    settings of the emulator, without the prefix CATENA_EMULATOR_
#   ON_...      further words of the command on the emulator or on the GPU; NEVER: do not add that test
function(catena_add_cuda_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "LATE" ""
                          "COMMAND;LABELS;ENVIRONMENT;EMULATOR;ON_EMULATOR;ON_GPU")
    if("${arg_COMMAND}" STREQUAL "" OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "catena_add_cuda_test(${name}): expected COMMAND, got '${ARGN}'")
    endif()
    if(NOT arg_ON_EMULATOR STREQUAL NEVER)
        _catena_emulated_test(cuda-${name})
        if(arg_LATE)
            _catena_emulated_test(cuda-${name}-late DELAY=200 THREADS=2 REVERSED=1)
        endif()
        if(NOT arg_ON_GPU STREQUAL NEVER AND NOT "${arg_EMULATOR}" MATCHES "DEVICES=")
            _catena_emulated_test(cuda-${name}-one DEVICES=1 STAGING=1)
        endif()
    endif()
    if(NOT arg_ON_GPU STREQUAL NEVER)
        _catena_cuda_test(gpu-${name} gpu "${genuine_plugins}" COMMAND ${arg_ON_GPU})
        set_tests_properties(gpu-${name} PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON)
    endif()
endfunction()
# These functions use the caller's arg_ variables.
function(_catena_emulated_test test)
    set(settings ${arg_EMULATOR} ${ARGN})
    list(TRANSFORM settings PREPEND CATENA_EMULATOR_)
    _catena_cuda_test(${test} cuda "${emulated_plugins}" ENVIRONMENT ${emulated_cuda} ${settings}
                      "CATENA_EMULATOR_COVERAGE=${cuda_coverage}/${test}" COMMAND ${arg_ON_EMULATOR})
    set_property(GLOBAL APPEND PROPERTY CATENA_EMULATED_TESTS ${test})
    set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED cuda-coverage)
endfunction()
function(_catena_cuda_test test side modules)
    cmake_parse_arguments(PARSE_ARGV 3 own "" "" "ENVIRONMENT;COMMAND")
    list(POP_FRONT arg_COMMAND program)
    if(TARGET ${side}-${program})
        set(program ${side}-${program})
    endif()
    if(TARGET ${program})
        set(program "$<TARGET_FILE:${program}>")
    endif()
    set(command ${program} ${arg_COMMAND} ${own_COMMAND})
    if(side STREQUAL gpu)
        list(PREPEND command gpu-gate)
    endif()
    set(environment ${own_ENVIRONMENT} ${arg_ENVIRONMENT})
    list(TRANSFORM command REPLACE "^MODULES" "${modules}")
    list(TRANSFORM environment REPLACE "=MODULES" "=${modules}")
    add_test(NAME ${test} COMMAND ${command})
    set_tests_properties(${test} PROPERTIES LABELS "${side};${arg_LABELS}"
        TIMEOUT ${CATENA_TEST_TIMEOUT} ENVIRONMENT "${environment}")
endfunction()

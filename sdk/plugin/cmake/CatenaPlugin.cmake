# catena_add_plugin(NAME name SOURCES file... [CUDA_SOURCES file...] [LIBS target...]
#                   [VENDOR text] [LICENSE text] [OUTPUT_DIRECTORY folder])
#
# Builds the module name.catena from catena::plugin, with the two symbols of the ABI as its only
# exports, and installs it to <libdir>/catena/plugins. CUDA_SOURCES become name.cuda.catena where
# the language CUDA is enabled. Targets are name.catena and name.cuda.catena; the plugin's own
# folder is in their include path. OUTPUT_DIRECTORY: in place of <build>/lib/catena/plugins, and
# nothing is installed.
#
# catena_add_plugin_test(NAME SOURCES file... [LIBS target...])
#
# Tests of the plugin NAME, of catena_add_plugin(): a program from catena::testing, which finds the
# plugin's file in the macro PLUGIN; and, where it is installed, what catena-check says. For ctest
# they are NAME-test and NAME-check.

function(catena_add_plugin)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;VENDOR;LICENSE;OUTPUT_DIRECTORY"
                          "SOURCES;CUDA_SOURCES;LIBS")
    if(NOT arg_NAME OR NOT (arg_SOURCES OR arg_CUDA_SOURCES) OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "catena_add_plugin: expected NAME and SOURCES or CUDA_SOURCES, "
                            "got '${ARGN}'")
    endif()
    if(arg_SOURCES)
        _catena_plugin_module(${arg_NAME}.catena ${arg_NAME} "${arg_SOURCES}")
        target_compile_options(${arg_NAME}.catena PRIVATE
            -O3 -fno-math-errno -fno-trapping-math
            "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>")
    endif()
    if(arg_CUDA_SOURCES AND CMAKE_CUDA_COMPILER)
        _catena_plugin_module(${arg_NAME}.cuda.catena ${arg_NAME}.cuda "${arg_CUDA_SOURCES}")
        target_compile_options(${arg_NAME}.cuda.catena PRIVATE
            "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-fno-gnu-unique>")
        if(NOT CMAKE_CUDA_STANDARD)  # CMake 3.25 cannot ask nvcc for C++20 itself
            target_compile_options(${arg_NAME}.cuda.catena PRIVATE
                "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")
        endif()
    endif()
endfunction()

# Reads the caller's arg_ variables.
function(_catena_plugin_module target output sources)
    set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")
    add_library(${target} MODULE ${sources})
    target_link_libraries(${target} PRIVATE catena::plugin ${arg_LIBS})
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_compile_definitions(${target} PRIVATE
        "CATENA_PLUGIN_VENDOR=\"${arg_VENDOR}\"" "CATENA_PLUGIN_LICENSE=\"${arg_LICENSE}\"")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
    if(NOT CATENA_SANITIZE AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
        target_link_options(${target} PRIVATE "LINKER:-z,defs")
    endif()
    set(folder "${arg_OUTPUT_DIRECTORY}")
    if(NOT folder)
        include(GNUInstallDirs)
        set(folder "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
        if(NOT folder)
            set(folder "${CMAKE_BINARY_DIR}/lib")
        endif()
        string(APPEND folder "/catena/plugins")
        install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/catena/plugins")
    endif()
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output} PREFIX "" SUFFIX ".catena" LIBRARY_OUTPUT_DIRECTORY "${folder}"
        LINK_DEPENDS "${exports}" POSITION_INDEPENDENT_CODE ON
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON)
    # Hosts refuse what others may write to, and an umask may have allowed that.
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
        COMMAND chmod go-w "$<TARGET_FILE:${target}>" "$<TARGET_FILE_DIR:${target}>")
endfunction()

function(catena_add_plugin_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS OR NOT TARGET ${name}.catena)
        message(FATAL_ERROR "catena_add_plugin_test: expected the NAME of a plugin, SOURCES and "
                            "LIBS, got '${ARGV}'")
    endif()
    add_executable(${name}-test ${arg_SOURCES})
    target_link_libraries(${name}-test PRIVATE catena::testing ${arg_LIBS})
    target_compile_definitions(${name}-test PRIVATE "PLUGIN=\"$<TARGET_FILE:${name}.catena>\"")
    add_dependencies(${name}-test ${name}.catena)
    add_test(NAME ${name}-test COMMAND ${name}-test)
    if(CATENA_CHECK_EXECUTABLE)
        add_test(NAME ${name}-check
            COMMAND "${CATENA_CHECK_EXECUTABLE}" "$<TARGET_FILE:${name}.catena>")
    endif()
endfunction()

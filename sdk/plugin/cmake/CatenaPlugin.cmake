# catena_add_plugin(NAME name SOURCES file... [FUNCTIONS header...] [CUDA_SOURCES file...]
#                   [LIBS target...] [VENDOR text] [LICENSE text] [OUTPUT_DIRECTORY folder])
#
# Builds the module name.catena with catena::plugin. It exports only the two symbols of the ABI.
# Installs it to PREFIX/lib/catena/plugins, or to the user's plugin folder if PREFIX is CMake's default
# and catena is not installed there. CUDA_SOURCES are built as name.cuda.catena if the language CUDA is
# enabled; a module whose SOURCES contain a .cu file is also built only then. The targets are
# name.catena and name.cuda.catena; the caller's folder is in their include path.
# FUNCTIONS: each of these headers that has a line CATENA_FUNCTIONS(...) is compiled by itself, so that
# an edit recompiles only that header.
# OUTPUT_DIRECTORY: used in place of <build>/lib/catena/plugins; nothing is installed.
#
# catena_add_plugin_test(PLUGIN SOURCES file... [LIBS target...] [NAME test])
#
# Adds tests of a plugin, which is given by its NAME in catena_add_plugin(): a program with
# catena::testing, in which the macro PLUGIN is the path of the plugin; and, if catena-check is
# installed, its checks of the plugin and of the CUDA kernels. The tests are PLUGIN-test, PLUGIN-check
# and PLUGIN-cuda-check. A second program for a plugin needs a NAME; the checks are added once.

function(catena_add_plugin)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;VENDOR;LICENSE;OUTPUT_DIRECTORY"
                          "SOURCES;FUNCTIONS;CUDA_SOURCES;LIBS")
    if(NOT arg_NAME OR NOT (arg_SOURCES OR arg_CUDA_SOURCES) OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "catena_add_plugin: expected NAME and SOURCES or CUDA_SOURCES, "
                            "got '${ARGN}'")
    endif()
    if(arg_SOURCES MATCHES "\\.cu(;|$)")
        _catena_cuda_module(${arg_NAME}.catena ${arg_NAME} "${arg_SOURCES}")
    elseif(arg_SOURCES)
        _catena_function_sources(functions)
        _catena_plugin_module(${arg_NAME}.catena ${arg_NAME} "${arg_SOURCES};${functions}")
    endif()
    if(arg_CUDA_SOURCES)
        _catena_cuda_module(${arg_NAME}.cuda.catena ${arg_NAME}.cuda "${arg_CUDA_SOURCES}")
    endif()
endfunction()

# Writes a source file to the build folder for each header of FUNCTIONS that has functions.
function(_catena_function_sources variable)
    set(sources "")
    foreach(header IN LISTS arg_FUNCTIONS)
        get_filename_component(path "${header}" ABSOLUTE)
        get_filename_component(name "${header}" NAME_WE)
        file(STRINGS "${path}" line REGEX "^CATENA_FUNCTIONS" LIMIT_COUNT 1)
        if(line)
            set(source "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.functions/${name}.cpp")
            file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${path}\"\n")
            list(APPEND sources "${source}")
        endif()
    endforeach()
    set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# Builds the module if CUDA is enabled, and adds it to the global property CATENA_CUDA_MODULES.
function(_catena_cuda_module target output sources)
    if(CMAKE_CUDA_COMPILER)
        set_property(GLOBAL APPEND PROPERTY CATENA_CUDA_MODULES ${target})
        _catena_plugin_module(${target} ${output} "${sources}")
        target_compile_options(${target} PRIVATE
            "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-fno-gnu-unique>")
        if(NOT CMAKE_CUDA_STANDARD)  # CMake 3.25 cannot ask nvcc for C++20 itself
            target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")
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
    target_compile_options(${target} PRIVATE
        "$<$<COMPILE_LANGUAGE:C,CXX>:-O3;-fno-math-errno;-fno-trapping-math>"
        "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>")
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
        # By default, GCC copies and fills a few numbers with "rep", which takes long to start.
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:\
-mmemcpy-strategy=libcall:-1:noalign;-mmemset-strategy=libcall:-1:noalign>")
    endif()
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
        _catena_install_plugin(${target})
    endif()
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output} PREFIX "" SUFFIX ".catena" LIBRARY_OUTPUT_DIRECTORY "${folder}"
        LINK_DEPENDS "${exports}" POSITION_INDEPENDENT_CODE ON
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON)
    # Hosts refuse plugins that others can write to, which some umasks allow.
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
        COMMAND chmod go-w "$<TARGET_FILE:${target}>" "$<TARGET_FILE_DIR:${target}>")
endfunction()

# Hosts do not search /usr/local, CMake's default prefix, unless catena is installed there; without a
# prefix the plugin is installed to the user's plugin folder. The modes do not depend on the umask.
function(_catena_install_plugin target)
    if(NOT CATENA_LIBDIR)  # catena's own build
        install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/catena/plugins")
        return()
    endif()
    install(CODE "
        set(catena_prefix \"\${CMAKE_INSTALL_PREFIX}\")
        set(catena_modes \"\${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS}\")
        set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
            GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
        if(NOT catena_prefix STREQUAL \"/usr/local\" OR
           \"${CATENA_PLUGIN_DIR}\" MATCHES \"^/usr/local/\")
            string(APPEND CMAKE_INSTALL_PREFIX \"/${CATENA_LIBDIR}\")
        elseif(IS_ABSOLUTE \"\$ENV{XDG_DATA_HOME}\")
            set(CMAKE_INSTALL_PREFIX \"\$ENV{XDG_DATA_HOME}\")
        else()
            set(CMAKE_INSTALL_PREFIX \"\$ENV{HOME}/.local/share\")
        endif()")
    install(TARGETS ${target} LIBRARY DESTINATION catena/plugins)
    install(CODE "
        set(CMAKE_INSTALL_PREFIX \"\${catena_prefix}\")
        set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS \"\${catena_modes}\")")
endfunction()

function(catena_add_plugin_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "SOURCES;LIBS")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS OR NOT TARGET ${name}.catena)
        message(FATAL_ERROR "catena_add_plugin_test: expected the name of a plugin, SOURCES, LIBS "
                            "and NAME, got '${ARGV}'")
    endif()
    set(test "${arg_NAME}")
    if(NOT test)
        set(test ${name}-test)
    endif()
    set(plugin "$<TARGET_FILE:${name}.catena>")
    add_executable(${test} ${arg_SOURCES})
    target_link_libraries(${test} PRIVATE catena::testing ${arg_LIBS})
    target_compile_definitions(${test} PRIVATE "PLUGIN=\"${plugin}\"")
    add_dependencies(${test} ${name}.catena)
    add_test(NAME ${test} COMMAND ${test})
    if(CATENA_CHECK_EXECUTABLE AND NOT TEST ${name}-check)
        set(check "${CATENA_CHECK_EXECUTABLE}" --quiet)
        add_test(NAME ${name}-check COMMAND ${check} "${plugin}")
        if(TARGET ${name}.cuda.catena)
            add_test(NAME ${name}-cuda-check
                COMMAND ${check} --with "${plugin}" "$<TARGET_FILE:${name}.cuda.catena>")
        endif()
    endif()
endfunction()

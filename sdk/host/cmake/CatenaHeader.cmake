# catena_generate_header(TARGET HEADER name PREFIX text NAMESPACE name PLUGINS plugin...)
#
# Adds the header HEADER ("example/functions.hpp") to TARGET: a typed C++ function in NAMESPACE for
# each function of the plugins whose name begins with PREFIX ("org.example."). catena-inspect writes
# it when TARGET is built, and again when a plugin or catena-inspect changes. A plugin is a target,
# or a file if it contains a '/'; paths are relative to the folder of the CMakeLists.txt.
function(catena_generate_header target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;PREFIX;NAMESPACE" "PLUGINS")
    foreach(option IN ITEMS HEADER PREFIX NAMESPACE PLUGINS)
        if(NOT arg_${option} OR arg_UNPARSED_ARGUMENTS)
            message(FATAL_ERROR "catena_generate_header(${target}): expected HEADER, PREFIX, "
                                "NAMESPACE and PLUGINS, got '${ARGN}'")
        endif()
    endforeach()
    set(program "${CATENA_INSPECT_EXECUTABLE}")
    set(written_by "${program}")
    if(NOT program)
        set(program catena-inspect)  # a target, or in PATH
        set(written_by "$<TARGET_NAME_IF_EXISTS:catena-inspect>")
    endif()
    set(files "")
    foreach(plugin IN LISTS arg_PLUGINS)
        if(NOT plugin MATCHES "[/$]")
            set(plugin "$<TARGET_FILE:${plugin}>")
        elseif(NOT plugin MATCHES "^[$]<")  # the command runs in the build folder
            get_filename_component(plugin "${plugin}" ABSOLUTE)
        endif()
        list(APPEND files "${plugin}")
    endforeach()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.include")
    add_custom_command(OUTPUT "${folder}/${arg_HEADER}"
        COMMAND "${program}" header ${files} --prefix "${arg_PREFIX}"
                --namespace "${arg_NAMESPACE}" --output "${folder}/${arg_HEADER}"
        DEPENDS ${files} "${written_by}"
        COMMENT "Writing ${arg_HEADER}" VERBATIM)
    target_sources(${target} PRIVATE "${folder}/${arg_HEADER}")
    target_include_directories(${target} PRIVATE "${folder}")
endfunction()

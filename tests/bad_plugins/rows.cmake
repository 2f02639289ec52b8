# add_bad_plugins(PREFIX FOLDER SOURCE...): builds the module PREFIXNAME, which is FOLDER/NAME.catena,
# for each row of the sources. A row starts with the comment "// NAME fails: ...", which is for the
# tests; the source is compiled with the macros BAD, which is NAME, and BAD_NAME. Comments after it:
#   // compile: ...  // link: ...  // libs: ...  // rpath: ...  options of the compiler, ...
#   // exports: all   not only the ABI's two symbols
#   // needs: OPTION  linker option without which the plugin is not built
#   // cut: N         number of bytes to remove from the end of the file
# Sets in the caller: bad_names, a list of names, and SOURCE_of_NAME.
include(CheckLinkerFlag)
function(add_bad_plugins prefix folder)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
    set(words compile link libs rpath exports needs cut)
    string(REPLACE ";" "|" either "${words}")
    set(bad_names "")
    foreach(source IN LISTS ARGN)
        set(name "")
        file(STRINGS "${source}" lines REGEX "^// ([a-z0-9_]+ fails|${either}): ")
        foreach(line IN LISTS lines ITEMS "// the_end fails: ")
            string(REGEX MATCH "^// ([a-z0-9_]+)( fails)?: *(.*)" all "${line}")
            if(NOT CMAKE_MATCH_2)
                separate_arguments(${CMAKE_MATCH_1} UNIX_COMMAND "${CMAKE_MATCH_3}")
                continue()
            endif()
            set(next ${CMAKE_MATCH_1})
            set(can_be_linked TRUE)
            if(needs)
                string(MAKE_C_IDENTIFIER "CATENA_LINKER_TAKES${needs}" taken)
                check_linker_flag(CXX ${needs} ${taken})
                set(can_be_linked ${${taken}})
            endif()
            if(name AND can_be_linked)
                set(target ${prefix}${name})
                add_library(${target} MODULE "${source}")
                target_link_libraries(${target} PRIVATE catena::plugin ${libs})
                target_compile_definitions(${target} PRIVATE BAD=${name} BAD_${name})
                # Optimized code has only the functions of this row.
                target_compile_options(${target} PRIVATE -Wno-unused $<$<CONFIG:Debug>:-O1>
                    "$<$<COMPILE_LANGUAGE:CXX>:-w>" "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>"
                    ${compile})
                target_link_options(${target} PRIVATE ${link} ${needs})
                if(NOT exports)
                    target_link_options(${target} PRIVATE
                        "LINKER:--version-script=${PROJECT_SOURCE_DIR}/sdk/plugin/cmake/plugin.map")
                endif()
                set_target_properties(${target} PROPERTIES
                    OUTPUT_NAME ${name} PREFIX "" SUFFIX ".catena" C_STANDARD 11 C_EXTENSIONS ON
                    INSTALL_RPATH "${rpath}" LIBRARY_OUTPUT_DIRECTORY "${folder}")
                add_custom_command(TARGET ${target} POST_BUILD VERBATIM  # with any umask
                    COMMAND chmod go-w "$<TARGET_FILE:${target}>" "${folder}")
                if(cut)
                    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
                        COMMAND truncate --size=-${cut} $<TARGET_FILE:${target}>)
                endif()
                list(APPEND bad_names ${name})
                set(source_of_${name} "${source}" PARENT_SCOPE)
            endif()
            foreach(word IN LISTS words)
                set(${word} "")
            endforeach()
            set(name ${next})
        endforeach()
    endforeach()
    set(bad_names "${bad_names}" PARENT_SCOPE)
endfunction()

# catena_find_library(TARGET HEADER LIBRARY): adds an imported target for a library whose own CMake
# files are missing, or fail if its programs are not installed.
function(catena_find_library target header library)
    find_path(${library}_INCLUDE_DIR ${header})
    find_library(${library}_LIBRARY ${library})
    mark_as_advanced(${library}_INCLUDE_DIR ${library}_LIBRARY)
    if(NOT ${library}_INCLUDE_DIR OR NOT ${library}_LIBRARY)
        message(FATAL_ERROR "${library}: expected ${header} and the library, got none: see "
                            "tools/install-deps")
    endif()
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION "${${library}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${${library}_INCLUDE_DIR}")
endfunction()

catena_find_library(libzip::zip zip.h zip)
catena_find_library(LibElf::elf gelf.h elf)
catena_find_library(Nettle::nettle nettle/sha2.h nettle)
catena_find_library(Acl::acl acl/libacl.h acl)
catena_find_library(PCRE2::pcre2 pcre2.h pcre2-8)
catena_find_library(UTF8PROC::utf8proc utf8proc.h utf8proc)

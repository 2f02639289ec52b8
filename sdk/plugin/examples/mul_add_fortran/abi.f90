! What this plugin uses of <catena/abi.h>, written by hand. layout.f90 prints it, and a test
! compares it with the ABI's own layout.
module catena_abi
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int32_t), parameter :: ok = 0, e_shape = 3
    integer(c_int32_t), parameter :: phase_forward = 0, phase_backward = 1
    integer(c_int32_t), parameter :: kernel_deterministic = 4, priority_portable = 100
    integer, parameter :: max_ndim = 16

    type, bind(C) :: catena_dtype
        integer(c_int8_t) :: code, bits
        integer(c_int16_t) :: lanes
    end type
    type, bind(C) :: catena_dl_tensor
        type(c_ptr) :: data
        integer(c_int32_t) :: device_type, device_id, ndim
        type(catena_dtype) :: dtype
        type(c_ptr) :: shape, strides
        integer(c_int64_t) :: byte_offset
    end type
    type, bind(C) :: catena_tensor
        integer(c_int32_t) :: struct_size, flags
        type(catena_dl_tensor) :: dl
        integer(c_int64_t) :: nbytes
        integer(c_int32_t) :: align_log2, reserved
        type(c_ptr) :: host_ref
    end type
    type, bind(C) :: catena_meta
        integer(c_int32_t) :: struct_size, ndim
        type(catena_dtype) :: dtype
        integer(c_int32_t) :: device_type
        integer(c_int64_t) :: shape(max_ndim)
    end type
    type, bind(C) :: catena_port_spec
        integer(c_int32_t) :: struct_size, flags
        type(c_ptr) :: name, doc, type_var
    end type
    type, bind(C) :: catena_function
        integer(c_int32_t) :: struct_size, flags
        type(c_ptr) :: name, doc
        integer(c_int32_t) :: version, n_attrs, n_inputs, n_outputs
        type(c_ptr) :: attrs, inputs, outputs
        integer(c_int64_t) :: retain_x, retain_y
        type(c_funptr) :: infer, gradient
        type(c_ptr) :: grad_function, examples
        type(c_funptr) :: compose
    end type
    type, bind(C) :: catena_call
        integer(c_int32_t) :: struct_size, flags, phase, n_saved
        type(c_ptr) :: function, attrs
        integer(c_int32_t) :: n_x, n_y
        type(c_ptr) :: x, y, gy, gx, saved, req, targets, stream, scratch
        integer(c_int64_t) :: scratch_bytes
        type(c_ptr) :: dev
        integer(c_int32_t) :: device_id, reserved
    end type
    type, bind(C) :: catena_kernel
        integer(c_int32_t) :: struct_size, flags, phase, priority
        type(c_ptr) :: function
        integer(c_int32_t) :: version_min, version_max
        type(c_ptr) :: device, isa, types
        integer(c_int32_t) :: n_types, n_saved
        type(c_ptr) :: variant
        integer(c_int64_t) :: retain_x, retain_y
        type(c_funptr) :: supports, plan, run
        type(c_ptr) :: name
    end type
    type, bind(C) :: catena_host
        integer(c_int32_t) :: struct_size
        integer(c_int16_t) :: abi_major, abi_minor
        type(c_ptr) :: name, version
        type(c_funptr) :: log, fail, parallel_for, slots, philox, config, extensions, find, call, &
                          meta, get_extension, read
    end type
    type, bind(C) :: catena_manifest
        character(c_char) :: magic(8)
        integer(c_int32_t) :: struct_size
        integer(c_int16_t) :: abi_major, abi_minor_built, abi_minor_needed, flags
        integer(c_int32_t) :: reserved
        character(c_char) :: id(96), version(32), vendor(64), license(32), devices(64)
    end type
    type, bind(C) :: catena_plugin
        integer(c_int32_t) :: struct_size, n_functions, n_kernels, n_backends, n_extensions, &
                              reserved
        type(c_ptr) :: functions, kernels, backends, extensions
        type(c_funptr) :: init, deinit
    end type

    abstract interface
        function fail_service(ctx, status, text) bind(C) result(same)
            import
            type(c_ptr), value :: ctx
            integer(c_int32_t), value :: status
            character(c_char), intent(in) :: text(*)
            integer(c_int32_t) :: same
        end function
        subroutine parallel_for_service(ctx, n, grain, fn, user) bind(C)
            import
            type(c_ptr), value :: ctx, user
            integer(c_int64_t), value :: n, grain
            type(c_funptr), value :: fn
        end subroutine
    end interface

    ! The host's table, set by the entry before any other call.
    type(catena_host), pointer :: host => null()

contains

    ! text ends in a null character.
    function fail(ctx, status, text) result(same)
        type(c_ptr), intent(in) :: ctx
        integer(c_int32_t), intent(in) :: status
        character(*), intent(in) :: text
        integer(c_int32_t) :: same
        procedure(fail_service), pointer :: service
        call c_f_procpointer(host%fail, service)
        same = service(ctx, status, text)
    end function

    subroutine parallel_for(ctx, n, fn, user)
        type(c_ptr), value :: ctx, user
        integer(c_int64_t), intent(in) :: n
        type(c_funptr), value :: fn  ! by reference it would need a constant with an address
        procedure(parallel_for_service), pointer :: service
        call c_f_procpointer(host%parallel_for, service)
        call service(ctx, n, 16384_c_int64_t, fn, user)
    end subroutine

    ! Entry i, from 0, of a list of tensors; null if it is not there.
    function tensor(list, i) result(t)
        type(c_ptr), intent(in) :: list
        integer, intent(in) :: i
        type(catena_tensor), pointer :: t
        type(c_ptr), pointer :: entries(:)
        t => null()
        call c_f_pointer(list, entries, [i + 1])
        if (c_associated(entries(i + 1))) call c_f_pointer(entries(i + 1), t)
    end function

    ! Where its elements begin; null for none.
    function elements(t) result(first)
        type(catena_tensor), pointer, intent(in) :: t
        type(c_ptr) :: first
        first = c_null_ptr
        if (.not. associated(t)) return
        first = transfer(transfer(t%dl%data, 0_c_intptr_t) + t%dl%byte_offset, first)
    end function
end module

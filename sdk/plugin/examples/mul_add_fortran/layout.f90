! Prints the layout of abi.f90, for a test: sizes of structs, and where some fields begin.
program layout
    use catena_abi
    implicit none
    type(catena_dtype), target :: dtype
    type(catena_dl_tensor), target :: dl
    type(catena_tensor), target :: tensor_
    type(catena_meta), target :: meta
    type(catena_port_spec), target :: port
    type(catena_function), target :: function_
    type(catena_call), target :: call_
    type(catena_kernel), target :: kernel
    type(catena_host), target :: host_
    type(catena_manifest), target :: manifest
    type(catena_plugin), target :: plugin
    call say('catena_dtype', c_sizeof(dtype), 'lanes', c_loc(dtype), c_loc(dtype%lanes))
    call say('catena_dl_tensor', c_sizeof(dl), 'byte_offset', c_loc(dl), c_loc(dl%byte_offset))
    call say('catena_tensor', c_sizeof(tensor_), 'host_ref', c_loc(tensor_), &
             c_loc(tensor_%host_ref))
    call say('catena_meta', c_sizeof(meta), 'shape', c_loc(meta), c_loc(meta%shape))
    call say('catena_port_spec', c_sizeof(port), 'type_var', c_loc(port), c_loc(port%type_var))
    call say('catena_function', c_sizeof(function_), 'infer', c_loc(function_), &
             c_loc(function_%infer))
    call say('catena_function', c_sizeof(function_), 'compose', c_loc(function_), &
             c_loc(function_%compose))
    call say('catena_call', c_sizeof(call_), 'gx', c_loc(call_), c_loc(call_%gx))
    call say('catena_call', c_sizeof(call_), 'device_id', c_loc(call_), c_loc(call_%device_id))
    call say('catena_kernel', c_sizeof(kernel), 'run', c_loc(kernel), c_loc(kernel%run))
    call say('catena_kernel', c_sizeof(kernel), 'name', c_loc(kernel), c_loc(kernel%name))
    call say('catena_host', c_sizeof(host_), 'fail', c_loc(host_), c_loc(host_%fail))
    call say('catena_host', c_sizeof(host_), 'parallel_for', c_loc(host_), &
             c_loc(host_%parallel_for))
    call say('catena_host', c_sizeof(host_), 'read', c_loc(host_), c_loc(host_%read))
    call say('catena_manifest', c_sizeof(manifest), 'devices', c_loc(manifest), &
             c_loc(manifest%devices))
    call say('catena_plugin', c_sizeof(plugin), 'deinit', c_loc(plugin), c_loc(plugin%deinit))

contains

    subroutine say(struct, size, field, base, place)
        character(*), intent(in) :: struct, field
        integer(c_size_t), intent(in) :: size
        type(c_ptr), intent(in) :: base, place
        print '(a,1x,a,1x,a,1x,i0)', 'struct', struct, 'size', size
        print '(a,1x,a,a,a,1x,a,1x,i0)', 'field', struct, '.', field, 'offset', &
            transfer(place, 0_c_intptr_t) - transfer(base, 0_c_intptr_t)
    end subroutine
end program

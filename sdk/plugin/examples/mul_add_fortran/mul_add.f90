! w = x * y + z in Fortran, on the ABI alone: float32 and float64, equal shapes, the host's threads.
module mul_add_float32
    use catena_abi
    implicit none
    integer, parameter :: wp = c_float
    include 'kernels.inc'
end module

module mul_add_float64
    use catena_abi
    implicit none
    integer, parameter :: wp = c_double
    include 'kernels.inc'
end module

module mul_add_plugin
    use catena_abi
    use mul_add_float32, only: forward_float32 => forward, backward_float32 => backward
    use mul_add_float64, only: forward_float64 => forward, backward_float64 => backward
    implicit none
    private

    ! Constant data: hosts read it from the file. manifest.ld puts it where they look for it, for
    ! Fortran has no word for sections.
    integer :: i
    character(*), parameter :: nul = c_null_char
    character(*), parameter :: id = 'org.example.fortran.mul_add'
    character(96), parameter :: id_96 = id//repeat(nul, 96 - len(id))
    character(64), parameter :: devices_64 = 'cpu'//repeat(nul, 61)
    character(32), parameter :: version_32 = '1.0.0'//repeat(nul, 27)
    type(catena_manifest), bind(C, name='catena_manifest_v1'), public :: manifest = &
        catena_manifest(magic=['C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'], struct_size=312, &
                        abi_major=1, abi_minor_built=0, abi_minor_needed=0, flags=0, reserved=0, &
                        id=[(id_96(i:i), i=1, 96)], version=[(version_32(i:i), i=1, 32)], &
                        vendor=[(nul, i=1, 64)], license=[(nul, i=1, 32)], &
                        devices=[(devices_64(i:i), i=1, 64)])

    ! Texts and tables, never freed. Addresses are not constants in Fortran, so entry writes them.
    character(len(id) + 1), target :: name = id//nul
    character(14), target :: doc = 'w = x * y + z'//nul
    character(25), target :: example = 'x=(2,3) y=(2,3) z=(2,3)'//nul
    character(4), target :: cpu = 'cpu'//nul
    character(8), target :: fortran = 'fortran'//nul
    character(2), target :: letters(5) = ['x'//nul, 'y'//nul, 'z'//nul, 'w'//nul, 'T'//nul]
    character(1), target :: empty = nul
    type(catena_dtype), target :: float32 = catena_dtype(2, 32, 1), float64 = catena_dtype(2, 64, 1)
    type(catena_port_spec), target :: ports(4)
    type(catena_function), target :: mul_add
    type(catena_kernel), target :: kernels(4)
    type(catena_plugin), target :: plugin
    type(c_ptr), target :: inputs(3), outputs(1), examples(2), functions(1), kernel_list(4)

contains

    function entry(table, ctx) bind(C, name='catena_plugin_entry_v1') result(made)
        type(catena_host), target, intent(in) :: table
        type(c_ptr), value :: ctx
        type(c_ptr) :: made
        integer :: k
        host => table
        do k = 1, 4
            ports(k) = catena_port_spec(c_sizeof(ports(k)), 0, c_loc(letters(k)), c_loc(empty), &
                                        c_loc(letters(5)))
        end do
        inputs = [c_loc(ports(1)), c_loc(ports(2)), c_loc(ports(3))]
        outputs = [c_loc(ports(4))]
        examples = [c_loc(example), c_null_ptr]
        mul_add = catena_function(c_sizeof(mul_add), 0, c_loc(name), c_loc(doc), 1, 0, 3, 1, &
                                  c_null_ptr, c_loc(inputs), c_loc(outputs), 3, 0, &
                                  c_funloc(infer), c_null_funptr, c_null_ptr, c_loc(examples), &
                                  c_null_funptr)
        kernels(1) = kernel(phase_forward, c_loc(float32), c_funloc(forward_float32))
        kernels(2) = kernel(phase_forward, c_loc(float64), c_funloc(forward_float64))
        kernels(3) = kernel(phase_backward, c_loc(float32), c_funloc(backward_float32))
        kernels(4) = kernel(phase_backward, c_loc(float64), c_funloc(backward_float64))
        do k = 1, 4
            kernel_list(k) = c_loc(kernels(k))
        end do
        functions = [c_loc(mul_add)]
        plugin = catena_plugin(c_sizeof(plugin), 1, 4, 0, 0, 0, c_loc(functions), &
                               c_loc(kernel_list), c_null_ptr, c_null_ptr, c_null_funptr, &
                               c_null_funptr)
        made = c_loc(plugin)
    end function

    function kernel(phase, types, run) result(k)
        integer(c_int32_t), intent(in) :: phase
        type(c_ptr), value :: types
        type(c_funptr), value :: run
        type(catena_kernel) :: k
        k = catena_kernel(c_sizeof(k), kernel_deterministic, phase, priority_portable, &
                          c_loc(name), 1, 1, c_loc(cpu), c_loc(empty), types, 1, 0, c_null_ptr, &
                          3, 0, c_null_funptr, c_null_funptr, run, c_loc(fortran))
    end function

    function infer(ctx, attrs, x, n_x, y, n_y) bind(C, name='') result(status)
        type(c_ptr), value :: ctx, attrs
        integer(c_int32_t), value :: n_x, n_y
        type(c_ptr), intent(in) :: x(n_x), y(n_y)
        integer(c_int32_t) :: status
        type(catena_meta), pointer :: first, other, out
        integer :: k, n
        call c_f_pointer(x(1), first)
        n = first%ndim
        do k = 2, n_x
            call c_f_pointer(x(k), other)
            if (other%ndim == n) then
                if (all(other%shape(:n) == first%shape(:n))) cycle
            end if
            status = fail(ctx, e_shape, &
                          '['//id//'] x, y, z: expected equal shapes, got different ones'//nul)
            return
        end do
        call c_f_pointer(y(1), out)  ! field by field: the host's struct may be of another size
        out%ndim = first%ndim
        out%dtype = first%dtype
        out%device_type = first%device_type
        do k = 1, n
            out%shape(k) = first%shape(k)
        end do
        status = ok
    end function
end module

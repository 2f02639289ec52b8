//! What this plugin uses of <catena/abi.h>, written by hand. layout.rs prints it, and a test
//! compares it with the ABI's own layout.
#![allow(dead_code)] // the ABI has more than one plugin uses

use std::os::raw::{c_char, c_void};

pub type Status = i32;
pub const OK: Status = 0;
pub const E_SHAPE: Status = 3;
pub const E_INTERNAL: Status = 7;

pub const MAX_NDIM: usize = 16;
pub const PHASE_FORWARD: i32 = 0;
pub const PHASE_BACKWARD: i32 = 1;
pub const KERNEL_DETERMINISTIC: u32 = 4;
pub const PRIORITY_PORTABLE: i32 = 100;

/// What only the host looks into.
#[repr(C)]
pub struct Opaque {
    _private: [u8; 0],
}
pub type Ctx = *mut Opaque;
pub type Var = *mut Opaque;

/// A static table: constant, so that threads may share the pointers in it.
#[repr(transparent)]
pub struct Table<T>(pub T);
unsafe impl<T> Sync for Table<T> {}

// Structs with C's layout, and a function that says what it is.
macro_rules! abi {
    ($($(#[$about:meta])* $name:ident = $c:literal { $($field:ident: $kind:ty,)* })*) => {
        $($(#[$about])* #[repr(C)]
        pub struct $name { $(pub $field: $kind,)* })*

        pub fn print_layout() {
            $({
                let value = std::mem::MaybeUninit::<$name>::uninit();
                let base = value.as_ptr();
                println!("struct {} size {}", $c, std::mem::size_of::<$name>());
                $(let field = unsafe { std::ptr::addr_of!((*base).$field) };
                println!("field {}.{} offset {} size {}", $c, stringify!($field),
                         field as usize - base as usize, size_of_target(field));)*
            })*
        }
    };
}
fn size_of_target<T>(_: *const T) -> usize {
    std::mem::size_of::<T>()
}

pub type RangeFn = unsafe extern "C" fn(*mut c_void, i64, i64, i32);
type CallFn = unsafe extern "C" fn(Ctx, *const Call) -> Status;
/// A service or callback that this plugin neither calls nor has.
type Unused = Option<unsafe extern "C" fn()>;

abi! {
    #[derive(Clone, Copy)]
    Dtype = "catena_dtype" { code: u8, bits: u8, lanes: u16, }
    DlTensor = "catena_dl_tensor" {
        data: *mut c_void,
        device_type: i32,
        device_id: i32,
        ndim: i32,
        dtype: Dtype,
        shape: *mut i64,
        strides: *mut i64,
        byte_offset: u64,
    }
    Tensor = "catena_tensor" {
        struct_size: u32,
        flags: u32,
        dl: DlTensor,
        nbytes: u64,
        align_log2: u32,
        reserved: u32,
        host_ref: *mut c_void,
    }
    Meta = "catena_meta" {
        struct_size: u32,
        ndim: i32,
        dtype: Dtype,
        device_type: i32,
        shape: [i64; MAX_NDIM],
    }
    PortSpec = "catena_port_spec" {
        struct_size: u32,
        flags: u32,
        name: *const c_char,
        doc: *const c_char,
        type_var: *const c_char,
    }
    Function = "catena_function" {
        struct_size: u32,
        flags: u32,
        name: *const c_char,
        doc: *const c_char,
        version: u32,
        n_attrs: u32,
        n_inputs: u32,
        n_outputs: u32,
        attrs: *const *const Opaque,
        inputs: *const *const PortSpec,
        outputs: *const *const PortSpec,
        retain_x: u64,
        retain_y: u64,
        infer: Option<unsafe extern "C" fn(
            Ctx, *const Opaque, *const *const Meta, u32, *const *mut Meta, u32) -> Status>,
        gradient: Unused,
        grad_function: *const c_char,
        examples: *const *const c_char,
        compose: Option<unsafe extern "C" fn(Ctx, *const ComposeCall) -> Status>,
    }
    ComposeCall = "catena_compose_call" {
        struct_size: u32,
        flags: u32,
        function: *const Function,
        attrs: *const Opaque,
        n_x: u32,
        n_y: u32,
        x: *const Var,
        y: *mut Var,
    }
    Call = "catena_call" {
        struct_size: u32,
        flags: u32,
        phase: i32,
        n_saved: u32,
        function: *const Function,
        attrs: *const Opaque,
        n_x: u32,
        n_y: u32,
        x: *const *const Tensor,
        y: *const *mut Tensor,
        gy: *const *const Tensor,
        gx: *const *mut Tensor,
        saved: *const *mut Tensor,
        req: *const u8,
        targets: *const u64,
        stream: *mut Opaque,
        scratch: *mut c_void,
        scratch_bytes: u64,
        dev: *mut c_void,
        device_id: i32,
        reserved: u32,
    }
    Kernel = "catena_kernel" {
        struct_size: u32,
        flags: u32,
        phase: i32,
        priority: i32,
        function: *const c_char,
        version_min: u32,
        version_max: u32,
        device: *const c_char,
        isa: *const c_char,
        types: *const Dtype,
        n_types: u32,
        n_saved: u32,
        variant: *const c_char,
        retain_x: u64,
        retain_y: u64,
        supports: Unused,
        plan: Unused,
        run: Option<CallFn>,
        name: *const c_char,
    }
    Host = "catena_host" {
        struct_size: u32,
        abi_major: u16,
        abi_minor: u16,
        name: *const c_char,
        version: *const c_char,
        log: Unused,
        fail: unsafe extern "C" fn(Ctx, Status, *const c_char) -> Status,
        parallel_for: unsafe extern "C" fn(Ctx, i64, i64, RangeFn, *mut c_void),
        slots: Unused,
        philox: Unused,
        config: Unused,
        extensions: Unused,
        find: unsafe extern "C" fn(Ctx, *const c_char, *mut *const Opaque) -> Status,
        call: unsafe extern "C" fn(
            Ctx, *const Opaque, *const Opaque, u32, *const Var, u32, *mut Var, u32) -> Status,
        meta: unsafe extern "C" fn(Ctx, Var, *mut Meta) -> Status,
        get_extension: Unused,
        read: Unused,
    }
    Manifest = "catena_manifest" {
        magic: [u8; 8],
        struct_size: u32,
        abi_major: u16,
        abi_minor_built: u16,
        abi_minor_needed: u16,
        flags: u16,
        reserved: u32,
        id: [u8; 96],
        version: [u8; 32],
        vendor: [u8; 64],
        license: [u8; 32],
        devices: [u8; 64],
    }
    Plugin = "catena_plugin" {
        struct_size: u32,
        n_functions: u32,
        n_kernels: u32,
        n_backends: u32,
        n_extensions: u32,
        reserved: u32,
        functions: *const *const Function,
        kernels: *const *const Kernel,
        backends: *const *const Opaque,
        extensions: *const *const Opaque,
        init: Unused,
        deinit: Unused,
    }
}

/// A text of the manifest: the rest of it is zero.
pub const fn text<const N: usize>(from: &str) -> [u8; N] {
    let mut to = [0; N];
    let mut i = 0;
    while i < from.len() {
        to[i] = from.as_bytes()[i];
        i += 1;
    }
    to
}

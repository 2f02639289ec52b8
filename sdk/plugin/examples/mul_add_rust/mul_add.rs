//! w = x * y + z in Rust, on the ABI alone: float32 and float64, equal shapes, the host's threads.
mod abi;
use abi::*;

use std::ops::{Add, Mul, Range};
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

unsafe fn host() -> &'static Host {
    &*HOST.load(Ordering::Relaxed)
}

/// A status, and the text that the user reads.
type Failure = (Status, String);

/// The border to the host: errors become a status, and no panic passes it.
unsafe fn guarded(ctx: Ctx, body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let (status, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return OK,
        Ok(Err(failure)) => failure,
        Err(_) => (E_INTERNAL, "[org.example.rust.mul_add] it panicked".to_string()),
    };
    let text: Vec<u8> = text.bytes().filter(|&b| b != 0).chain([0]).collect();
    (host().fail)(ctx, status, text.as_ptr().cast())
}

/// Runs body over the parts of 0 .. n on the host's threads.
unsafe fn parallel<F: Fn(Range<usize>) + Sync>(ctx: Ctx, n: usize, body: F) {
    struct Work<F> {
        body: F,
        panicked: AtomicBool,
    }
    unsafe extern "C" fn part<F: Fn(Range<usize>) + Sync>(
        user: *mut c_void, begin: i64, end: i64, _slot: i32,
    ) {
        let work = &*(user as *const Work<F>);
        let range = begin as usize..end as usize;
        if catch_unwind(AssertUnwindSafe(|| (work.body)(range))).is_err() {
            work.panicked.store(true, Ordering::Relaxed);
        }
    }
    let work = Work { body, panicked: AtomicBool::new(false) };
    let user = &work as *const Work<F> as *mut c_void;
    (host().parallel_for)(ctx, n as i64, 16384, part::<F>, user);
    assert!(!work.panicked.load(Ordering::Relaxed));
}

trait Number: Copy + Sync + Mul<Output = Self> + Add<Output = Self> + From<f32> {
    const TYPES: Dtype;
}
impl Number for f32 {
    const TYPES: Dtype = Dtype { code: 2, bits: 32, lanes: 1 };
}
impl Number for f64 {
    const TYPES: Dtype = Dtype { code: 2, bits: 64, lanes: 1 };
}

/// The elements of a tensor, which must not be null; they are dense.
unsafe fn elements<'a, T>(tensor: *const Tensor) -> Option<&'a [T]> {
    let t = tensor.as_ref()?;
    let n = t.nbytes as usize / std::mem::size_of::<T>();
    let data = (t.dl.data as *const u8).wrapping_add(t.dl.byte_offset as usize);
    Some(if n == 0 { &[] } else { std::slice::from_raw_parts(data.cast(), n) })
}

/// An output: each thread takes its own parts of it.
struct Output<T>(*mut T);
unsafe impl<T> Sync for Output<T> {}
impl<T> Output<T> {
    unsafe fn of(tensor: *const *mut Tensor, i: usize) -> Option<Self> {
        let t = (*tensor.add(i)).as_ref()?;
        Some(Output((t.dl.data as *mut u8).wrapping_add(t.dl.byte_offset as usize).cast()))
    }
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, range: &Range<usize>) -> &mut [T] {
        std::slice::from_raw_parts_mut(self.0.add(range.start), range.len())
    }
}

unsafe extern "C" fn forward<T: Number>(ctx: Ctx, call: *const Call) -> Status {
    guarded(ctx, || {
        let c = &*call;
        let input = |i| elements::<T>(*c.x.add(i)).unwrap();
        let (x, y, z) = (input(0), input(1), input(2));
        let w = Output::<T>::of(c.y, 0).unwrap();
        parallel(ctx, x.len(), |part| {
            let (x, y, z) = (&x[part.clone()], &y[part.clone()], &z[part.clone()]);
            for (i, w) in w.part(&part).iter_mut().enumerate() {
                *w = x[i] * y[i] + z[i];
            }
        });
        Ok(())
    })
}

unsafe extern "C" fn backward<T: Number>(ctx: Ctx, call: *const Call) -> Status {
    guarded(ctx, || {
        let c = &*call;
        let input = |i| elements::<T>(*c.x.add(i)).unwrap();
        let (x, y) = (input(0), input(1));
        let gw = elements::<T>(*c.gy); // None: no gradient reached w
        let [gx, gy, gz] = [0, 1, 2].map(|i| Output::<T>::of(c.gx, i)); // None: not wanted
        let gradient = |i: usize| gw.map_or(T::from(0.0), |g| g[i]);
        let times = |target: &Option<Output<T>>, other: &[T], part: &Range<usize>| {
            if let Some(target) = target {
                for (to, i) in target.part(part).iter_mut().zip(part.clone()) {
                    *to = gradient(i) * other[i];
                }
            }
        };
        parallel(ctx, x.len(), |part| {
            times(&gx, y, &part);
            times(&gy, x, &part);
            if let Some(gz) = &gz {
                for (to, i) in gz.part(&part).iter_mut().zip(part) {
                    *to = gradient(i);
                }
            }
        });
        Ok(())
    })
}

fn shape_of(meta: &Meta) -> &[i64] {
    &meta.shape[..meta.ndim as usize]
}
fn check_equal<'a>(mut shapes: impl Iterator<Item = &'a [i64]>) -> Result<(), Failure> {
    let first = shapes.next().unwrap_or(&[]);
    match shapes.zip(["y", "z"]).find(|(shape, _)| *shape != first) {
        None => Ok(()),
        Some((shape, name)) => Err((E_SHAPE, format!(
            "[org.example.rust.mul_add] {}: expected the shape {:?} of x, got {:?}",
            name, first, shape))),
    }
}

unsafe extern "C" fn infer(
    ctx: Ctx, _attrs: *const Opaque, x: *const *const Meta, n_x: u32, y: *const *mut Meta,
    _n_y: u32,
) -> Status {
    guarded(ctx, || {
        let shape = |i: usize| shape_of(&**x.add(i));
        check_equal((0..n_x as usize).map(shape))?;
        // Field by field: the host's struct may be of another size.
        let (first, out) = (&**x, &mut **y);
        out.ndim = first.ndim;
        out.dtype = first.dtype;
        out.device_type = first.device_type;
        out.shape[..first.ndim as usize].copy_from_slice(shape(0));
        Ok(())
    })
}

macro_rules! c {
    ($text:literal) => {
        concat!($text, "\0").as_ptr() as *const c_char
    };
}

macro_rules! size {
    ($kind:ty) => {
        std::mem::size_of::<$kind>() as u32
    };
}

/// What the function computes, as calls of the host's functions: for dtypes without kernels.
unsafe extern "C" fn compose(ctx: Ctx, call: *const ComposeCall) -> Status {
    let call_of = |name: *const c_char, x: [Var; 2], y: *mut Var| {
        let mut function = null();
        match (host().find)(ctx, name, &mut function) {
            OK => (host().call)(ctx, function, null(), 0, x.as_ptr(), 2, y, 1),
            failure => failure,
        }
    };
    let (x, mut product) = (std::slice::from_raw_parts((*call).x, 3), std::ptr::null_mut());
    let mut metas: [Meta; 3] = std::mem::zeroed();
    for (meta, variable) in metas.iter_mut().zip(x) {
        meta.struct_size = size!(Meta);
        let status = (host().meta)(ctx, *variable, meta);
        if status != OK {
            return status;
        }
    }
    let status = guarded(ctx, || check_equal(metas.iter().map(shape_of)));
    if status != OK {
        return status;
    }
    match call_of(c!("catena.mul"), [x[0], x[1]], &mut product) {
        OK => call_of(c!("catena.add"), [product, x[2]], (*call).y),
        failure => failure,
    }
}


const fn port(name: *const c_char) -> Table<PortSpec> {
    Table(PortSpec { struct_size: size!(PortSpec), flags: 0, name, doc: c!(""), type_var: c!("T") })
}
static X: Table<PortSpec> = port(c!("x"));
static Y: Table<PortSpec> = port(c!("y"));
static Z: Table<PortSpec> = port(c!("z"));
static W: Table<PortSpec> = port(c!("w"));
static INPUTS: Table<[*const PortSpec; 3]> = Table([&X.0, &Y.0, &Z.0]);
static OUTPUTS: Table<[*const PortSpec; 1]> = Table([&W.0]);
static EXAMPLES: Table<[*const c_char; 2]> = Table([c!("x=(2,3) y=(2,3) z=(2,3)"), null()]);
static MUL_ADD: Table<Function> = Table(Function {
    struct_size: size!(Function),
    flags: 0,
    name: c!("org.example.rust.mul_add"),
    doc: c!("w = x * y + z"),
    version: 1,
    n_attrs: 0,
    n_inputs: 3,
    n_outputs: 1,
    attrs: null(),
    inputs: &INPUTS.0 as *const _ as *const *const PortSpec,
    outputs: &OUTPUTS.0 as *const _ as *const *const PortSpec,
    retain_x: 3,
    retain_y: 0,
    infer: Some(infer),
    gradient: None,
    grad_function: null(),
    examples: &EXAMPLES.0 as *const _ as *const *const c_char,
    compose: Some(compose),
});

static TYPES: [Dtype; 2] = [f32::TYPES, f64::TYPES];
macro_rules! kernel {
    ($phase:expr, $type:expr, $run:expr) => {
        Table(Kernel {
            struct_size: size!(Kernel),
            flags: KERNEL_DETERMINISTIC,
            phase: $phase,
            priority: PRIORITY_PORTABLE,
            function: c!("org.example.rust.mul_add"),
            version_min: 1,
            version_max: 1,
            device: c!("cpu"),
            isa: c!(""),
            types: &TYPES[$type],
            n_types: 1,
            n_saved: 0,
            variant: null(),
            retain_x: 3,
            retain_y: 0,
            supports: None,
            plan: None,
            run: Some($run),
            name: c!("rust"),
        })
    };
}
static KERNELS: [Table<Kernel>; 4] = [
    kernel!(PHASE_FORWARD, 0, forward::<f32>),
    kernel!(PHASE_FORWARD, 1, forward::<f64>),
    kernel!(PHASE_BACKWARD, 0, backward::<f32>),
    kernel!(PHASE_BACKWARD, 1, backward::<f64>),
];
static FUNCTION_LIST: Table<[*const Function; 1]> = Table([&MUL_ADD.0]);
static KERNEL_LIST: Table<[*const Kernel; 4]> =
    Table([&KERNELS[0].0, &KERNELS[1].0, &KERNELS[2].0, &KERNELS[3].0]);
static PLUGIN: Table<Plugin> = Table(Plugin {
    struct_size: size!(Plugin),
    n_functions: 1,
    n_kernels: 4,
    n_backends: 0,
    n_extensions: 0,
    reserved: 0,
    functions: &FUNCTION_LIST.0 as *const _ as *const *const Function,
    kernels: &KERNEL_LIST.0 as *const _ as *const *const Kernel,
    backends: null(),
    extensions: null(),
    init: None,
    deinit: None,
});

#[no_mangle]
#[link_section = ".catena"]
#[allow(non_upper_case_globals)]
pub static catena_manifest_v1: Manifest = Manifest {
    magic: *b"CATENAPL",
    struct_size: size!(Manifest),
    abi_major: 1,
    abi_minor_built: 0,
    abi_minor_needed: 0,
    flags: 0,
    reserved: 0,
    id: text("org.example.rust.mul_add"),
    version: text("1.0.0"),
    vendor: text(""),
    license: text(""),
    devices: text("cpu"),
};

/// # Safety
/// The host's table is never freed.
#[no_mangle]
pub unsafe extern "C" fn catena_plugin_entry_v1(host: *const Host, _ctx: Ctx) -> *const Plugin {
    HOST.store(host as *mut Host, Ordering::Relaxed);
    &PLUGIN.0
}

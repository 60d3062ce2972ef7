//! Policies of caches in Python, to be tried in simulations.
//!
//! Runs are made on threads that are no threads of Python, several at a time. So each call attaches its thread for as
//! long as it lasts, and nothing of a simulation waits for another one meanwhile.

use imbrex_core::cache::{AccessKind, BroughtPolicy, CacheToFill, PolicyCall, PolicyCode};
use imbrex_core::error::BroughtFailure;
use imbrex_core::extent::Extent;
use imbrex_core::units::Lba;
use imbrex_stack::BroughtPolicies;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyRange;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The methods that a policy must have.
const METHODS: [&str; 4] = ["on_insert", "on_access", "victims", "on_remove"];

/// Characters of a value at most that an error repeats.
const SHOWN_MAX: usize = 80;

/// What a policy may know of the cache that it is for. Blocks are of 4 KiB.
#[pyclass(frozen, module = "imbrex")]
pub struct Cache {
    cache: CacheToFill,
}

#[pymethods]
impl Cache {
    /// Blocks that it holds.
    #[getter]
    fn capacity(&self) -> u64 {
        self.cache.capacity.0
    }

    /// Blocks of the device that it caches.
    #[getter]
    fn blocks(&self) -> u64 {
        self.cache.backing.blocks.0
    }

    /// Bands of that device; 0 where it has none.
    #[getter]
    fn bands(&self) -> u32 {
        self.cache.backing.bands.as_ref().map_or(0, |bands| bands.bands())
    }

    /// Blocks of the log before the bands; none where that is not known.
    #[getter]
    fn log_blocks(&self) -> Option<u64> {
        self.cache.backing.log.map(|log| log.blocks.0)
    }

    /// The number of the band in which a block is.
    fn band_of(&self, block: u64) -> PyResult<u32> {
        match &self.cache.backing.bands {
            Some(bands) if block < bands.blocks().0 => Ok(bands.band_of(Lba(block)).0),
            bands => Err(PyValueError::new_err(format!(
                "block {block}: is in no band; accepted: {}",
                accepted(bands.as_ref().map(|bands| bands.blocks().0))
            ))),
        }
    }

    /// The blocks of a band.
    fn blocks_of<'py>(&self, py: Python<'py>, band: u32) -> PyResult<Bound<'py, PyRange>> {
        match &self.cache.backing.bands {
            Some(bands) if band < bands.bands() => {
                range(py, bands.extent_of(imbrex_core::map::BandId(band)))
            }
            bands => Err(PyValueError::new_err(format!(
                "band {band}: there is none; accepted: {}",
                accepted(bands.as_ref().map(|bands| u64::from(bands.bands())))
            ))),
        }
    }
}

/// Which numbers there are, of so many.
fn accepted(count: Option<u64>) -> String {
    match count {
        Some(count) => format!("0 to {}", count.saturating_sub(1)),
        None => "a cache over a device with bands".to_string(),
    }
}

fn range(py: Python<'_>, extent: Extent) -> PyResult<Bound<'_, PyRange>> {
    PyRange::new(py, extent.start.0 as isize, extent.end().0 as isize)
}

fn lock<T: ?Sized>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads on which policies work, by the numbers that Python has for them.
#[derive(Clone, Debug, Default)]
pub struct PolicyThreads {
    numbers: Arc<Mutex<BTreeSet<u64>>>,
}

impl PolicyThreads {
    fn add_this(&self, py: Python<'_>) -> PyResult<()> {
        let number = py.import("threading")?.call_method0("get_ident")?.extract()?;
        lock(&self.numbers).insert(number);
        Ok(())
    }

    /// Whether a policy was made.
    pub fn is_empty(&self) -> bool {
        lock(&self.numbers).is_empty()
    }

    /// Has policies that are at work raise `KeyboardInterrupt`. Python cannot end well while a thread goes on in it.
    pub fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        let numbers = lock(&self.numbers).clone();
        let ctypes = py.import("ctypes")?;
        let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
        let what = ctypes.call_method1("py_object", (py.get_type::<PyKeyboardInterrupt>(),))?;
        for number in numbers {
            // A thread that is not in Python has no such number there, and hears nothing.
            raise.call1((ctypes.call_method1("c_ulong", (number,))?, &what))?;
        }
        Ok(())
    }
}

/// The policies of a call, each under its name, and the threads on which they will work.
pub fn brought(policies: Vec<(String, Py<PyAny>)>) -> (BroughtPolicies, PolicyThreads) {
    let threads = PolicyThreads::default();
    let policies = policies.into_iter().map(|(name, make)| {
        let maker = Maker { name: name.clone(), make, threads: threads.clone() };
        let make = Arc::new(move |cache: &CacheToFill| maker.make(cache));
        BroughtPolicy { name, make, surround: Arc::new(surround) }
    });
    (BroughtPolicies::new(policies), threads)
}

/// Why a policy cannot go on.
#[derive(Debug)]
pub struct PolicyFailure {
    words: String,
    /// What it has raised.
    raised: Option<PyErr>,
}

impl fmt::Display for PolicyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Error for PolicyFailure {}

impl PolicyFailure {
    fn of(policy: &str, what: &str, raised: Option<PyErr>) -> BroughtFailure {
        Arc::new(PolicyFailure { words: format!("policy = \"{policy}\": {what}"), raised })
    }

    /// The exception that the policy has raised, with its traceback.
    pub fn cause(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        Some(self.raised.as_ref()?.clone_ref(py).into_value(py).into_any())
    }
}

/// Makes a policy for each cache.
#[derive(Debug)]
struct Maker {
    name: String,
    /// A class, or anything else that is called with a [`Cache`] and gives a policy.
    make: Py<PyAny>,
    threads: PolicyThreads,
}

impl Maker {
    fn make(&self, cache: &CacheToFill) -> Result<PolicyCode, BroughtFailure> {
        attached(&self.name, |py| {
            let cache = Cache { cache: cache.clone() };
            let made = self.threads.add_this(py).and_then(|()| self.make.bind(py).call1((cache,)));
            let made = made.map_err(|error| raised(py, &self.name, "", error))?;
            let code = Code::new(self.name.clone(), &made)?;
            let hear: PolicyCode = Box::new(move |call| code.hear(call));
            Ok(hear)
        })
    }
}

/// Makes a run. What Python knows of a thread is made once for it: each call would make it anew, which takes longer than
/// most policies do.
fn surround(run: &mut (dyn FnMut() + Send)) {
    let attached = Python::try_attach(|py| py.detach(&mut *run));
    if attached.is_none() {
        // No policy is asked for anything then.
        run();
    }
}

/// Does something with Python, unless the process is about to end.
fn attached<T>(
    policy: &str,
    call: impl FnOnce(Python<'_>) -> Result<T, BroughtFailure>,
) -> Result<T, BroughtFailure> {
    let ending = || Err(PolicyFailure::of(policy, "Python is about to end", None));
    Python::try_attach(call).unwrap_or_else(ending)
}

/// That a method has raised something.
fn raised(py: Python<'_>, policy: &str, method: &str, error: PyErr) -> BroughtFailure {
    let kind = error.get_type(py);
    let kind = kind.name().map_or_else(|_| "an exception".to_string(), |name| name.to_string());
    let what = error.value(py).str().map(|it| it.to_string()).unwrap_or_default();
    let before = if method.is_empty() { String::new() } else { format!("{method}: ") };
    let what = if what.is_empty() { kind } else { format!("{kind}: {what}") };
    PolicyFailure::of(policy, &format!("{before}{what}"), Some(error))
}

/// A value as an error names it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|it| it.to_string()).unwrap_or_else(|_| "a value".to_string());
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// An object in Python, as the policy of one cache.
struct Code {
    policy: String,
    before_insert: Option<Py<PyAny>>,
    on_insert: Py<PyAny>,
    on_access: Py<PyAny>,
    on_write_around: Option<Py<PyAny>>,
    victims: Py<PyAny>,
    on_remove: Py<PyAny>,
}

impl Code {
    fn new(policy: String, object: &Bound<'_, PyAny>) -> Result<Code, BroughtFailure> {
        let method = |name: &str| object.getattr(name).ok().filter(|it| it.is_callable());
        let needed = |name: &str| {
            let lacks = || {
                let methods = METHODS.join(", ");
                let words =
                    format!("{} has no method {name}; accepted: one with {methods}", shown(object));
                PolicyFailure::of(&policy, &words, None)
            };
            method(name).map(Bound::unbind).ok_or_else(lacks)
        };
        let [on_insert, on_access, victims, on_remove] = METHODS.map(needed);
        Ok(Code {
            before_insert: method("before_insert").map(Bound::unbind),
            on_insert: on_insert?,
            on_access: on_access?,
            on_write_around: method("on_write_around").map(Bound::unbind),
            victims: victims?,
            on_remove: on_remove?,
            policy,
        })
    }

    fn call(
        &self,
        method: &Py<PyAny>,
        name: &str,
        arguments: impl for<'py> PyCallArgs<'py>,
    ) -> Result<(), BroughtFailure> {
        attached(&self.policy, |py| {
            let called = method.bind(py).call1(arguments);
            called.map(drop).map_err(|error| raised(py, &self.policy, name, error))
        })
    }

    /// Appends the addresses that a policy has chosen.
    fn take_victims(
        &self,
        found: &Bound<'_, PyAny>,
        victims: &mut Vec<Lba>,
    ) -> Result<(), BroughtFailure> {
        let py = found.py();
        let wrong = |value: &Bound<'_, PyAny>, accepted: &str| {
            let words = format!("victims: {}; accepted: {accepted}", shown(value));
            PolicyFailure::of(&self.policy, &words, None)
        };
        let all = found.try_iter();
        for item in all.map_err(|_| wrong(found, "a list of blocks that are in the cache"))? {
            let item = item.map_err(|error| raised(py, &self.policy, "victims", error))?;
            let block = item.extract().map_err(|_| wrong(&item, "blocks that are in the cache"))?;
            victims.push(Lba(block));
        }
        Ok(())
    }

    /// Calls the method for which a call is.
    fn hear(&self, call: PolicyCall<'_>) -> Result<(), BroughtFailure> {
        let is_write = |kind| kind == AccessKind::Write;
        match call {
            PolicyCall::BeforeInsert(lba) => match &self.before_insert {
                Some(method) => self.call(method, "before_insert", (lba.0,)),
                None => Ok(()),
            },
            PolicyCall::Insert(lba, kind) => {
                self.call(&self.on_insert, "on_insert", (lba.0, is_write(kind)))
            }
            PolicyCall::Access(lba, kind) => {
                self.call(&self.on_access, "on_access", (lba.0, is_write(kind)))
            }
            PolicyCall::WriteAround(extent) => self.write_around(extent),
            PolicyCall::Victims(victims) => self.choose(victims),
            PolicyCall::Remove(lba) => self.call(&self.on_remove, "on_remove", (lba.0,)),
        }
    }

    fn write_around(&self, extent: Extent) -> Result<(), BroughtFailure> {
        let Some(method) = &self.on_write_around else {
            return Ok(());
        };
        attached(&self.policy, |py| {
            let called = range(py, extent).and_then(|blocks| method.bind(py).call1((blocks,)));
            called.map(drop).map_err(|error| raised(py, &self.policy, "on_write_around", error))
        })
    }

    fn choose(&self, victims: &mut Vec<Lba>) -> Result<(), BroughtFailure> {
        attached(&self.policy, |py| {
            let found = self.victims.bind(py).call0();
            let found = found.map_err(|error| raised(py, &self.policy, "victims", error))?;
            self.take_victims(&found, victims)
        })
    }
}

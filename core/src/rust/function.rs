//! Host functions and promises: closures and futures of the host.
//!
//! In: a closure of up to eight arguments, each read by serde. Out: a value that an [`Input`](super::Input) may hold
//! anywhere. A run identifies it by number; the closure never leaves the host.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

use super::{HostError, IntoOutput, Returned};
use crate::{
    Completion, NativeFunction, Value,
    os::sync::Mutex,
    value::{
        Arguments, Fault, Links,
        serde::host_object::{self, Cargo, HOST_OBJECT, HostObject},
    },
};

pub(super) type Pending = Pin<Box<dyn Future<Output = Returned> + Send>>;

/// A function of the host that the sandbox may call, as often as it likes, with any arguments.
///
/// Serde reads the arguments. A missing one reads as `undefined`, so as the `None` of an `Option`. Surplus ones are
/// ignored. One of the wrong type throws a `TypeError` in the sandbox that names it. [`IntoOutput`] says which types
/// may be returned. A panic throws an `Error` in the sandbox.
///
/// Clones are one function: in the sandbox they are the same object. A function that the sandbox
/// gives back arrives as the same again where an argument's type is `HostFunction`.
///
/// ```
/// use isolane::{HostError, HostFunction};
///
/// let add = HostFunction::new(|a: f64, b: f64| a + b);
/// let parse = HostFunction::new(|text: String| text.parse::<i32>());
/// let open = HostFunction::new(|path: String| -> Result<String, HostError> {
///     Err(HostError::new("NotFound", format!("no {path}")).with_code("ENOENT"))
/// });
/// let fetch = HostFunction::future(|url: String| async move { Ok::<_, String>(url) });
/// ```
#[derive(Clone)]
pub struct HostFunction(pub(super) Arc<Function>);

pub(super) enum Function {
    Sync(Box<dyn Fn(Call<'_>) -> Returned + Send + Sync>),
    Future(Box<dyn Fn(Call<'_>) -> Pending + Send + Sync>),
    /// Its calls are answered before they get here.
    Native(Arc<dyn NativeFunction>),
}

/// The arguments of a call.
pub(super) struct Call<'c> {
    pub(super) args: Value,
    pub(super) links: &'c dyn Links,
}

impl HostFunction {
    /// A function that returns at once.
    ///
    /// It runs on the thread that computes the run, and only that run waits for it. It must not wait for the sandbox
    /// itself, such as for a function that it received.
    pub fn new<Marker, F: Callable<Marker>>(function: F) -> Self {
        Self::sync(move |call| {
            let mut parameters = match Parameters::new(&call) {
                Ok(parameters) => parameters,
                Err(fault) => return wrong_type(fault),
            };
            let returned = function.call(&mut parameters);
            returned.unwrap_or_else(|sealed::Misfit(fault)| wrong_type(fault))
        })
    }

    /// A function that returns a promise of the future's output.
    ///
    /// The closure and its future run in the tokio runtime that was current when the run was started, otherwise on one
    /// thread of this library, which all futures share. The future is dropped if the run settles first.
    pub fn future<Marker, F: FutureCallable<Marker>>(function: F) -> Self {
        Self(Arc::new(Function::Future(Box::new(move |call| {
            let future = Parameters::new(&call).and_then(|mut parameters| {
                function.call(&mut parameters).map_err(|sealed::Misfit(fault)| fault)
            });
            future.unwrap_or_else(|fault| Box::pin(std::future::ready(wrong_type(fault))))
        }))))
    }

    /// A function of the bare message: all arguments in one array, with the identity of objects kept.
    ///
    /// Functions of the sandbox in it are numbers. They may be given back in the returned message, and are of no use
    /// afterwards.
    pub fn raw(function: impl Fn(Value) -> Completion + Send + Sync + 'static) -> Self {
        Self::sync(move |call| function(call.args).into())
    }

    /// A function that is answered in the core, such as one of a capability kit: see [`NativeFunction`].
    pub fn native(function: Arc<dyn NativeFunction>) -> Self {
        Self(Arc::new(Function::Native(function)))
    }

    pub(super) fn is_native(&self) -> bool {
        matches!(*self.0, Function::Native(_))
    }

    fn sync(function: impl Fn(Call<'_>) -> Returned + Send + Sync + 'static) -> Self {
        Self(Arc::new(Function::Sync(Box::new(function))))
    }
}

fn wrong_type(fault: Fault) -> Returned {
    Returned::refused(&HostError::of_fault("TypeError", fault, "arguments"))
}

impl PartialEq for HostFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HostFunction {}

impl fmt::Debug for HostFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match *self.0 {
            Function::Sync(_) => "sync",
            Function::Future(_) => "future",
            Function::Native(_) => "native",
        };
        out.debug_tuple("HostFunction").field(&kind).finish()
    }
}

impl Serialize for HostFunction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_link(serializer, || Arc::clone(&self.0) as HostObject)
    }
}

impl<'de> Deserialize<'de> for HostFunction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_link(deserializer, "a function of the host").map(Self)
    }
}

/// Writes a function or a promise, which only this crate's serializer accepts.
pub(super) fn serialize_link<S: Serializer>(
    serializer: S,
    link: impl Fn() -> HostObject,
) -> Result<S::Ok, S::Error> {
    struct Payload<L>(L);

    impl<L: Fn() -> HostObject> Serialize for Payload<L> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if host_object::answer(|| Cargo::HostObject((self.0)())) {
                serializer.serialize_unit()
            } else {
                let text = "a function or a promise can only be written for a sandbox";
                Err(serde::ser::Error::custom(text))
            }
        }
    }

    serializer.serialize_newtype_struct(HOST_OBJECT, &Payload(link))
}

/// Reads a function or a promise, which only this crate's deserializer has.
pub(super) fn deserialize_link<'de, T: Send + Sync + 'static, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Arc<T>, D::Error> {
    struct Taken<T>(&'static str, std::marker::PhantomData<T>);

    impl<T: Send + Sync + 'static> serde::de::Visitor<'_> for Taken<T> {
        type Value = Arc<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.0)
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Arc<T>, E> {
            match host_object::take() {
                Some(Cargo::HostObject(link)) => link.downcast().map_err(|_| {
                    E::invalid_type(
                        serde::de::Unexpected::Other("another function or promise"),
                        &self,
                    )
                }),
                _ => Err(E::invalid_type(serde::de::Unexpected::Unit, &self)),
            }
        }
    }

    deserializer.deserialize_newtype_struct(HOST_OBJECT, Taken(expected, std::marker::PhantomData))
}

/// A promise of the host: a future whose outcome the sandbox can await.
///
/// It starts when the value that holds it is handed to a run, runs where
/// [`HostFunction::future`]s do, and belongs to that run alone.
#[derive(Clone)]
pub struct HostPromise(pub(super) Arc<Promised>);

pub(super) struct Promised(pub(super) Mutex<Option<Pending>>);

impl HostPromise {
    /// A promise of the future's output.
    pub fn new<Marker, F>(future: F) -> Self
    where
        F: Future + Send + 'static,
        F::Output: IntoOutput<Marker>,
    {
        let pending: Pending = Box::pin(async move { future.await.into_output() });
        Self(Arc::new(Promised(Mutex::new(Some(pending)))))
    }
}

impl fmt::Debug for HostPromise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HostPromise").finish_non_exhaustive()
    }
}

impl Serialize for HostPromise {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_link(serializer, || Arc::clone(&self.0) as HostObject)
    }
}

/// The arguments of one call, to be read in order. Opaque.
pub struct Parameters<'c>(Arguments<'c>);

impl<'c> Parameters<'c> {
    fn new(call: &'c Call<'_>) -> Result<Self, Fault> {
        Arguments::new(&call.args, Some(call.links)).map(Self)
    }

    fn next<T: DeserializeOwned>(&mut self) -> Result<T, Fault> {
        self.0.next()
    }
}

impl fmt::Debug for Parameters<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Parameters").finish_non_exhaustive()
    }
}

mod sealed {
    use super::{Parameters, Pending, Returned};
    use crate::value::Fault;

    /// An argument that does not fit.
    pub struct Misfit(pub(super) Fault);

    /// Calls with arguments read from a message.
    pub trait Sync<Marker> {
        fn call(&self, parameters: &mut Parameters<'_>) -> Result<Returned, Misfit>;
    }

    /// As [`Sync`], for closures that return futures.
    pub trait Future<Marker> {
        fn call(&self, parameters: &mut Parameters<'_>) -> Result<Pending, Misfit>;
    }
}

/// A closure that can be a [`HostFunction`]: up to eight arguments that serde can read, and a result
/// that is [`IntoOutput`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a host function",
    note = "it takes up to eight arguments of types that implement `serde::Deserialize` and returns \
            what implements `IntoOutput`"
)]
pub trait Callable<Marker>: sealed::Sync<Marker> + Send + Sync + 'static {}

/// As [`Callable`], for closures that return futures.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a host function that returns a promise",
    note = "it takes up to eight arguments of types that implement `serde::Deserialize` and returns \
            a future that is `Send` and yields what implements `IntoOutput`"
)]
pub trait FutureCallable<Marker>: sealed::Future<Marker> + Send + Sync + 'static {}

macro_rules! callable {
    ($($argument:ident)*) => {
        impl<F, M, R, $($argument: DeserializeOwned),*> sealed::Sync<(M, fn($($argument),*) -> R)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: IntoOutput<M>,
        {
            #[allow(
                clippy::allow_attributes,
                non_snake_case,
                unused_variables,
                reason = "a variable for each type, if there is any"
            )]
            fn call(&self, parameters: &mut Parameters<'_>) -> Result<Returned, sealed::Misfit> {
                $(let $argument = parameters.next().map_err(sealed::Misfit)?;)*
                Ok(self($($argument),*).into_output())
            }
        }

        impl<F, M, R, $($argument: DeserializeOwned),*> Callable<(M, fn($($argument),*) -> R)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: IntoOutput<M>,
        {
        }

        impl<F, M, R, $($argument: DeserializeOwned),*> sealed::Future<(M, fn($($argument),*) -> R)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: Future + Send + 'static,
            R::Output: IntoOutput<M>,
        {
            #[allow(
                clippy::allow_attributes,
                non_snake_case,
                unused_variables,
                reason = "a variable for each type, if there is any"
            )]
            fn call(&self, parameters: &mut Parameters<'_>) -> Result<Pending, sealed::Misfit> {
                $(let $argument = parameters.next().map_err(sealed::Misfit)?;)*
                let future = self($($argument),*);
                Ok(Box::pin(async move { future.await.into_output() }))
            }
        }

        impl<F, M, R, $($argument: DeserializeOwned),*> FutureCallable<(M, fn($($argument),*) -> R)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: Future + Send + 'static,
            R::Output: IntoOutput<M>,
        {
        }
    };
}

callable!();
callable!(A);
callable!(A B);
callable!(A B C);
callable!(A B C D);
callable!(A B C D E);
callable!(A B C D E G);
callable!(A B C D E G H);
callable!(A B C D E G H I);

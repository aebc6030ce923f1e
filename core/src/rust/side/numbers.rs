//! The numbers of functions and promises that the host lends to a run.
//!
//! In: messages with functions and promises of the host. Out: the same messages with numbers in their place, and the
//! functions behind numbers.

use std::sync::Arc;

use super::{HostSide, Stage};
use crate::{
    ASYNC_FUNCTION, NativeFunctions, REPORT_SINK,
    rust::{
        HostError, Returned,
        function::{Function, Promised},
        sandbox::{Borrowed, Waiter},
    },
    value::{
        Event, Fault, LOCAL, Message, Writer, copy_message, keep_number, path::answer_of,
        serde::host_object::HostObject,
    },
};

impl HostSide {
    /// Appends a message for this run, and gives numbers to its functions and promises.
    pub(in crate::rust) fn write(
        &self,
        message: &Message,
        writer: &mut Writer,
        name: &str,
    ) -> Result<(), Fault> {
        copy_message(&message.value, writer, name, &mut |writer, event, name| match event {
            Event::HostFunction(number) if number >= LOCAL => {
                let link = message.links.get((number - LOCAL) as usize);
                let link = link.ok_or_else(|| Fault::new("a function is missing"))?;
                self.write_link(link, writer, name)
            }
            _ if matches!(*self.stage.lock(), Stage::Starting(_)) => {
                Err(Fault::new("a function or a promise of another run cannot cross"))
            }
            _ => keep_number(writer, event, name),
        })
    }

    fn write_link(&self, link: &HostObject, writer: &mut Writer, name: &str) -> Result<(), Fault> {
        if let Ok(function) = Arc::clone(link).downcast::<Function>() {
            writer.host_function(self.function_number(function, name));
            writer.string(name);
            return Ok(());
        }
        if let Ok(promise) = Arc::clone(link).downcast::<Promised>() {
            writer.host_promise(self.promise_number(&promise));
            return Ok(());
        }
        match Arc::clone(link).downcast::<Borrowed>() {
            Ok(lent) if lent.is_of(self) => {
                if let Some(waiter) = lent.waiter() {
                    writer.host_promise(self.relay(waiter));
                } else {
                    writer.sandbox_function(lent.number);
                    writer.string(name);
                }
                Ok(())
            }
            _ => Err(Fault::new("a function or a promise of another run cannot cross")),
        }
    }

    fn function_number(&self, function: Arc<Function>, name: &str) -> u32 {
        let mut tables = self.tables.lock();
        if let Function::Native(native) = &*function {
            let number = self.native.number(native);
            if !tables.over {
                tables.native.insert(number & !ASYNC_FUNCTION, function);
            }
            return number;
        }
        let next = u32::try_from(tables.functions.len()).unwrap_or(LOCAL - 1);
        let number = *tables.numbers.entry(Arc::as_ptr(&function).addr()).or_insert(next);
        // A run that has ended keeps nothing alive.
        if number == next && !tables.over {
            tables.functions.push(function);
            tables.names.push(name.into());
        }
        number
    }

    fn promise_number(&self, promise: &Arc<Promised>) -> u32 {
        let address = Arc::as_ptr(promise).addr();
        let known = self.tables.lock().numbers.get(&address).copied();
        known.unwrap_or_else(|| {
            let future = promise.0.lock().take();
            let number = self.spawn(None, async move |_| match future {
                Some(future) => future.await,
                None => Returned::refused(&HostError::new(
                    "Error",
                    "the promise belongs to another run",
                )),
            });
            let mut tables = self.tables.lock();
            tables.numbers.insert(address, number);
            tables.promises.push(Arc::clone(promise));
            number
        })
    }

    /// The number of a promise of the host with the outcome of a promise of the sandbox. The number of the latter may
    /// be dead by the time that this one arrives.
    fn relay(&self, waiter: &Arc<Waiter>) -> u32 {
        let waiter = Arc::clone(waiter);
        self.spawn(None, async move |_| waiter.outcome().await)
    }

    /// The path of an answer of the function of that number.
    pub(super) fn answer_of(&self, number: u32) -> String {
        if number == REPORT_SINK {
            return answer_of("report");
        }
        let tables = self.tables.lock();
        answer_of(tables.names.get(number as usize).map_or("", |name| name))
    }

    /// The function of that number.
    pub(in crate::rust) fn function(&self, number: u32) -> Option<Arc<Function>> {
        let tables = self.tables.lock();
        if NativeFunctions::is_native(number) {
            return tables.native.get(&number).cloned();
        }
        tables.functions.get(number as usize).cloned()
    }
}

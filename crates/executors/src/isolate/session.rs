//! A session of the executor: an open isolate, and the calls in it.
//!
//! In: an opener, and calls, which are cells that the session queues. Out: results of cells. Each call has a console and
//! files of its own, which its cell finds as its interceptor.

use std::{
    any::Any,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use isolane::{
    CallRequest, CellRequest, Error, ErrorKind, ExecutionLog, NativeRun, RunInterceptor, Runtime,
    SessionInterceptor, SessionRequest, Value,
    value::{Event, Writer, tag},
};
use isolane_door::{CellFuture, CloseFuture, HostCell, HostSession, SessionHost};

use super::{
    console::Console,
    files::{FILES, FUNCTIONS, Files, write_functions},
};

/// An open session.
pub(super) struct Opened {
    session: Arc<dyn HostSession>,
    cells: Arc<Cells>,
}

/// A call: the interceptor of its cell.
#[derive(Debug)]
pub(super) struct CallState {
    pub(super) console: Console,
    pub(super) files: Files,
}

impl CallState {
    /// The call whose code calls a native function.
    pub(super) fn of(run: &NativeRun) -> Option<&Self> {
        (&**run.interception()?.interceptor() as &dyn Any).downcast_ref()
    }
}

impl RunInterceptor for CallState {
    fn logged(&self, log: &ExecutionLog) {
        self.console.log(log);
    }
}

impl Opened {
    /// Opens a session. A checkpoint is of use only if there are later cells.
    pub(super) fn new(
        host: &dyn SessionHost,
        runtime: &Runtime,
        has_later_cells: bool,
    ) -> Result<Self, Error> {
        let cells = Arc::new(Cells::default());
        let amend = |mut request: SessionRequest| {
            if !request.imports.iter().any(|(specifier, _)| specifier == FILES) {
                let mut writer = Writer::new();
                write_functions(&request.native, &mut writer);
                let inputs = mem::replace(&mut request.inputs, Value::undefined());
                request.inputs = with_more(inputs, FUNCTIONS.len(), writer)?;
                let names = FUNCTIONS.map(str::to_owned).to_vec();
                request.imports.push((FILES.to_owned(), names));
            }
            if !has_later_cells {
                request.checkpoint_bytes = Some(0.0);
            }
            request.interceptor = Some(Arc::clone(&cells) as Arc<dyn SessionInterceptor>);
            Ok(request)
        };
        let session = host.open(runtime, &amend)?;
        Ok(Self { session, cells })
    }

    /// Queues the cell of a call.
    pub(super) fn run(&self, code: String, cell: HostCell, call: Arc<CallState>) -> CellFuture {
        // The session asks for the interceptor before its method returns, so no two calls meet here.
        let _one = self.cells.one.lock().unwrap_or_else(PoisonError::into_inner);
        *self.cells.next() = Some(call);
        self.session.run(code, cell)
    }

    pub(super) fn close(&self) -> CloseFuture {
        self.session.close()
    }
}

/// The interceptor of a session: gives each cell its call.
#[derive(Debug, Default)]
struct Cells {
    /// Held while a cell is queued.
    one: Mutex<()>,
    /// The call whose cell is queued next.
    next: Mutex<Option<Arc<CallState>>>,
}

impl Cells {
    fn next(&self) -> std::sync::MutexGuard<'_, Option<Arc<CallState>>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionInterceptor for Cells {
    fn cell(&self, _cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        let call = self.next().take();
        Ok(call.map_or_else(|| self.outside(), |call| call as Arc<dyn RunInterceptor>))
    }

    fn call(&self, _call: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.outside())
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Arc::new(Outside)
    }
}

/// Events outside of calls.
#[derive(Debug)]
struct Outside;

impl RunInterceptor for Outside {}

/// The inputs of a request, with more values behind them.
fn with_more(inputs: Value, more: usize, values: Writer) -> Result<Value, Error> {
    let malformed = || Error::new(ErrorKind::Internal, "the inputs of a request are no list");
    let mut reader = inputs.reader();
    let Ok(Event::Array(count)) = reader.event() else { return Err(malformed()) };
    let total = u32::try_from(more).ok().and_then(|more| count.checked_add(more));
    let mut head = Writer::new();
    head.array(total.ok_or_else(malformed)?);
    let (mut nodes, _) = head.finish().into_parts();
    let (nodes_before, blobs) = inputs.into_parts();
    // A list is a tag, its length in seven bits a byte, and its elements.
    if nodes_before.first() != Some(&tag::ARRAY) {
        return Err(malformed());
    }
    let length = nodes_before.iter().skip(1).position(|byte| byte & 0x80 == 0);
    let start = length.ok_or_else(malformed)? + 2;
    nodes.extend_from_slice(nodes_before.get(start..).unwrap_or_default());
    nodes.extend_from_slice(values.finish().nodes());
    Ok(Value::from_parts(nodes, blobs))
}

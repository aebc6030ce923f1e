//! The kernels of a session, which a notebook and its children share.
//!
//! In: cells of any of them, resets, the end. Out: how cells ended. Cells of one kernel may live at the same time: a cell
//! that waits for an agent lets those of the agent run.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use isolane::Error;
use tokio::time::Instant;

use super::{
    Cause, Cell, End, Ended,
    js::JsKernel,
    lives::{Lives, Reset},
    py,
    py::PyKernel,
};
use crate::{
    JsOptions, KernelStats, Language, NotebookOptions, PyOptions, files::Files,
    host::desk::most_held_bytes, record::usize_of, registry::Place, text::words,
};

/// Why no kernel runs cells of a language that the notebook has not.
const SWITCHED_OFF: &str = "it is switched off";

/// The kernels of a session.
#[derive(Debug)]
pub(crate) struct Kernels {
    /// `None` if it is switched off.
    js: Option<Js>,
    /// `None` if it is switched off.
    py: Option<PyKernel>,
    js_lives: Arc<Lives>,
    py_lives: Arc<Lives>,
    is_closed: AtomicBool,
    session_id: String,
    /// The registry that bounds their number and their time.
    registry: Place,
}

#[derive(Debug)]
struct Js {
    options: JsOptions,
    variables: BTreeMap<String, String>,
    files: Option<Arc<Files>>,
    /// From the first cell on.
    kernel: Mutex<Option<Arc<JsKernel>>>,
    /// The notice for the next call.
    notice: Mutex<Option<String>>,
}

impl Js {
    fn kernel(&self) -> MutexGuard<'_, Option<Arc<JsKernel>>> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notice(&self) -> MutexGuard<'_, Option<String>> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel, which is opened if there is none.
    fn open(&self) -> Result<Arc<JsKernel>, Error> {
        let mut kernel = self.kernel();
        if let Some(kernel) = &*kernel {
            return Ok(Arc::clone(kernel));
        }
        let opened =
            Arc::new(JsKernel::open(&self.options, self.variables.clone(), self.files.clone())?);
        *kernel = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

impl Kernels {
    /// The kernels of a session with that name, whose cells have these files. Nothing is started before the first cell.
    /// `heartbeat`: the time between two looks at a process of Python.
    pub(crate) fn new(
        options: &NotebookOptions,
        py: Option<&PyOptions>,
        session_id: String,
        files: Option<&Arc<Files>>,
        (registry, heartbeat): (Place, Duration),
    ) -> Arc<Self> {
        let js = options.js.clone().map(|js| Js {
            options: js,
            variables: options.env.clone(),
            files: files.cloned(),
            kernel: Mutex::default(),
            notice: Mutex::default(),
        });
        let py = py.cloned().map(|python| {
            let live_bytes = usize_of(options.limits.live_bytes);
            let held_bytes = most_held_bytes(files.map(|files| &**files));
            PyKernel::new(python, options.env.clone(), (live_bytes, held_bytes), heartbeat)
        });
        let (js_lives, py_lives) = (Lives::new(), Lives::new());
        let is_closed = AtomicBool::new(false);
        Arc::new(Self { js, py, js_lives, py_lives, is_closed, session_id, registry })
    }

    pub(crate) fn session_id(&self) -> &str {
        &self.session_id
    }

    pub(crate) fn has(&self, language: Language) -> bool {
        match language {
            Language::Js => self.js.is_some(),
            Language::Py => self.py.is_some(),
        }
    }

    /// The options of JavaScript, if it is not switched off.
    pub(crate) fn js(&self) -> Option<&JsOptions> {
        self.js.as_ref().map(|js| &js.options)
    }

    /// The kernel of Python, if it is not switched off.
    pub(crate) fn py(&self) -> Option<&PyKernel> {
        self.py.as_ref()
    }

    /// Starts the kernel of a language, if there is none, for a call that `end` may end. Gives the notice about a kernel that
    /// was lost, once.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        language: Language,
        end: &End,
    ) -> Result<Option<String>, Unprepared> {
        let _life = tokio::select! {
            biased;
            cause = end.ended() => return Err(Unprepared::Ended(cause)),
            life = self.lives(language).enter(end) => life,
        };
        if self.is_closed() {
            return Err(Unprepared::Ended(Cause::Closed));
        }
        let notice = match (language, &self.js, &self.py) {
            (Language::Js, Some(js), _) => {
                let opened = js.open().map(|_| js.notice().take());
                opened.map_err(|error| Unprepared::Unavailable(error.message().to_owned()))
            }
            (Language::Py, _, Some(python)) => tokio::select! {
                biased;
                cause = end.ended() => Err(Unprepared::Ended(cause)),
                prepared = async {
                    let _admission = self.registry.admit(self).await?;
                    python.prepare().await
                } => prepared.map_err(Unprepared::Unavailable),
            },
            _ => Err(Unprepared::Unavailable(SWITCHED_OFF.to_owned())),
        }?;
        self.registry.started(self).await;
        Ok(notice)
    }

    /// Whether there is a process of Python.
    pub(crate) fn has_python(&self) -> bool {
        self.py.as_ref().is_some_and(|python| python.known().is_some())
    }

    /// When the last cell of Python ended.
    pub(crate) fn python_used(&self) -> Instant {
        self.py_lives.used()
    }

    /// Whether a kernel is there that ends after some time without a cell. `python_ms` is the time of Python, 0 for never.
    pub(crate) fn may_idle(&self, python_ms: u64) -> bool {
        let js = self
            .js
            .as_ref()
            .is_some_and(|js| js.options.idle_timeout_ms > 0 && js.kernel().is_some());
        js || (python_ms > 0 && self.has_python())
    }

    /// Ends kernels that had no cell for their time.
    pub(crate) async fn end_idle(&self, python_ms: u64) {
        if python_ms > 0 && self.has_python() {
            let notice = words::idle(Language::Py, python_ms);
            self.end_python(Duration::from_millis(python_ms), notice).await;
        }
        let Some(js) = &self.js else { return };
        let idle_ms = js.options.idle_timeout_ms;
        if idle_ms == 0 || js.kernel().is_none() {
            return;
        }
        if let Some(reset) = self.js_lives.reset_if_idle(Duration::from_millis(idle_ms)) {
            reset
                .finish(async {
                    let kernel = js.kernel().take();
                    if let Some(kernel) = kernel {
                        *js.notice() = Some(words::idle(Language::Js, idle_ms));
                        kernel.close().await;
                    }
                })
                .await;
        }
    }

    /// Ends the kernel of Python, if no cell was in it for that time; the next call has the notice.
    pub(crate) async fn end_python(&self, idle: Duration, notice: String) {
        let Some(python) = &self.py else { return };
        if let Some(reset) = self.py_lives.reset_if_idle(idle) {
            reset.finish(python.end_idle(notice)).await;
        }
    }

    /// Runs a cell.
    pub(crate) async fn run(self: &Arc<Self>, language: Language, cell: &Cell<'_>) -> Ended {
        let _life = tokio::select! {
            biased;
            cause = cell.end.ended() => return Ended::before(cause),
            life = self.lives(language).enter(cell.end) => life,
        };
        if self.is_closed() {
            return Ended::before(Cause::Closed);
        }
        let unavailable =
            |reason: &str| Ended::refused("Unavailable", words::unavailable(language, reason));
        match (language, &self.js, &self.py) {
            (Language::Js, Some(js), _) => match js.open() {
                Ok(kernel) => kernel.run(cell).await,
                Err(error) => unavailable(error.message()),
            },
            (Language::Py, _, Some(python)) => match self.registry.admit(self).await {
                Ok(_admission) => python.run(cell).await,
                Err(reason) => unavailable(&reason),
            },
            _ => unavailable(SWITCHED_OFF),
        }
    }

    /// Ends all cells of a language. After [`Kernels::finish`] the next cell finds an empty kernel.
    pub(crate) fn reset(&self, language: Language) -> Reset {
        self.lives(language).reset(&Cause::Reset)
    }

    /// Ends the kernel of a language, once its cells have ended.
    pub(crate) async fn finish(&self, language: Language, reset: Reset) {
        reset
            .finish(async {
                match language {
                    Language::Js => {
                        let kernel = self.js.as_ref().and_then(|js| {
                            *js.notice() = None;
                            js.kernel().take()
                        });
                        if let Some(kernel) = kernel {
                            kernel.close().await;
                        }
                    }
                    Language::Py => {
                        if let Some(kernel) = &self.py {
                            kernel.reset().await;
                        }
                    }
                }
            })
            .await;
    }

    /// Ends all cells and kernels. No cell runs any more.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let resets = [Language::Js, Language::Py]
            .map(|language| (language, self.lives(language).reset(&Cause::Closed)));
        for (language, reset) in resets {
            self.finish(language, reset).await;
        }
    }

    /// The kernels that are there.
    pub(crate) fn stats(&self) -> Vec<KernelStats> {
        let mut kernels = Vec::new();
        if self.js.as_ref().is_some_and(|js| js.kernel().is_some()) {
            kernels.push(self.stats_of(Language::Js, None, 0));
        }
        if let Some((process_id, restarts)) = self.py.as_ref().and_then(PyKernel::known) {
            let rss_bytes = process_id.and_then(py::resident_bytes);
            kernels.push(self.stats_of(Language::Py, rss_bytes, restarts));
        }
        kernels
    }

    fn stats_of(&self, language: Language, rss_bytes: Option<u64>, restarts: u64) -> KernelStats {
        let lives = self.lives(language);
        let busy = lives.is_busy();
        let idle = if busy { 0 } else { lives.used().elapsed().as_millis() };
        KernelStats {
            session_id: self.session_id.clone(),
            language,
            busy,
            idle_ms: u64::try_from(idle).unwrap_or(u64::MAX),
            rss_bytes,
            restarts,
        }
    }

    fn lives(&self, language: Language) -> &Arc<Lives> {
        match language {
            Language::Js => &self.js_lives,
            Language::Py => &self.py_lives,
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

/// Why a kernel does not run cells.
#[derive(Debug)]
pub(crate) enum Unprepared {
    /// The call was ended meanwhile.
    Ended(Cause),
    /// There is none, for that reason.
    Unavailable(String),
}

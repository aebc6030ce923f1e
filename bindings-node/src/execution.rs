//! What JavaScript may do to a run, by the run's number.
//!
//! Everything about a run that has settled is ignored here, as the core ignores it.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]

use isolane::{Completion, Remote};
use napi::{Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    runtime::Bridge,
    value::{Cursor, Frame, into_javascript},
};

#[napi]
impl Bridge {
    /// Answers a host call.
    ///
    /// # Errors
    /// When `length` is beyond the frame.
    #[napi(catch_unwind)]
    pub fn reply(
        &self,
        call: u32,
        ok: bool,
        frame: &[u8],
        length: u32,
        blobs: Option<Vec<&[u8]>>,
    ) -> Result<()> {
        let completion = completion(ok, frame, length, blobs)?;
        let call = self.state.calls.borrow_mut().remove(&call);
        if let Some(call) = call {
            call.reply(completion);
        }
        Ok(())
    }

    /// Settles a promise of the host.
    ///
    /// # Errors
    /// When `length` is beyond the frame.
    #[napi(catch_unwind)]
    pub fn settle_promise(
        &self,
        run: u32,
        promise: u32,
        ok: bool,
        frame: &[u8],
        length: u32,
        blobs: Option<Vec<&[u8]>>,
    ) -> Result<()> {
        let completion = completion(ok, frame, length, blobs)?;
        if let Some(remote) = self.remote(run) {
            remote.settle_promise(promise, completion);
        }
        Ok(())
    }

    /// Calls a function of the sandbox.
    ///
    /// # Errors
    /// When `length` is beyond the frame.
    #[napi(catch_unwind)]
    pub fn call_function(
        &self,
        run: u32,
        function: u32,
        call: u32,
        frame: &[u8],
        length: u32,
        blobs: Option<Vec<&[u8]>>,
    ) -> Result<()> {
        let args = Cursor::new(frame, length)?.message(blobs);
        if let Some(remote) = self.remote(run) {
            remote.call_function(function, args, call);
        }
        Ok(())
    }

    /// Lets go of a function of the sandbox that was received `times` times.
    #[napi(catch_unwind)]
    pub fn release_function(&self, run: u32, function: u32, times: u32) {
        if let Some(remote) = self.remote(run) {
            remote.release_function(function, times);
        }
    }

    /// Ends a run.
    #[napi(catch_unwind)]
    pub fn terminate(&self, run: u32, reason: Option<String>) {
        if let Some(remote) = self.remote(run) {
            remote.terminate(reason.as_deref());
        }
    }

    /// The reports of a run from `index` on: their number, then each as a message.
    ///
    /// # Errors
    /// When JavaScript has no memory for them.
    #[napi(catch_unwind)]
    pub fn reports_since<'env>(
        &self,
        env: &'env Env,
        run: u32,
        index: u32,
    ) -> Result<Uint8ArraySlice<'env>> {
        let reports = self.remote(run).map(|run| run.reports_since(index as usize));
        let reports = reports.unwrap_or_default();
        let mut frame = Frame::default();
        frame.u32(0);
        frame.count(reports.len());
        for report in reports {
            frame.message(report);
        }
        self.state.leave_blobs(&mut frame);
        into_javascript(env, frame.bytes)
    }

    /// The handle on a live run, taken out so that no borrow is held while the core works.
    fn remote(&self, run: u32) -> Option<Remote> {
        self.state.runs.borrow().get(&run).map(|live| live.remote.clone())
    }
}

fn completion(
    ok: bool,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Completion> {
    let value = Cursor::new(frame, length)?.message(blobs);
    Ok(if ok { Ok(value) } else { Err(value) })
}

//! The way of a session into another worker.
//!
//! In: a session between two cells. Out: bytes, and a session with the same state in a process whose home is a copy of
//! this one's: all workers of one zygote have such homes. The writer of the bytes may be hostile, and so may be the
//! session that is read; so they are read where only that session can come to harm.

use std::sync::Arc;

use super::{Before, Limits, Numbers, SessionIsolate, image::Image, new_state, program_of_shared};
use crate::{
    data::portable::{Input, Output, Portable},
    isolate::{
        memory::{
            home::{Home, Tenant},
            pool::Lease,
        },
        realm::Realm,
        session::capabilities::Capabilities,
    },
    modules::{cache::Cache, session_program::SessionProgram, session_request::SessionRequest},
};

impl SessionIsolate {
    /// Writes the session. Between cells, and while nothing is unanswered. `None` if it cannot be written, for the reasons
    /// for which [`SessionIsolate::fork`] gives none.
    pub(crate) fn write(&self, out: &mut Output) -> Option<()> {
        let occupied = self.tenant.occupy();
        occupied.instance().slot()?.identity().write(out);
        self.capabilities.write(out);
        self.state.is_some().write(out);
        let Some(state) = &self.state else {
            self.numbers.write(out);
            self.program.write(out);
            return Some(());
        };
        self.numbers.of(state).write(out);
        program_of_shared(state)?.write(out);
        let (snapshot, is_kept) = match &self.before {
            Before::Checkpoint(checkpoint) => (checkpoint.0.clone(), true),
            Before::Pristine | Before::Due | Before::Unknown => (occupied.checkpoint()?, false),
        };
        snapshot.write(out);
        Image::of(state)?.write(out);
        state.undone().write(out);
        is_kept.write(out);
        Some(())
    }

    /// The session that was written, of the same request. `None` if this process has no such home, or the bytes are no
    /// session.
    pub(crate) fn read(
        input: &mut Input,
        lease: Lease<Realm>,
        request: &SessionRequest,
        cache: &Arc<Cache>,
    ) -> Option<Box<Self>> {
        let identity = <(usize, usize, u64)>::read(input)?;
        if lease.slot()?.identity() != identity {
            return None;
        }
        let home = Home::new(lease);
        let capabilities = Capabilities::read(input)?;
        let has_state = bool::read(input)?;
        let numbers = Numbers::read(input)?;
        let program = SessionProgram::read(input, cache)?;
        let program = program.with_helpers(request.helpers_file.as_ref());
        let (limits, interleaves) = (Limits::of(request), request.interleave);
        let mut session = if has_state {
            let (tenant, snapshot) = Tenant::read(&home, input)?;
            let image = Image::read(input)?;
            let undone = Portable::read(input)?;
            let is_kept = bool::read(input)?;
            let state = new_state(&tenant.occupy(), program.clone(), numbers, interleaves);
            image.put_back(&state);
            state.know_undone(undone);
            let mut session = Self::new(tenant, program, limits, interleaves);
            session.state = Some(state);
            let kept = || Before::Checkpoint(Box::new((snapshot, image)));
            session.before = if is_kept { kept() } else { Before::Unknown };
            session
        } else {
            Self::new(Tenant::new(&home)?, program, limits, interleaves)
        };
        session.capabilities = capabilities;
        session.numbers = numbers;
        Some(session)
    }
}

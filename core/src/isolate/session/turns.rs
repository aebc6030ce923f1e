//! The turns of a session's cell: into the engine, with the host's messages, and out again.
//!
//! In: the work of a cell, what the host has given, and the messages that waited. Out: a [`Turn`], and copies of those
//! messages that another cell needs if this one is undone.

use std::ptr::NonNull;

use super::{
    capabilities::Capabilities,
    cell::{self, Ready},
    image::Image,
    work::{Progress, Work},
};
use crate::{
    binding::inbound::Inbound,
    data::outcome::Status,
    isolate::{
        end::{End, NotStarted, Turn},
        loader,
        memory::home::Tenant,
        realm::Realm,
        settle,
        state::State,
    },
    modules::{
        program::Unlinked,
        session_program::{LinkedCell, SessionProgram},
    },
};

/// Enters the engine, and notes if it is left for good.
pub(super) fn enter(
    tenant: &Tenant<Realm>,
    state: Option<&State>,
    (progress, peak_bytes): (&mut Progress, &mut usize),
    turn: impl FnOnce(&State) -> Turn,
) -> Turn {
    let Some(state) = state else { return Turn::Ended(End::Broken) };
    let occupied = tenant.occupy();
    let instance = occupied.instance();
    instance.realm().attach(state);
    state.tenant.set(Some(NonNull::from(tenant)));
    let entered = instance.enter(|_| turn(state));
    state.tenant.set(None);
    *peak_bytes = instance.heap().peak_bytes();
    match entered {
        Ok(turn) => turn,
        Err(left) => {
            *progress = Progress::Left;
            let end = settle::forced(state);
            // While it lives, values of the engine are forgotten, not freed.
            drop(left);
            Turn::Ended(end)
        }
    }
}

/// A cell that is linked, as far as that needs no engine.
pub(super) enum Linked {
    Source(LinkedCell),
    Ready(Ready),
}

/// Compiles and links a source. Nothing runs.
pub(super) fn link(state: &mut State, work: Work) -> Result<Linked, End> {
    let (_, room_bytes) = state.held_and_room_bytes();
    match work {
        Work::Source { source, filename, language } => program_of(state)
            .link_cell(&source, &filename, language, room_bytes)
            .map(Linked::Source)
            .map_err(|unlinked| match unlinked {
                Unlinked::Memory(module) => End::Oversized(module),
                Unlinked::Error(error) => End::Failed(Status::LinkError, error),
            }),
        Work::Call { name, args } => Ok(Linked::Ready(Ready::Call { name, args })),
        Work::Held { function, args, call } => {
            Ok(Linked::Ready(Ready::Held { function, args, call }))
        }
    }
}

/// A cell that is loaded, or the reason why it is not.
pub(super) type Loaded = Result<Ready, NotStarted>;

/// Takes in what the host gave, and loads the cell. Nothing runs, and nothing but the limit ends this: to leave the engine
/// would cost the state.
pub(super) fn load(
    state: &State,
    linked: Linked,
    capabilities: &Capabilities,
    report: bool,
) -> Loaded {
    let (held_bytes, _) = state.held_and_room_bytes();
    state.charge_compiled(held_bytes);
    state.instance().heap().deferring_end(|| {
        state.take_in(capabilities, report)?;
        match linked {
            Linked::Source(cell) => match loader::load_cell(state, &cell) {
                Ok(body) => Ok(Ready::Source(cell, body)),
                Err(error) => Err(NotStarted::Unlinked(error)),
            },
            Linked::Ready(ready) => Ok(ready),
        }
    })
}

/// Begins a cell that is loaded.
pub(super) fn begin(
    state: &State,
    loaded: Loaded,
    inbox: Vec<Inbound>,
    images: &[&Image],
    handed: &mut Vec<Inbound>,
) -> Turn {
    hand_in(state, inbox, images, handed);
    state.note_job();
    let begun = loaded.and_then(|ready| cell::begin(state, ready));
    settle::go_on_from(state, begun)
}

/// Drops outcomes of promises that nothing in the session has: those of cells that were undone. Of the others, those for
/// which there is no room become errors. Otherwise they would take the room of every later cell, which would then never
/// be handed them.
pub(super) fn fit(
    inbox: &mut Vec<Inbound>,
    state: &State,
    capabilities: &Capabilities,
    room_bytes: usize,
) {
    let promises = state.host_promises.borrow();
    let is_known =
        |inbound: &Inbound| inbound.settles().is_none_or(|it| promises.contains_key(&it));
    if !inbox.iter().all(is_known) {
        let mut awaited = state.promises_to_come(capabilities);
        awaited.extend(inbox.iter().flat_map(Inbound::brings));
        let is_awaited =
            |inbound: &Inbound| inbound.settles().is_some_and(|it| awaited.contains(&it));
        inbox.retain(|inbound| is_known(inbound) || is_awaited(inbound));
    }
    let mut taken_bytes = 0;
    for inbound in inbox {
        let bytes = inbound.held_bytes();
        if taken_bytes + bytes > room_bytes {
            inbound.refuse();
        } else {
            taken_bytes += bytes;
        }
    }
}

/// Hands the host's messages in, and keeps those that another cell would need if this one is undone.
pub(super) fn hand_in(
    state: &State,
    inbox: Vec<Inbound>,
    images: &[&Image],
    handed: &mut Vec<Inbound>,
) {
    for inbound in inbox {
        handed.extend(again(state, &inbound, images));
        if !state.must_end() {
            state.receive(inbound);
        }
    }
}

/// A copy of a message that is about a cell which began before one of these images, or about what came with such a
/// message.
fn again(state: &State, inbound: &Inbound, images: &[&Image]) -> Option<Inbound> {
    let session = state.session.as_ref()?;
    let mut brought = session.brought.borrow_mut();
    let is_needed = images.iter().any(|image| image.knows(inbound))
        || inbound.settles().is_some_and(|promise| brought.contains(&promise));
    match inbound {
        Inbound::PromiseSettled { promise, completion } if is_needed => {
            brought.extend(inbound.brings());
            let (promise, completion) = (*promise, completion.clone());
            Some(Inbound::PromiseSettled { promise, completion })
        }
        Inbound::FunctionReleased { function, times } if is_needed => {
            Some(Inbound::FunctionReleased { function: *function, times: *times })
        }
        _ => None,
    }
}

pub(super) fn program_of(state: &mut State) -> &mut SessionProgram {
    state.linker.get_mut().session().expect("the program of a session")
}

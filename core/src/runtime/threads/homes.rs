//! The homes of sessions, and the order in which runs use each.
//!
//! In: sessions as they begin, and their runs as they can compute. Out: a tenant for each session, and for a run the
//! grant to use its home. Sessions outnumber homes, so several may share one; then a run waits here for its home before
//! it waits for a thread. So no thread waits for a home with a permit in its hand.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    isolate::{Home, HomePermit, LARGEST_SLOT_LIMIT_BYTES, Pool, Realm, Tenant},
    os::sync::Mutex,
};

/// The most homes that sessions share. Each holds a slot of the pool for as long as it has sessions.
const MAX_HOMES: usize = 32;

/// Homes without sessions that are kept for the next ones.
const KEPT_HOMES: usize = 2;

/// A run that needs a home.
pub(crate) trait Guest: Send + Sync + Sized {
    /// The home is the run's until the grant is dropped. Returns the grant if the run does not need it any more.
    fn granted(self: &Arc<Self>, grant: Grant<Self>) -> Option<Grant<Self>>;

    /// The home may never be free again, and the state of the run's session is in it.
    fn evicted(self: &Arc<Self>);
}

/// The homes of a runtime.
pub(crate) struct Homes<R: Guest>(Mutex<Vec<Arc<Site<R>>>>);

impl<R: Guest> Default for Homes<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A home and the runs that wait for it.
pub(crate) struct Site<R: Guest> {
    /// Made when the first session begins; `None` if each session has an instance to itself.
    home: Mutex<Option<Arc<Home<Realm>>>>,
    /// Its right to a slot, until the home is made.
    permit: Mutex<Option<HomePermit>>,
    /// Whether its realm is extended.
    is_extended: bool,
    sessions: AtomicUsize,
    /// Its thread does not come back from a builtin: new sessions go elsewhere, and those that are here begin anew.
    stuck: AtomicBool,
    queue: Mutex<Queue<R>>,
}

struct Queue<R> {
    busy: bool,
    waiting: VecDeque<Arc<R>>,
}

/// The place of a session in a home. Counted off when it is dropped.
pub(crate) struct Stay<R: Guest> {
    site: Arc<Site<R>>,
    homes: Weak<Homes<R>>,
}

/// The right to use a home.
pub(crate) struct Grant<R: Guest> {
    /// `None` once another grant goes on in its place.
    site: Option<Arc<Site<R>>>,
}

impl<R: Guest> Homes<R> {
    /// A place for a session that begins: an empty home, or a new one, or else the one with the fewest sessions. A session
    /// shares a home, too, where there is no slot for another one.
    pub(crate) fn stay(
        self: &Arc<Self>,
        pool: &Pool<Realm>,
        limit_bytes: usize,
        is_extended: bool,
    ) -> Stay<R> {
        let mut sites = self.0.lock();
        let fewest = sites
            .iter()
            .filter(|site| site.is_extended == is_extended && !site.stuck.load(Ordering::Relaxed))
            .min_by_key(|site| site.sessions.load(Ordering::Relaxed));
        let is_first = fewest.is_none();
        let is_full = sites.len() >= MAX_HOMES;
        let known =
            fewest.filter(|site| is_full || site.sessions.load(Ordering::Relaxed) == 0).cloned();
        let shared = fewest.cloned();
        let site = known.unwrap_or_else(|| {
            let has_slot = limit_bytes <= LARGEST_SLOT_LIMIT_BYTES;
            let permit = if has_slot { pool.permit_home(is_first) } else { None };
            match shared {
                Some(site) if has_slot && permit.is_none() => site,
                _ => {
                    let site = Arc::new(Site::new(is_extended, permit));
                    sites.push(Arc::clone(&site));
                    site
                }
            }
        });
        site.sessions.fetch_add(1, Ordering::Relaxed);
        Stay { site, homes: Arc::downgrade(self) }
    }

    /// Drops the homes that no session needs.
    pub(crate) fn close(&self) {
        self.tidy(0);
    }

    /// Drops the homes that no session needs, but for a few.
    fn tidy(&self, kept: usize) {
        let mut empty = 0;
        let mut is_kept = |site: &Arc<Site<R>>| {
            let is_empty = site.sessions.load(Ordering::Relaxed) == 0;
            empty += usize::from(is_empty);
            !is_empty || empty <= kept
        };
        let mut sites = self.0.lock();
        let gone: Vec<_> = sites.extract_if(.., |site| !is_kept(site)).collect();
        drop(sites);
        drop(gone);
    }
}

impl<R: Guest> Site<R> {
    fn new(is_extended: bool, permit: Option<HomePermit>) -> Self {
        Self {
            home: Mutex::default(),
            permit: Mutex::new(permit),
            is_extended,
            sessions: AtomicUsize::new(0),
            stuck: AtomicBool::new(false),
            queue: Mutex::new(Queue { busy: false, waiting: VecDeque::new() }),
        }
    }
}

impl<R: Guest> Site<R> {
    /// Has the run granted the home as soon as it is free.
    pub(crate) fn request(self: &Arc<Self>, run: &Arc<R>) {
        {
            let mut queue = self.queue.lock();
            if queue.busy {
                queue.waiting.push_back(Arc::clone(run));
                drop(queue);
                if self.stuck.load(Ordering::Relaxed) {
                    run.evicted();
                }
                return;
            }
            queue.busy = true;
        }
        let refused = run.granted(Grant { site: Some(Arc::clone(self)) });
        drop(refused);
    }

    /// Whether a run waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.queue.lock().waiting.is_empty()
    }
}

impl<R: Guest> Grant<R> {
    /// Its home.
    pub(crate) fn site(&self) -> Option<&Arc<Site<R>>> {
        self.site.as_ref()
    }
}

impl<R: Guest> Stay<R> {
    /// A place in the same home, for a copy of the session.
    pub(crate) fn another(&self) -> Self {
        self.site.sessions.fetch_add(1, Ordering::Relaxed);
        Self { site: Arc::clone(&self.site), homes: Weak::clone(&self.homes) }
    }

    /// A tenant with the pristine state. `None` if the process has no memory for an instance.
    pub(crate) fn tenant(&self, pool: &Pool<Realm>, limit_bytes: usize) -> Option<Tenant<Realm>> {
        let mut home = self.site.home.lock();
        if let Some(home) = &*home
            && limit_bytes <= LARGEST_SLOT_LIMIT_BYTES
        {
            return Tenant::new(home);
        }
        let permit = if limit_bytes <= LARGEST_SLOT_LIMIT_BYTES {
            self.site.permit.lock().take().or_else(|| pool.permit_home(false))
        } else {
            None
        };
        let lease = pool.take_home(permit, limit_bytes, self.site.is_extended);
        let made = Home::new(lease?);
        if made.is_shared() {
            *home = Some(Arc::clone(&made));
        }
        Tenant::new(&made)
    }

    /// Has the run granted the home as soon as it is free.
    pub(crate) fn request(&self, run: &Arc<R>) {
        self.site.request(run);
    }

    /// The home's thread does not come back. Nor do the sessions in it, whose addresses are the home's.
    pub(crate) fn mark_stuck(&self) {
        if self.site.stuck.swap(true, Ordering::Relaxed) {
            return;
        }
        let waiting = self.site.queue.lock().waiting.clone();
        for run in waiting {
            run.evicted();
        }
    }
}

impl<R: Guest> Drop for Stay<R> {
    fn drop(&mut self) {
        self.site.sessions.fetch_sub(1, Ordering::Relaxed);
        if let Some(homes) = self.homes.upgrade() {
            homes.tidy(KEPT_HOMES);
        }
    }
}

impl<R: Guest> Drop for Grant<R> {
    /// Gives the home to the next run that needs it.
    fn drop(&mut self) {
        let Some(site) = self.site.take() else { return };
        site.stuck.store(false, Ordering::Relaxed);
        loop {
            let next = {
                let mut queue = site.queue.lock();
                let next = queue.waiting.pop_front();
                queue.busy = next.is_some();
                next
            };
            let Some(run) = next else { return };
            match run.granted(Self { site: Some(Arc::clone(&site)) }) {
                None => return,
                // This one looks for the next run, so that one must not.
                Some(mut refused) => refused.site = None,
            }
        }
    }
}

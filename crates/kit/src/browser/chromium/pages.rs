//! The pages of Chromium, as its events tell of them.
//!
//! In: events. Out: the state of each page, and the answers that events ask for: a dialog is dismissed, a new page is set
//! up, the proxy is given its password. All that a page can make many of is bounded.

use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Fault;
use crate::{browser::WaitUntil, kit::ProxySettings};

/// The most pages that are open. Further ones are closed.
const MOST_PAGES: usize = 16;
/// The most frames of other sites and workers of all pages. Those beyond run, but their requests are not waited for.
const MOST_FRAMES: usize = 1_000;
/// The most requests of a page that are waited for.
const MOST_REQUESTS: usize = 10_000;
/// The most documents and statuses that are remembered of a page.
const MOST_REMEMBERED: usize = 64;

/// The size of a page, as Playwright has it.
pub(super) const SIZE: (u32, u32) = (1280, 720);

/// A message to Chromium.
pub(super) struct Outgoing {
    pub(super) session: Option<String>,
    pub(super) method: &'static str,
    pub(super) params: Json,
}

/// The consequences of an event.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) replies: Vec<Outgoing>,
    /// A session that has ended, and why.
    pub(super) lost: Option<(String, Fault)>,
    pub(super) has_changed: bool,
}

/// All pages.
pub(super) struct Pages {
    /// The oldest first.
    open: Vec<PageState>,
    proxy: Option<ProxySettings>,
    /// Requests for which the proxy was given its password. It is not given twice.
    given: VecDeque<String>,
}

/// A page.
pub(super) struct PageState {
    pub(super) target: String,
    pub(super) session: String,
    /// The main frame.
    pub(super) frame: String,
    /// The sessions of frames of other sites, and of workers.
    frames: Vec<String>,
    /// The documents that it has shown, the newest last.
    documents: VecDeque<String>,
    is_parsed: bool,
    is_loaded: bool,
    /// The statuses of its documents.
    statuses: VecDeque<(String, u16)>,
    /// Whether the page itself wants to be elsewhere, and is not there yet.
    pub(super) is_leaving: bool,
    /// Requests without an answer, and their sessions. The document of a frame and the script of a worker may be asked for
    /// in one session and arrive in another one.
    requests: HashMap<String, String>,
    /// The time since which there was none.
    quiet_since: Instant,
}

/// The parts of all events that are used.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event {
    session_id: String,
    target_info: TargetInfo,
    frame_id: String,
    loader_id: String,
    request_id: String,
    name: String,
    r#type: String,
    disposition: String,
    response: Response,
    frame: Frame,
    auth_challenge: Challenge,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    r#type: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    status: u16,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Frame {
    id: String,
    parent_id: Option<String>,
    loader_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Challenge {
    source: String,
}

impl PageState {
    fn new(target: String, session: String) -> Self {
        Self {
            frame: target.clone(),
            target,
            session,
            frames: Vec::new(),
            documents: VecDeque::new(),
            is_parsed: false,
            is_loaded: false,
            statuses: VecDeque::new(),
            is_leaving: false,
            requests: HashMap::new(),
            quiet_since: Instant::now(),
        }
    }

    /// Whether it has shown that document, and the one that it shows now has come so far.
    pub(super) fn progress_of(&self, document: &str, event: WaitUntil) -> Progress {
        let has_shown = self.documents.iter().any(|shown| shown == document);
        if has_shown { self.has_come_to(event) } else { Progress::Waits }
    }

    /// Whether the document that it shows has come so far. Of requests it says since when there are none.
    pub(super) fn has_come_to(&self, event: WaitUntil) -> Progress {
        match event {
            WaitUntil::Load if self.is_loaded => Progress::Done,
            WaitUntil::DomContentLoaded if self.is_parsed => Progress::Done,
            WaitUntil::NetworkIdle if self.is_parsed && self.requests.is_empty() => {
                Progress::QuietSince(self.quiet_since)
            }
            _ => Progress::Waits,
        }
    }

    /// The status with which a document came; 0 if it had none.
    pub(super) fn status_of(&self, document: &str) -> u16 {
        let found = self.statuses.iter().rev().find(|(of, _)| of == document);
        found.map_or(0, |(_, status)| *status)
    }

    fn shows(&mut self, document: &str) {
        if self.documents.back().is_some_and(|shown| shown == document) {
            return;
        }
        remember(&mut self.documents, document.to_owned());
        (self.is_parsed, self.is_loaded, self.is_leaving) = (false, false, false);
        // Requests of the document before are nobody's now.
        self.requests.retain(|request, _| request == document);
        self.quiet_since = Instant::now();
    }
}

/// The progress of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Waits,
    QuietSince(Instant),
    Done,
}

fn remember<T>(all: &mut VecDeque<T>, new: T) {
    if all.len() == MOST_REMEMBERED {
        all.pop_front();
    }
    all.push_back(new);
}

impl Pages {
    /// No pages yet, which will have that proxy.
    pub(super) fn new(proxy: Option<ProxySettings>) -> Self {
        Self { open: Vec::new(), proxy, given: VecDeque::new() }
    }

    /// The page in use: the newest.
    pub(super) fn newest(&self) -> Option<&PageState> {
        self.open.last()
    }

    pub(super) fn of_target(&self, target: &str) -> Option<&PageState> {
        self.open.iter().find(|page| page.target == target)
    }

    pub(super) fn of_session(&self, session: &str) -> Option<&PageState> {
        self.open.iter().find(|page| page.session == session)
    }

    /// Forgets a page, whatever becomes of it.
    pub(super) fn forget(&mut self, target: &str) {
        self.open.retain(|page| page.target != target);
    }

    pub(super) fn hear(&mut self, session: Option<&str>, method: &str, params: &str) -> Heard {
        let mut heard = Heard::default();
        let Ok(event) = serde_json::from_str::<Event>(params) else { return heard };
        match (method, session) {
            ("Target.attachedToTarget", _) => self.attached(session, event, &mut heard),
            ("Target.detachedFromTarget", _) => self.detached(event.session_id, &mut heard),
            ("Inspector.targetCrashed", Some(session)) => self.crashed(session, &mut heard),
            ("Page.javascriptDialogOpening", Some(session)) => {
                // A page may not keep itself open. Everything else is answered as by a person who dismisses it.
                let params = json!({ "accept": event.r#type == "beforeunload" });
                heard.reply(session, "Page.handleJavaScriptDialog", params);
            }
            ("Fetch.requestPaused", Some(session)) => {
                let params = json!({ "requestId": event.request_id });
                heard.reply(session, "Fetch.continueRequest", params);
            }
            ("Fetch.authRequired", Some(session)) => self.challenged(session, event, &mut heard),
            (_, Some(session)) => {
                let of_it = |page: &&mut PageState| {
                    page.session == session || page.frames.iter().any(|frame| frame == session)
                };
                if let Some(page) = self.open.iter_mut().find(of_it) {
                    heard.has_changed = page.hear(session, method, event);
                }
            }
            _ => {}
        }
        heard
    }

    fn attached(&mut self, parent: Option<&str>, event: Event, heard: &mut Heard) {
        let Event { session_id: session, target_info: TargetInfo { target_id, r#type }, .. } =
            event;
        let frames: usize = self.open.iter().map(|page| page.frames.len()).sum();
        match (parent, r#type.as_str()) {
            (None, "page") if self.open.len() < MOST_PAGES => {
                self.open.push(PageState::new(target_id, session.clone()));
                self.set_up_page(&session, heard);
            }
            (None, _) => {
                let method = "Target.closeTarget";
                let params = json!({ "targetId": target_id });
                heard.replies.push(Outgoing { session: None, method, params });
            }
            (Some(parent), "iframe" | "worker") if frames < MOST_FRAMES => {
                let of_it = |page: &&mut PageState| {
                    page.session == parent || page.frames.iter().any(|frame| frame == parent)
                };
                if let Some(page) = self.open.iter_mut().find(of_it) {
                    page.frames.push(session.clone());
                }
                self.set_up_frame(&session, heard);
            }
            _ => {}
        }
        heard.reply(&session, "Runtime.runIfWaitingForDebugger", json!({}));
        heard.has_changed = true;
    }

    fn set_up_page(&self, session: &str, heard: &mut Heard) {
        heard.reply(session, "Inspector.enable", json!({}));
        heard.reply(session, "Page.enable", json!({}));
        heard.reply(session, "Page.setLifecycleEventsEnabled", json!({ "enabled": true }));
        // A chooser of files would wait for a person.
        heard.reply(session, "Page.setInterceptFileChooserDialog", json!({ "enabled": true }));
        let (width, height) = SIZE;
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        heard.reply(session, "Emulation.setDeviceMetricsOverride", size);
        // Pages behind other ones get keys, too.
        heard.reply(session, "Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        self.set_up_frame(session, heard);
    }

    fn set_up_frame(&self, session: &str, heard: &mut Heard) {
        // Chromium keeps no bodies for us.
        let none =
            json!({ "maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0 });
        heard.reply(session, "Network.enable", none);
        if self.proxy.is_some() {
            let params = json!({ "handleAuthRequests": true, "patterns": [{ "urlPattern": "*" }] });
            heard.reply(session, "Fetch.enable", params);
        }
        let params = json!({
            "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
            "filter": [{ "type": "iframe" }, { "type": "worker" }, { "exclude": true }],
        });
        heard.reply(session, "Target.setAutoAttach", params);
    }

    fn detached(&mut self, session: String, heard: &mut Heard) {
        self.open.retain(|page| page.session != session);
        for page in &mut self.open {
            page.lose_frame(&session);
        }
        heard.lost = Some((session, Fault::Lost("the page was closed")));
        heard.has_changed = true;
    }

    fn crashed(&mut self, session: &str, heard: &mut Heard) {
        for page in &mut self.open {
            page.lose_frame(session);
        }
        if let Some(at) = self.open.iter().position(|page| page.session == session) {
            let method = "Target.closeTarget";
            let params = json!({ "targetId": self.open.remove(at).target });
            heard.replies.push(Outgoing { session: None, method, params });
        }
        heard.lost = Some((session.to_owned(), Fault::Lost("the page crashed")));
        heard.has_changed = true;
    }

    /// Only the proxy gets an answer, once for each request. Servers that ask for a password show what they have for
    /// those without one.
    fn challenged(&mut self, session: &str, event: Event, heard: &mut Heard) {
        let Event { request_id, auth_challenge, .. } = event;
        let response = match &self.proxy {
            Some(proxy)
                if auth_challenge.source == "Proxy" && !self.given.contains(&request_id) =>
            {
                json!({
                    "response": "ProvideCredentials", "username": proxy.username, "password": proxy.password,
                })
            }
            _ => json!({ "response": "CancelAuth" }),
        };
        let params = json!({ "requestId": request_id, "authChallengeResponse": response });
        heard.reply(session, "Fetch.continueWithAuth", params);
        remember(&mut self.given, request_id);
    }
}

impl PageState {
    /// Hears an event of its own or of one of its frames; says whether that changes something.
    fn hear(&mut self, session: &str, method: &str, event: Event) -> bool {
        let is_main = session == self.session && event.frame_id == self.frame;
        match method {
            "Page.lifecycleEvent" if is_main => match event.name.as_str() {
                "init" | "commit" => self.shows(&event.loader_id),
                name @ ("DOMContentLoaded" | "load") => {
                    if self.documents.back().is_some_and(|shown| *shown == event.loader_id) {
                        self.is_parsed = true;
                        self.is_loaded |= name == "load";
                    }
                }
                _ => return false,
            },
            "Page.frameNavigated" if session == self.session && event.frame.parent_id.is_none() => {
                self.frame = event.frame.id;
                self.shows(&event.frame.loader_id);
                self.is_leaving = false;
            }
            "Page.frameRequestedNavigation" if is_main => {
                self.is_leaving = event.disposition == "currentTab";
            }
            "Page.frameStoppedLoading" | "Page.navigatedWithinDocument" if is_main => {
                self.is_leaving = false;
            }
            "Network.requestWillBeSent" => {
                // The others may go on for ever.
                let ends = !matches!(event.r#type.as_str(), "EventSource" | "WebSocket" | "Ping");
                if ends && self.requests.len() < MOST_REQUESTS {
                    self.requests.insert(event.request_id, session.to_owned());
                }
            }
            "Network.responseReceived" if is_main && event.r#type == "Document" => {
                remember(&mut self.statuses, (event.request_id, event.response.status));
            }
            "Network.loadingFinished" | "Network.loadingFailed" => {
                if self.requests.remove(&event.request_id).is_none() {
                    return false;
                }
                self.quiet_since = Instant::now();
            }
            _ => return false,
        }
        true
    }

    fn lose_frame(&mut self, session: &str) {
        self.frames.retain(|frame| frame != session);
        self.requests.retain(|_, of| of != session);
    }
}

impl Heard {
    fn reply(&mut self, session: &str, method: &'static str, params: Json) {
        self.replies.push(Outgoing { session: Some(session.to_owned()), method, params });
    }
}

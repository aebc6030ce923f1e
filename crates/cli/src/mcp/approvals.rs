//! Questions to the user of a host: whether a tool may be called.
//!
//! In: calls of tools that the policy asks about. Out: an elicitation for each, and what the user decided. It is a request to
//! the host, or in the newest revision a part of the answer to a call. A host that has no elicitation is not asked.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use isolane_remote_tools::{Approval, Approver};
use rmcp::{
    Peer, RoleServer,
    model::{ElicitRequestParams, ElicitationAction, ElicitationSchema, ProtocolVersion},
    service::RequestContext,
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

/// The most questions of one answer. An execution calls no more tools at once.
const MOST_QUESTIONS: usize = 16;

/// The most characters of arguments that a question shows.
const MOST_SHOWN: usize = 2000;

/// The ways to ask, by the executions of requests.
#[derive(Clone, Default)]
pub(super) struct Approvals(Arc<Mutex<HashMap<u64, Way>>>);

/// The way to ask a host.
#[derive(Clone)]
enum Way {
    /// By a request.
    Request(Peer<RoleServer>),
    /// By the answer to its call, which it makes again.
    Answer(UnboundedSender<Question>),
}

/// A question that the answer to a call asks.
pub(super) struct Question {
    pub(super) message: String,
    pub(super) answer: oneshot::Sender<bool>,
}

/// An execution that may ask, until this is dropped.
pub(super) struct Asking {
    approvals: Approvals,
    eid: u64,
    questions: UnboundedReceiver<Question>,
}

impl Approvals {
    /// An execution begins, for a request.
    pub(super) fn begin(&self, eid: u64, context: &RequestContext<RoleServer>) -> Asking {
        let (sender, questions) = unbounded_channel();
        let capabilities = context.client_capabilities();
        let asks = capabilities.and_then(|capabilities| capabilities.elicitation);
        // A host that names no way has that of forms.
        if asks.is_some_and(|asks| asks.form.is_some() || asks.url.is_none()) {
            let revision = context.protocol_version();
            let is_newest = revision.is_some_and(|it| it >= ProtocolVersion::V_2026_07_28);
            let way =
                if is_newest { Way::Answer(sender) } else { Way::Request(context.peer.clone()) };
            self.lock().insert(eid, way);
        }
        Asking { approvals: self.clone(), eid, questions }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Way>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking {
    /// Waits for questions that an answer must ask.
    pub(super) async fn questions(&mut self) -> Vec<Question> {
        let mut questions = Vec::new();
        if self.questions.recv_many(&mut questions, MOST_QUESTIONS).await == 0 {
            // Nothing is asked in this way.
            std::future::pending::<()>().await;
        }
        questions
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.approvals.lock().remove(&self.eid);
    }
}

#[async_trait]
impl Approver for Approvals {
    async fn approve(&self, call: &Approval) -> Option<bool> {
        let way = self.lock().get(&call.eid).cloned()?;
        let message = question(call);
        // A host that fails has not said yes.
        Some(match way {
            Way::Request(peer) => {
                let answer = peer.create_elicitation(elicitation(message)).await;
                answer.is_ok_and(|answer| answer.action == ElicitationAction::Accept)
            }
            Way::Answer(questions) => {
                let (answer, answered) = oneshot::channel();
                questions.send(Question { message, answer }).is_ok()
                    && answered.await.unwrap_or(false)
            }
        })
    }
}

/// The request with which a host asks its user. It has no fields: the user accepts or declines.
pub(super) fn elicitation(message: String) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    }
}

fn question(call: &Approval) -> String {
    let args = call.args.to_string();
    let mut shown: String = args.chars().take(MOST_SHOWN).collect();
    let left_out = args.chars().count() - shown.chars().count();
    if left_out > 0 {
        shown.push_str(&format!("… and {left_out} characters more"));
    }
    format!("Code that the model wrote wants to call {} with {shown}", call.tool)
}

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
use serde_json::Value as Json;
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

/// The most questions of one answer. An execution calls no more tools at once.
const MOST_QUESTIONS: usize = 16;

/// The most characters of arguments that a question shows.
const MOST_SHOWN: usize = 2000;

/// The characters that each argument has at least. A call with more arguments than can have them is declined.
const LEAST_SHARE: usize = 50;

/// The levels of arguments whose fields have their shares.
const MOST_LEVELS: usize = 8;

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
    /// Nobody approves what nobody can see: a call with very many arguments is declined.
    async fn approve(&self, call: &Approval) -> Option<bool> {
        let way = self.lock().get(&call.eid).cloned()?;
        let Some(message) = question(call) else { return Some(false) };
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

/// The question about a call; `None` if its arguments are too many to be shown.
fn question(call: &Approval) -> Option<String> {
    let shown = shown(&call.args, MOST_SHOWN, MOST_LEVELS)?;
    Some(format!("Code that the model wrote wants to call {} with {shown}", call.tool))
}

/// A value as JSON in about so many characters. Each field and each element has its share of them, so that a long one pushes
/// no other out; `None` if the shares are too small.
fn shown(value: &Json, most: usize, levels: usize) -> Option<String> {
    let text = value.to_string();
    let parts: Vec<(String, &Json)> = match value {
        _ if levels == 0 || text.chars().count() <= most => return Some(cut(&text, most)),
        Json::Object(fields) => {
            let name = |name: &String| cut(&format!("{}:", Json::from(name.as_str())), most);
            fields.iter().map(|(key, value)| (name(key), value)).collect()
        }
        Json::Array(list) => list.iter().map(|value| (String::new(), value)).collect(),
        _ => return Some(cut(&text, most)),
    };
    let lengths: Vec<usize> = parts
        .iter()
        .map(|(name, value)| name.chars().count() + value.to_string().chars().count() + 1)
        .collect();
    let share = share(&lengths, most);
    if share < LEAST_SHARE {
        return None;
    }
    let parts = parts.iter().map(|(name, value)| {
        let most = share.saturating_sub(name.chars().count());
        Some(format!("{name}{}", shown(value, most, levels - 1)?))
    });
    let inner = parts.collect::<Option<Vec<_>>>()?.join(",");
    Some(if value.is_array() { format!("[{inner}]") } else { format!("{{{inner}}}") })
}

/// The characters that each part may have, so that all together have no more than so many.
fn share(lengths: &[usize], most: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let (mut left, mut share) = (most, most);
    for (index, length) in sorted.iter().enumerate() {
        share = left / (sorted.len() - index);
        if *length > share {
            break;
        }
        left -= length;
    }
    share
}

/// A text in so many characters. Those that are not seen, or that turn the direction of others, are escaped.
fn cut(text: &str, most: usize) -> String {
    let (mut cut, mut length) = (String::new(), 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let piece = if is_unseen(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() };
        length += piece.chars().count();
        if length > most {
            let left_out = rest.count() + 1;
            cut.push_str(&format!("… and {left_out} characters more"));
            break;
        }
        cut.push_str(&piece);
    }
    cut
}

/// Whether a character is not seen, or changes how others are: controls, separators of lines, marks of direction and width,
/// variation selectors and tags.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn asked(args: Json) -> Option<String> {
        let call = Approval {
            tool: "shop.pay".to_owned(),
            shown_name: "shop.pay".to_owned(),
            args,
            eid: 1,
        };
        let asked = question(&call)?;
        let (_, shown) = asked.split_once(" with ").expect("arguments");
        assert!(shown.chars().count() < 2 * MOST_SHOWN, "{shown}");
        Some(shown.to_owned())
    }

    #[test]
    fn a_long_argument_pushes_no_other_out() {
        let long = "x".repeat(9000);
        let shown = asked(json!({ "note": long, "to": "mallory", "amount": 1000 })).expect("shown");
        assert!(shown.contains(" characters more,\"to\":\"mallory\",\"amount\":1000}"), "{shown}");
        let shown = asked(json!({ "a": long, "b": long, "c": 1 })).expect("shown");
        assert!(shown.contains("\"b\":\"xxx") && shown.contains("\"c\":1"), "{shown}");
        let shown = asked(json!({ "all": [{ "note": long, "to": "mallory" }, 5] })).expect("shown");
        assert!(shown.ends_with(" characters more,\"to\":\"mallory\"},5]}"), "{shown}");
        assert_eq!(asked(json!({})).as_deref(), Some("{}"));
    }

    #[test]
    fn arguments_that_are_too_many_are_not_shown() {
        let many = |count: usize| -> Map<String, Json> {
            (0..count).map(|n| (format!("field{n}"), "x".repeat(100).into())).collect()
        };
        assert_eq!(asked(many(100).into()), None);
        assert!(asked(many(30).into()).is_some_and(|shown| shown.contains("\"field29\":\"x")));
        assert_eq!(asked(json!({ "inner": many(100) })), None);
    }

    #[test]
    fn nothing_is_invisible() {
        let shown = asked(json!({ "to": "a\u{202e}b\u{200b}\u{e0041}\u{7f}" }));
        assert_eq!(shown.as_deref(), Some(r#"{"to":"a\u{202e}b\u{200b}\u{e0041}\u{7f}"}"#));
        let shown = asked(json!({ "to": "\u{e0041}".repeat(2000) })).expect("shown");
        assert!(shown.ends_with(" characters more}"), "{shown}");
    }
}

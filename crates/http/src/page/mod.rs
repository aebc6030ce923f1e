//! The page: shows processes and their output, and can kill them.
//!
//! In: the three files beside this one. Out: one document, which needs no other. A policy of the browser lets nothing in
//! it run but its own script, and lets that call its own server alone.

use axum::{
    http::{HeaderValue, header},
    response::Response,
};
use uuid::Uuid;

use crate::reply::{HTML, typed};

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub(crate) fn response() -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let document = DOCUMENT
        .replace("/* style */", STYLE)
        .replace("/* script */", SCRIPT)
        .replace("nonce-of-this-response", &nonce);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let mut response = typed(HTML, document);
    // A nonce consists of the digits of a number.
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_fit_into_one_document() {
        assert!(!STYLE.contains("</style") && !SCRIPT.contains("</script"));
        for place in ["/* style */", "/* script */"] {
            assert_eq!(DOCUMENT.matches(place).count(), 1, "{place}");
        }
        assert_eq!(DOCUMENT.matches("nonce=\"nonce-of-this-response\"").count(), 2);
        for source in ["http:", "https:", "//", "innerHTML", "insertAdjacentHTML", "document.write"]
        {
            assert!(!DOCUMENT.contains(source), "{source}");
        }
        for way in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http"]
        {
            assert!(!SCRIPT.contains(way), "{way}");
        }
    }
}

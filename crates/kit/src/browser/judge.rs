//! The judgment of a navigation.
//!
//! In: a URL. Out: nothing, or `BrowserBlocked`. The browser looks the name up again, and dials any of its addresses; so
//! all of them must pass, unlike those of `fetch`, which dials itself. Only a browser behind the kit's proxy reaches
//! none but those that were judged.

use url::Url;

use super::BrowserOptions;
use crate::{
    error::KitError,
    fetch::{address::written_address, target::shown_host},
};

/// The name of refusals.
const BLOCKED: &str = "BrowserBlocked";

/// Judges a URL before anything is looked up: its scheme, host, port and path.
pub(super) fn judge_url(options: &BrowserOptions, url: &Url) -> Result<(), KitError> {
    options.allow.judge(None, url).map_err(|error| error.named(BLOCKED))
}

/// Judges a URL and all addresses of its host.
pub(super) async fn judge(options: &BrowserOptions, url: &Url) -> Result<(), KitError> {
    judge_url(options, url)?;
    let cannot_find = || KitError::new("BrowserError", format!("cannot find {}", shown_host(url)));
    let found = match (written_address(url), url.host_str()) {
        (Some(address), _) => vec![address],
        (None, Some(name)) => options.resolver.resolve(name).await.unwrap_or_default(),
        (None, None) => return Err(cannot_find()),
    };
    if found.is_empty() {
        return Err(cannot_find());
    }
    // Without the list of the interfaces one of them might be reached.
    let own = if_addrs::get_if_addrs().map_err(|_| cannot_find())?;
    let own = own.into_iter().map(|interface| interface.ip());
    let addresses = options.addresses.clone().without(own);
    if found.iter().all(|address| addresses.may_dial(*address)) {
        return Ok(());
    }
    let text = format!("{} has no address that may be reached", shown_host(url));
    Err(KitError::new(BLOCKED, text))
}

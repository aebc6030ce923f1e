//! Limits of the texts that a run returns.

/// The longest message, name, specifier or reason that a run returns, in bytes of UTF-8. Longer ones are cut, and end with
/// an ellipsis.
pub const MESSAGE_LIMIT: usize = 16 << 10;

/// The longest stack that a run returns, in bytes of UTF-8.
pub const STACK_LIMIT: usize = 64 << 10;

/// Why a caller terminates a run, in the caller's words or ours.
pub(crate) fn termination(reason: Option<&str>) -> String {
    bounded(reason.unwrap_or("terminated by the caller").to_owned(), MESSAGE_LIMIT)
}

const ELLIPSIS: char = '…';

/// The text, cut to at most `limit` bytes including the ellipsis that marks the cut, if that has room.
pub(crate) fn bounded(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    match limit.checked_sub(ELLIPSIS.len_utf8()) {
        Some(room) => {
            text.truncate(text.floor_char_boundary(room));
            text.push(ELLIPSIS);
        }
        // The ellipsis itself is too long.
        None => text.truncate(text.floor_char_boundary(limit)),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_room_for_the_ellipsis_holds() {
        let cut = [0, 1, 2, 3].map(|limit| bounded("äbcdef".to_owned(), limit));
        assert_eq!(cut, ["", "", "ä", "…"]);
    }

    #[test]
    fn leaves_short_texts_alone() {
        assert_eq!(bounded("abc".into(), 3), "abc");
    }

    #[test]
    fn cuts_at_a_character() {
        assert_eq!(bounded("ééé".into(), 5), "é…");
        assert_eq!(bounded("x".repeat(MESSAGE_LIMIT + 1), MESSAGE_LIMIT).len(), MESSAGE_LIMIT);
    }
}

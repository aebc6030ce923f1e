//! Images in HTML.
//!
//! In: Base64 and a media type, which may lie. Out: an element `img` with a data URL, whose bytes begin as those of that type
//! do; of anything else, words. A browser runs no script of an SVG in an `img`, and loads nothing for one.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::escape::escaped;
use crate::{Image, render::facts};

/// The element for an image of the cell with that number.
pub(super) fn image(image: &Image, cell: usize) -> String {
    let bytes = STANDARD.decode(&image.data).unwrap_or_default();
    let about = escaped(&facts::image(image));
    if !is_safe(image, &bytes) {
        return format!(
            "<p class=\"note\">Image left out, as it is not what it says: {about}</p>\n"
        );
    }
    // Written anew, for there are several ways to write the same bytes.
    let data = STANDARD.encode(&bytes);
    let kind = &image.mime_type;
    format!(
        "<figure><img alt=\"Image of cell {cell}\" src=\"data:{kind};base64,{data}\"><figcaption>{about}</figcaption></figure>\n"
    )
}

/// Whether the type is one of those that only show something, and the bytes are of that type.
fn is_safe(image: &Image, bytes: &[u8]) -> bool {
    let is_drawing = || std::str::from_utf8(bytes).is_ok_and(|text| text.contains("<svg"));
    let begins = image.begins_as_said(bytes);
    begins.unwrap_or_else(|| image.mime_type == "image/svg+xml" && is_drawing())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mime_type: &str, bytes: &[u8]) -> bool {
        let data = STANDARD.encode(bytes);
        image(&Image { data, mime_type: mime_type.to_owned() }, 1).contains("<img")
    }

    #[test]
    fn a_type_that_lies_is_no_image() {
        assert!(shown("image/png", b"\x89PNG\r\n\x1a\n..."));
        assert!(shown("image/webp", b"RIFF....WEBP"));
        assert!(shown("image/svg+xml", b"<?xml version='1.0'?><svg/>"));
        for (kind, bytes) in [
            ("image/png", &b"<script>alert(1)</script>"[..]),
            ("image/png", b"\xff\xd8\xff"),
            ("image/webp", b"RIFF"),
            ("image/svg+xml", b"<html>"),
            ("image/png\" onerror=\"alert(1)", b"\x89PNG\r\n\x1a\n"),
            ("text/html", b"<svg"),
            ("image/x-icon", b"\x00\x00\x01\x00"),
        ] {
            assert!(!shown(kind, bytes), "{kind}");
        }
        let torn = Image { data: "\"><script>".to_owned(), mime_type: "image/png".to_owned() };
        assert!(!image(&torn, 1).contains("<script"));
    }
}

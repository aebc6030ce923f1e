//! Pictures of a page.
//!
//! In: an element, or the page. Out: a PNG. The page chooses its size, so sizes are bounded before Chromium paints.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{
    Fault,
    element::Rectangle,
    tab::{Tab, read},
};
use crate::browser::Answer;

/// The most pixels of a side. Chromium paints no more.
const MOST_SIDE: f64 = 16_384.0;
/// The most pixels.
const MOST_PIXELS: f64 = (1 << 26) as f64;

#[derive(Deserialize)]
struct Captured {
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_content_size: Size,
}

#[derive(Deserialize)]
struct Size {
    width: f64,
    height: f64,
}

impl Tab {
    pub(super) async fn screenshot(&self, full_page: bool) -> Result<Answer, Fault> {
        if !full_page {
            return self.capture(json!({ "format": "png" })).await;
        }
        let metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let Size { width, height } = read::<Metrics>(&metrics)?.css_content_size;
        self.capture_part([0.0, 0.0, width, height]).await
    }

    pub(super) async fn screenshot_of(&self, selector: &str) -> Result<Answer, Fault> {
        let [left, top, width, height] = self.rectangle(selector).await?;
        // Whole pixels, as Playwright has them.
        let (x, y) = (left.floor().max(0.0), top.floor().max(0.0));
        let size = |from: f64, length: f64, start: f64| ((from + length).ceil() - start).max(1.0);
        self.capture_part([x, y, size(left, width, x), size(top, height, y)]).await
    }

    async fn capture_part(&self, [x, y, width, height]: Rectangle) -> Result<Answer, Fault> {
        if width > MOST_SIDE || height > MOST_SIDE || width * height > MOST_PIXELS {
            let text = format!("a picture of {width} x {height} pixels is too large");
            return Err(Fault::Failed(text));
        }
        let clip = json!({ "x": x, "y": y, "width": width, "height": height, "scale": 1 });
        self.capture(json!({ "format": "png", "captureBeyondViewport": true, "clip": clip })).await
    }

    async fn capture(&self, params: Json) -> Result<Answer, Fault> {
        // Pages behind other ones are not painted.
        self.call("Page.bringToFront", json!({})).await?;
        let captured = self.call("Page.captureScreenshot", params).await?;
        let Captured { data } = read(&captured)?;
        let bytes = STANDARD.decode(data);
        bytes
            .map(Answer::Bytes)
            .map_err(|_| Fault::Failed("the browser gave no picture".to_owned()))
    }
}

//! Strings, big integers and symbols on their way out.
//!
//! In: a primitive of the sandbox whose text takes memory. Out: its nodes, charged before they are copied.

use super::{CHARGE_STEP, Crossing, SHOWN_UNITS, Walk};
use crate::{
    isolate::engine::{Outcome, Raw, Seen},
    value::Writer,
};

impl Walk<'_> {
    pub(super) fn string(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let shown;
        let value = if self.crossing == Crossing::Shown {
            shown = self.state.beginning(value, SHOWN_UNITS)?;
            shown.raw()
        } else {
            value
        };
        cx.with_text(value, |text| {
            self.copy(text, |writer, text| match text {
                Seen::Utf8(text) => writer.string(text),
                Seen::Utf16(units) => writer.string16(units),
            });
        })?;
        self.charge_growth(0);
        Ok(())
    }

    /// Writes a text, and charges for it before it is copied.
    #[inline]
    pub(super) fn copy<T>(
        &mut self,
        text: Seen<'_>,
        write: impl FnOnce(&mut Writer, Seen<'_>) -> T,
    ) -> T {
        /// Bytes that the writer takes for each unit, while it writes.
        const COPIES: usize = 4;
        match text {
            Seen::Utf8(utf8) => {
                if utf8.len() > CHARGE_STEP {
                    self.charge_growth(utf8.len());
                }
                write(&mut self.writer, text)
            }
            Seen::Utf16(units) => {
                let copies = units.len() * COPIES;
                self.charge_growth(size_of_val(units));
                self.state.charge(copies);
                let written = write(&mut self.writer, text);
                self.state.discharge(copies);
                written
            }
        }
    }

    /// Writes a text of ours, of bounded length.
    pub(super) fn text(&mut self, text: &str) {
        self.writer.string(text);
        self.charge_growth(0);
    }

    pub(super) fn bigint(&mut self, value: Raw) -> Outcome<()> {
        let realm = self.state.realm();
        let to_string = realm.intrinsics.bigint_to_string;
        let hex = realm.cx.call(to_string, value, &[crate::isolate::engine::int(16)])?;
        realm.cx.with_bytes(hex.raw(), |hex| {
            // Two digits are a byte, which is there twice for a moment.
            if hex.len() > CHARGE_STEP {
                self.charge_growth(hex.len());
            }
            let digits = hex.strip_prefix(b"-").unwrap_or(hex);
            let magnitude: Vec<u8> = digits
                .rchunks(2)
                .map(|pair| pair.iter().fold(0, |byte, &digit| byte << 4 | hex_digit(digit)))
                .collect();
            self.writer.bigint(digits.len() < hex.len(), &magnitude);
        })?;
        self.charge_growth(0);
        Ok(())
    }

    pub(super) fn symbol(&mut self, value: Raw) -> Outcome<()> {
        if !matches!(self.crossing, Crossing::Log | Crossing::Shown) {
            let path = self.path();
            self.uncloned(format!("{path}: a symbol cannot be cloned"))?;
        }
        let text = self.state.symbol_text(value);
        self.text(&self.placeholder(&text));
        Ok(())
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    }
}

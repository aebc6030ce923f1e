//! Variables of the environment in texts of the configuration.
//!
//! In: a text with `${NAME}`. Out: the text with the values; each value is one that no message may show. `$${` is `${`.

use isolane::Error;

use super::object::misuse;

/// The variables, and the values that were taken so far.
pub(super) struct Variables<'v> {
    value: &'v dyn Fn(&str) -> Option<String>,
    taken: Vec<String>,
}

impl<'v> Variables<'v> {
    pub(super) fn new(value: &'v dyn Fn(&str) -> Option<String>) -> Self {
        Self { value, taken: Vec::new() }
    }

    /// The values that were taken since the last call.
    pub(super) fn taken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.taken)
    }

    /// The text at that path with the values.
    ///
    /// # Errors
    /// A variable that the environment has not; a `${` that begins none.
    pub(super) fn fill(&mut self, path: &str, text: &str) -> Result<String, Error> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, behind) = rest.split_at(at);
            if let Some(before) = before.strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = &behind[2..];
                continue;
            }
            filled.push_str(before);
            let end = behind.find('}').unwrap_or(behind.len());
            let name = &behind[2..end];
            let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if end == behind.len() || !name.starts_with(is_first) || !name.chars().all(is_part) {
                return Err(misuse(path, "write ${NAME} for a variable, and $${ for ${ itself"));
            }
            let Some(value) = (self.value)(name) else {
                return Err(misuse(path, &format!("the environment has no variable {name}")));
            };
            filled.push_str(&value);
            self.taken.push(value);
            rest = &behind[end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_their_values() {
        let value = |name: &str| (name == "TOKEN").then(|| "${x}".to_owned());
        let mut variables = Variables::new(&value);
        let mut fill =
            |text: &str| variables.fill("a.b", text).map_err(|error| error.message().to_owned());
        assert_eq!(fill("Bearer ${TOKEN}, $5 $"), Ok("Bearer ${x}, $5 $".to_owned()));
        assert_eq!(fill("$${TOKEN} ${TOKEN}"), Ok("${TOKEN} ${x}".to_owned()));
        let missing = "a.b: the environment has no variable OTHER";
        assert_eq!(fill("${OTHER}"), Err(missing.to_owned()));
        for wrong in ["${", "${}", "${TOKEN:-x}", "${1}", "${TOKEN"] {
            let refused = fill(wrong).expect_err(wrong);
            assert_eq!(refused, "a.b: write ${NAME} for a variable, and $${ for ${ itself");
        }
    }
}

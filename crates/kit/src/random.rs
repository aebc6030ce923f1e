//! Random texts that nobody guesses: placeholders and passwords.

use std::io;

/// 32 random digits in base 16.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn random_hex() -> io::Result<String> {
    let mut random = [0; size_of::<u128>()];
    getrandom::fill(&mut random)
        .map_err(|error| io::Error::other(format!("the system has no random bytes: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}

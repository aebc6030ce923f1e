//! The stack on which a text is compiled.
//!
//! In: a text, and work that recurses over its trees. Out: the work's result; or the place where the text nests too deeply.

use super::nesting::{self, Weight};
use crate::os::addresses;

/// The stack that one unit of weight may take in any pass. The measured maximum is 914 bytes, of nested tuple types.
pub(super) const STACK_PER_WEIGHT: usize = (2 << 10) * crate::os::sanitized::FRAMES;

/// The most stack that a byte of any source takes, whatever the parser makes of it: a level of nesting has at least one
/// byte. The measured maximum is 1,828 bytes, of nested tuple types.
const STACK_PER_BYTE: usize = STACK_PER_WEIGHT;

/// The stack that any source may take.
pub(super) const STACK_BASE: usize = (384 << 10) * crate::os::sanitized::FRAMES;

/// Runs `work` with enough stack for any pass over that text. The weight of a text rests on an idea of what the parser
/// does, so a mistake there must not overflow the stack.
pub(in super::super) fn with_stack_for<T>(
    text: &str,
    typescript: bool,
    work: impl FnOnce(Weight) -> T,
) -> Result<T, nesting::TooDeep> {
    let weight = nesting::weigh(text, typescript)?;
    let stack = stack_for(text, &weight);
    Ok(stacker::maybe_grow(stack, stack, || work(weight)))
}

/// The stack for a text: as much as any nesting in it could take. Where the process has no room for that, as much as it has
/// room for, and no less than its weight takes. The system gives memory only to the part that is touched.
fn stack_for(text: &str, weight: &Weight) -> usize {
    let weighed = STACK_BASE + weight.levels * STACK_PER_WEIGHT;
    let most = text.len().saturating_mul(STACK_PER_BYTE).saturating_add(STACK_BASE);
    let here = stacker::remaining_stack().unwrap_or_default();
    let halves = std::iter::successors(Some(most), |stack| Some(stack / 2));
    let mut stacks = halves.take_while(|stack| *stack > weighed);
    stacks.find(|stack| *stack <= here || addresses::are_free(*stack)).unwrap_or(weighed)
}

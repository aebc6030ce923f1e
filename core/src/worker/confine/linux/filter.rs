//! Programs that the kernel asks about every call of a process.
//!
//! In: rules, each about one call. Out: a program for the kernel's filter, and that installed. It is
//! compiled once for all workers, but for the number of the process itself, which is put in last.

use super::kernel;

/// What the kernel names the architecture that this is built for; `None` where no one has looked.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// Where in what the filter looks at the number, the architecture, and the arguments are.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// What becomes of a call.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    Allow,
    /// It fails with that error.
    Fail(i32),
    /// The process ends.
    End,
}

/// A condition on the lower half of one argument. The kernel itself looks at no more of those that
/// conditions are made for, but for addresses.
#[derive(Clone, Copy)]
pub(super) struct Test {
    word: u32,
    mask: u32,
    value: Value,
}

#[derive(Clone, Copy)]
enum Value {
    Known(u32),
    OwnProcess,
}

/// What becomes of one call: allowed if one of `allowed` holds entirely, else as `otherwise` says.
pub(super) struct Rule {
    pub(super) call: libc::c_long,
    pub(super) allowed: Vec<Vec<Test>>,
    pub(super) otherwise: Verdict,
}

/// Rules, and what becomes of a call that none is about, such as those of x86-64 with addresses of 32 bits,
/// whose numbers are larger.
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) otherwise: Verdict,
}

/// Rules as the kernel wants them.
pub(super) struct Program {
    instructions: Vec<Instruction>,
}

/// One of them, and whether it compares with the number of the process.
#[derive(Clone, Copy)]
struct Instruction {
    encoded: libc::sock_filter,
    own_process: bool,
}

/// The argument of that place is this number.
pub(super) fn is(argument: u32, value: u32) -> Test {
    Test { word: word_of(argument), mask: u32::MAX, value: Value::Known(value) }
}

/// Of the bits in `mask` the argument of that place has these.
pub(super) fn has(argument: u32, mask: u32, bits: u32) -> Test {
    Test { word: word_of(argument), mask, value: Value::Known(bits) }
}

/// The argument of that place is the process itself.
pub(super) fn is_own_process(argument: u32) -> Test {
    Test { word: word_of(argument), mask: u32::MAX, value: Value::OwnProcess }
}

/// The argument of that place is no address.
pub(super) fn is_null(argument: u32) -> [Test; 2] {
    let upper = Test { word: word_of(argument) + 4, mask: u32::MAX, value: Value::Known(0) };
    [is(argument, 0), upper]
}

/// The lower half of an argument; both architectures store it first.
const fn word_of(argument: u32) -> u32 {
    ARGUMENTS_AT + 8 * argument
}

/// Up to here a list of rules is gone through one by one.
const FEW: usize = 4;

impl Program {
    pub(super) fn compile(rules: Rules) -> Self {
        let Rules { mut rules, otherwise } = rules;
        let Some(architecture) = ARCHITECTURE else { return Self { instructions: Vec::new() } };
        rules.sort_by_key(|rule| rule.call);
        let mut instructions = vec![
            load(ARCHITECTURE_AT),
            jump(libc::BPF_JEQ, architecture, 1, 0),
            decide(Verdict::End),
            load(NUMBER),
        ];
        instructions.append(&mut search(&rules, otherwise));
        Self { instructions }
    }

    /// Has the kernel ask it about every call from here on, of this process and those it forks.
    pub(super) fn install(&self, process: i32) -> bool {
        let finished = self.instructions.iter().map(|instruction| {
            let k = if instruction.own_process {
                process.unsigned_abs()
            } else {
                instruction.encoded.k
            };
            libc::sock_filter { k, ..instruction.encoded }
        });
        let finished: Vec<_> = finished.collect();
        !finished.is_empty() && kernel::filter_calls(&finished)
    }
}

/// Finds the rule by halves: the kernel runs the program for many numbers when it is installed.
fn search(rules: &[Rule], otherwise: Verdict) -> Vec<Instruction> {
    if rules.len() <= FEW {
        let mut few: Vec<_> = rules.iter().flat_map(apply).collect();
        few.push(decide(otherwise));
        return few;
    }
    let (lower, upper) = rules.split_at(rules.len() / 2);
    let (mut left, mut right) = (search(lower, otherwise), search(upper, otherwise));
    let first = upper.first().map_or(u32::MAX, Rule::number);
    let far = u32::try_from(left.len()).unwrap_or(u32::MAX);
    // A jump on a condition reaches no further than a byte says.
    let mut found =
        vec![jump(libc::BPF_JGE, first, 0, 1), encode(libc::BPF_JMP | libc::BPF_JA, far, 0, 0)];
    found.append(&mut left);
    found.append(&mut right);
    found
}

/// Decides if the call is the rule's; goes on behind it if not, with the number still loaded.
fn apply(rule: &Rule) -> Vec<Instruction> {
    let mut body = Vec::new();
    for tests in &rule.allowed {
        let mut checks: Vec<Instruction> = Vec::new();
        // From the last to the first, because each jumps over those that follow, and the verdict.
        for test in tests.iter().rev() {
            checks.splice(0..0, check(test, checks.len() + 1));
        }
        body.append(&mut checks);
        body.push(decide(Verdict::Allow));
    }
    body.push(decide(rule.otherwise));
    body.insert(0, jump(libc::BPF_JEQ, rule.number(), 0, short(body.len())));
    body
}

/// Jumps over so many instructions unless it holds.
fn check(test: &Test, skipped: usize) -> Vec<Instruction> {
    let mut checks = vec![load(test.word)];
    if test.mask != u32::MAX {
        checks.push(encode(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, test.mask, 0, 0));
    }
    let (value, own_process) = match test.value {
        Value::Known(value) => (value, false),
        Value::OwnProcess => (0, true),
    };
    checks.push(Instruction { own_process, ..jump(libc::BPF_JEQ, value, 0, short(skipped)) });
    checks
}

impl Rule {
    fn number(&self) -> u32 {
        // A call's number is small on every architecture.
        u32::try_from(self.call).unwrap_or(u32::MAX)
    }
}

/// A rule is some tests long; one that were too long would let its call fall into another rule.
fn short(length: usize) -> u8 {
    u8::try_from(length).expect("a rule is shorter than a jump")
}

fn load(word: u32) -> Instruction {
    encode(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, word, 0, 0)
}

fn jump(how: u32, value: u32, if_so: u8, if_not: u8) -> Instruction {
    encode(libc::BPF_JMP | how | libc::BPF_K, value, if_so, if_not)
}

fn decide(verdict: Verdict) -> Instruction {
    let value = match verdict {
        Verdict::Allow => libc::SECCOMP_RET_ALLOW,
        Verdict::Fail(error) => libc::SECCOMP_RET_ERRNO | error.unsigned_abs(),
        Verdict::End => libc::SECCOMP_RET_KILL_PROCESS,
    };
    encode(libc::BPF_RET | libc::BPF_K, value, 0, 0)
}

fn encode(code: u32, k: u32, jt: u8, jf: u8) -> Instruction {
    // Codes have 16 bits.
    let code = u16::try_from(code).expect("a code of the filter's machine");
    Instruction { encoded: libc::sock_filter { code, jt, jf, k }, own_process: false }
}

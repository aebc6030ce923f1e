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

/// On x86-64 numbers from here on are calls of another kind, with addresses of 32 bits.
const FOREIGN_FROM: u32 = 0x4000_0000;

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

/// Rules, and what becomes of a call that none is about.
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) otherwise: Verdict,
}

/// Rules as the kernel wants them.
pub(super) struct Program {
    instructions: Vec<libc::sock_filter>,
    /// Which of them compare with the number of the process.
    own_process: Vec<usize>,
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

impl Program {
    pub(super) fn compile(rules: &Rules) -> Self {
        let mut program = Self { instructions: Vec::new(), own_process: Vec::new() };
        let Some(architecture) = ARCHITECTURE else { return program };
        program.load(ARCHITECTURE_AT);
        program.jump(libc::BPF_JEQ, architecture, 1, 0);
        program.decide(Verdict::End);
        program.load(NUMBER);
        if cfg!(target_arch = "x86_64") {
            program.jump(libc::BPF_JGE, FOREIGN_FROM, 0, 1);
            program.decide(Verdict::End);
        }
        for rule in &rules.rules {
            program.rule(rule);
        }
        program.decide(rules.otherwise);
        program
    }

    /// Has the kernel ask it about every call from here on, of this process and those it forks.
    pub(super) fn install(&self, process: i32) -> bool {
        let mut instructions = self.instructions.clone();
        for place in &self.own_process {
            instructions[*place].k = process.unsigned_abs();
        }
        !instructions.is_empty() && kernel::filter_calls(&instructions)
    }

    /// The number of the call is loaded before, and after if the rule is not about it.
    fn rule(&mut self, rule: &Rule) {
        let mut body = Self { instructions: Vec::new(), own_process: Vec::new() };
        for tests in &rule.allowed {
            let mut left = tests.iter().map(Test::length).sum::<usize>();
            for test in tests {
                left -= test.length();
                body.test(test, left + 1);
            }
            body.decide(Verdict::Allow);
        }
        body.decide(rule.otherwise);
        // A call's number is small on every architecture.
        let number = u32::try_from(rule.call).unwrap_or(u32::MAX);
        self.skip_unless_equal(number, body.instructions.len());
        let start = self.instructions.len();
        self.own_process.extend(body.own_process.into_iter().map(|place| start + place));
        self.instructions.append(&mut body.instructions);
    }

    fn test(&mut self, test: &Test, skipped: usize) {
        self.load(test.word);
        if test.mask != u32::MAX {
            self.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, test.mask, 0, 0);
        }
        match test.value {
            Value::Known(value) => self.skip_unless_equal(value, skipped),
            Value::OwnProcess => {
                self.own_process.push(self.instructions.len());
                self.skip_unless_equal(u32::MAX, skipped);
            }
        }
    }

    fn load(&mut self, word: u32) {
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, word, 0, 0);
    }

    fn skip_unless_equal(&mut self, value: u32, skipped: usize) {
        // A body is a few tests; one that were too long would let its call fall into another rule.
        let skipped = u8::try_from(skipped).expect("a rule is shorter than a jump");
        self.jump(libc::BPF_JEQ, value, 0, skipped);
    }

    fn jump(&mut self, how: u32, value: u32, if_so: u8, if_not: u8) {
        self.push(libc::BPF_JMP | how | libc::BPF_K, value, if_so, if_not);
    }

    fn decide(&mut self, verdict: Verdict) {
        let value = match verdict {
            Verdict::Allow => libc::SECCOMP_RET_ALLOW,
            Verdict::Fail(error) => libc::SECCOMP_RET_ERRNO | error.unsigned_abs(),
            Verdict::End => libc::SECCOMP_RET_KILL_PROCESS,
        };
        self.push(libc::BPF_RET | libc::BPF_K, value, 0, 0);
    }

    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        // Codes have 16 bits.
        let code = u16::try_from(code).expect("a code of the filter's machine");
        self.instructions.push(libc::sock_filter { code, jt, jf, k });
    }
}

impl Test {
    /// In instructions.
    fn length(&self) -> usize {
        if self.mask == u32::MAX { 2 } else { 3 }
    }
}

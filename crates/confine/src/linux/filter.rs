//! Filter programs that the kernel runs at every call of a process.
//!
//! In: rules, each about one call. Out: a program for the kernel's filter, and its installation. It is compiled once
//! for all workers, except for the number of the process itself, which is put in last.

use super::kernel;

/// The kernel's number for the architecture of this build; `None` for architectures that nobody has checked.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// The places of the number, the architecture, and the arguments in the filter's input.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// The fate of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    /// It fails with that error.
    Fail(i32),
    /// The process ends.
    End,
}

/// A condition on the lower half of one argument. The kernel itself looks at no more than that half of the arguments
/// that conditions are made for, except for addresses.
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

/// The verdict on one call: allowed if all tests of one list in `allowed` hold, else `otherwise`.
pub(super) struct Rule {
    pub(super) call: libc::c_long,
    pub(super) allowed: Vec<Vec<Test>>,
    pub(super) otherwise: Verdict,
}

/// Rules, and the verdict on a call without a rule. Calls of x86-64 with addresses of 32 bits have none, as their
/// numbers are larger.
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) otherwise: Verdict,
}

/// Rules in the form that the kernel takes.
pub(super) struct Program {
    instructions: Vec<Instruction>,
}

/// One instruction, and whether it compares with the number of the process.
#[derive(Clone, Copy)]
struct Instruction {
    encoded: libc::sock_filter,
    own_process: bool,
}

/// The argument at that place is this number.
pub(super) fn is(argument: u32, value: u32) -> Test {
    Test { word: word_of(argument), mask: u32::MAX, value: Value::Known(value) }
}

/// The argument at that place has, of the bits in `mask`, exactly these.
pub(super) fn has(argument: u32, mask: u32, bits: u32) -> Test {
    Test { word: word_of(argument), mask, value: Value::Known(bits) }
}

/// The argument at that place is the process itself.
pub(super) fn is_own_process(argument: u32) -> Test {
    Test { word: word_of(argument), mask: u32::MAX, value: Value::OwnProcess }
}

/// The argument at that place is no address.
pub(super) fn is_null(argument: u32) -> [Test; 2] {
    let upper = Test { word: word_of(argument) + 4, mask: u32::MAX, value: Value::Known(0) };
    [is(argument, 0), upper]
}

/// The lower half of an argument; both architectures store it first.
const fn word_of(argument: u32) -> u32 {
    ARGUMENTS_AT + 8 * argument
}

/// Lists of up to this many rules are tried one by one.
const FEW: usize = 8;

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

    /// Has the kernel run it at every call from here on, of this process and those that it forks.
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

/// Finds the rule by bisection: the kernel runs the program for many numbers when it is installed.
fn search(rules: &[Rule], otherwise: Verdict) -> Vec<Instruction> {
    if rules.len() <= FEW {
        return try_each(rules, otherwise);
    }
    let (lower, upper) = rules.split_at(rules.len() / 2);
    let (mut left, mut right) = (search(lower, otherwise), search(upper, otherwise));
    let first = upper.first().map_or(u32::MAX, Rule::number);
    let mut found = match u8::try_from(left.len()) {
        Ok(far) => vec![jump(libc::BPF_JGE, first, far, 0)],
        // A conditional jump reaches no further than a byte allows.
        Err(_) => {
            let far = u32::try_from(left.len()).unwrap_or(u32::MAX);
            vec![jump(libc::BPF_JGE, first, 0, 1), encode(libc::BPF_JMP | libc::BPF_JA, far, 0, 0)]
        }
    };
    found.append(&mut left);
    found.append(&mut right);
    found
}

/// Tries one rule after another. The kernel compiles the program for each worker, so the rules share their verdicts,
/// which stand behind them.
fn try_each(rules: &[Rule], otherwise: Verdict) -> Vec<Instruction> {
    let mut verdicts = vec![otherwise];
    for verdict in rules.iter().flat_map(Rule::verdicts) {
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    let mut code: Vec<_> = verdicts.into_iter().map(decide).collect();
    rules.iter().rev().for_each(|rule| rule.put_before(&mut code));
    code
}

impl Rule {
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let allows = !self.allowed.is_empty();
        allows.then_some(Verdict::Allow).into_iter().chain([self.otherwise])
    }

    /// Puts the rule before the code: it decides the calls that it is about, and goes on with the code for others. The
    /// code contains the verdicts. Places in it are counted from the end, so that they stay the same.
    fn put_before(&self, code: &mut Vec<Instruction>) {
        let behind = code.len();
        let mut failed = from_end(code, self.otherwise);
        if self.allowed.is_empty() {
            let decided = short(behind - failed);
            return code.insert(0, jump(libc::BPF_JEQ, self.number(), decided, 0));
        }
        let allowed = from_end(code, Verdict::Allow);
        for tests in self.allowed.iter().rev() {
            let mut held = allowed;
            for test in tests.iter().rev() {
                let (held_at, failed_at) = (short(code.len() - held), short(code.len() - failed));
                code.splice(0..0, test.check(held_at, failed_at));
                held = code.len();
            }
            failed = code.len();
        }
        let others = short(code.len() - behind);
        code.insert(0, jump(libc::BPF_JEQ, self.number(), 0, others));
    }

    fn number(&self) -> u32 {
        // A call's number is small on every architecture.
        u32::try_from(self.call).unwrap_or(u32::MAX)
    }
}

impl Test {
    /// Skips `held` instructions if it holds, and `failed` if not.
    fn check(&self, held: u8, failed: u8) -> Vec<Instruction> {
        let mut checks = vec![load(self.word)];
        if self.mask != u32::MAX {
            checks.push(encode(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, self.mask, 0, 0));
        }
        let (value, own_process) = match self.value {
            Value::Known(value) => (value, false),
            Value::OwnProcess => (0, true),
        };
        checks.push(Instruction { own_process, ..jump(libc::BPF_JEQ, value, held, failed) });
        checks
    }
}

/// The distance of the verdict from the end of the code.
fn from_end(code: &[Instruction], verdict: Verdict) -> usize {
    let decision = decide(verdict).encoded;
    let at = code.iter().position(|instruction| {
        (instruction.encoded.code, instruction.encoded.k) == (decision.code, decision.k)
    });
    code.len() - at.expect("the verdicts of all its rules are in it")
}

/// The length of a jump within a rule. A rule is some tests long; a longer one would let its call fall into another
/// rule.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::{
        interpreter::{self, Granted, Memory},
        permitted,
    };

    const PROCESS: u32 = 77;

    /// The result of the kernel's machine with that program.
    fn run(program: &Program, words: &[u32]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction { encoded, own_process } = program.instructions[at];
            let k = if own_process { PROCESS } else { encoded.k };
            let on = |holds: bool| usize::from(if holds { encoded.jt } else { encoded.jf });
            at += 1;
            match u32::from(encoded.code) {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    loaded = words[k as usize / 4];
                }
                code if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K => loaded &= k,
                code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    at += on(loaded == k);
                }
                code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => {
                    at += on(loaded >= k);
                }
                code if code == libc::BPF_JMP | libc::BPF_JA => at += k as usize,
                code if code == libc::BPF_RET | libc::BPF_K => return k,
                code => panic!("{code}: an instruction that is not made here"),
            }
        }
    }

    /// The verdict that the rules give.
    fn judged(rules: &Rules, words: &[u32]) -> u32 {
        let holds = |test: &Test| {
            let value = match test.value {
                Value::Known(value) => value,
                Value::OwnProcess => PROCESS,
            };
            words[test.word as usize / 4] & test.mask == value
        };
        let rule = rules.rules.iter().find(|rule| rule.number() == words[0]);
        let verdict = rule.map_or(rules.otherwise, |rule| {
            let allowed = rule.allowed.iter().any(|tests| tests.iter().all(holds));
            if allowed { Verdict::Allow } else { rule.otherwise }
        });
        decide(verdict).encoded.k
    }

    #[test]
    fn a_program_decides_as_its_rules_do() {
        let program =
            |memory, may_fork, network| interpreter::rules(Granted { memory, may_fork, network });
        let made: [&dyn Fn() -> Rules; 5] = [
            &permitted::worker,
            &permitted::zygote,
            &|| program(Memory::OfGroup, true, false),
            &|| program(Memory::OfEach, true, false),
            &|| program(Memory::OfEach, false, true),
        ];
        for make in made {
            let (program, rules) = (Program::compile(make()), make());
            let mut values: Vec<u32> = vec![0, 1, 2, 3, 4, 5, 6, 9, 10, 14, 22, PROCESS, u32::MAX];
            let tests = rules.rules.iter().flat_map(|rule| rule.allowed.iter().flatten());
            values.extend(tests.filter_map(|test| match test.value {
                Value::Known(value) => Some(value),
                Value::OwnProcess => None,
            }));
            values.sort_unstable();
            values.dedup();
            for number in (0..600).chain([0x4000_0000, u32::MAX]) {
                for &one in &values {
                    for &other in &values {
                        let mut words = [one; 16];
                        (words[0], words[1]) = (number, ARCHITECTURE.unwrap_or(0));
                        for argument in [1, 3, 4] {
                            words[word_of(argument) as usize / 4] = other;
                        }
                        assert_eq!(run(&program, &words), judged(&rules, &words), "{words:?}");
                    }
                }
            }
            let mut others = [0; 16];
            others[1] = 1;
            assert_eq!(run(&program, &others), libc::SECCOMP_RET_KILL_PROCESS);
        }
    }
}

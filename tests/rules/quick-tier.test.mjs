// Rules of the quick tier, which must never fail by chance: no test of it asserts the resident memory of a process, or a
// duration under a minute. `tests/campaign` and the folders that are not listed here may measure.
//
// In: the tracked test files of the three languages. Out: a failure that names each file, line and rule. The rules
// themselves are shown to bite.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Not those of costs, which are ignored and print. */
const RUST = /^(core\/src|core\/tests\/it|crates\/[^/]+\/(src|tests)|bindings-[^/]+\/src)\/.*(?<!\bcosts?|_cost)\.rs$/;
const SCRIPTS = /^tests\/(node|contract|crossings|docs|python)\/.*\.(mjs|mts|cts|py)$/;

/** A constant that bounds a wait. */
const CEILING = /CEILING|PATIENCE/;

const RESIDENT = /VmRSS|VmHWM|smaps|\bstatm\b|getrusage|ru_maxrss|resident_bytes|psutil|resourceUsage|\bmaxRSS\b|memoryUsage(\(\))?\.rss|\brss\b/;

/** Each finds the places in a text at which a rule is broken. */
const RUST_RULES = {
  'a test reads the resident memory of the process': (text) => matches(text, RESIDENT),
  'an assertion bounds a measured duration by less than a minute': (text) =>
    calls(text, /\b(debug_)?assert!\(/g).filter(({ call }) => {
      const [most] = call.match(/elapsed\(\)[^;]*?<=?[^,;)]*/) ?? [];
      return most !== undefined && !/CEILING|from_mins\(/.test(call.slice(call.indexOf(most)));
    }),
  'a ceiling is less than a minute': (text) =>
    matches(text, /const \w*(?:CEILING|PATIENCE)\w*\s*:\s*(?:\w+::)*Duration\s*=\s*[^;]*;/).filter(({ call }) => rustSeconds(call) < 60),
};

const SCRIPT_RULES = {
  'a test reads the resident memory of the process': (text) => matches(text, RESIDENT),
  'an assertion bounds a measured duration': (text) =>
    calls(text, /\bassert(\.\w+)?\(|\bassert\b[^\n]*/g).filter(
      ({ call }) => /(performance\.now|Date\.now|monotonic|perf_counter|thread_time|process_time)\(|time\.time\(|hrtime/.test(call) && /[<>]/.test(call) && !CEILING.test(call) && !/deadline/.test(call),
    ),
  'a ceiling is less than a minute': (text) => [
    // Of a test, of a process, of a wait, of a constant.
    ...matches(text, /\btimeout: ([\d_]+)\b/).filter(({ match }) => isShort(number(match[1]) / 1000)),
    ...matches(text, /\b(?:timeout|ceiling_s|CEILING_S|STATS_S|ceiling_s: float) ?= ?([\d_.]+)\b/).filter(({ match }) => isShort(number(match[1]))),
    ...matches(text, /(?:CEILING|STATS)_MS = ([\d_]+)\b/).filter(({ match }) => isShort(number(match[1]) / 1000)),
    ...matches(text, /wait_for\([^\n]*, ([\d_.]+)\)/).filter(({ match }) => isShort(number(match[1]))),
    ...matches(text, /\.(?:join|result|wait|communicate)\(([\d.]+)\)/).filter(({ match }) => isShort(number(match[1]))),
  ],
};

/** Whether that many seconds are a ceiling that a busy machine may reach. A tenth of a second at most is none. */
const isShort = (seconds) => seconds > 0.1 && seconds < 60;

const number = (text) => Number(text.replaceAll('_', ''));

function rustSeconds(text) {
  const [, unit, count] = text.match(/from_(mins|secs|millis|hours)\((\d[\d_]*)/) ?? [];
  // A duration that is computed from another ceiling is judged there.
  return unit === undefined ? Infinity : number(count) * { hours: 3600, mins: 60, secs: 1, millis: 0.001 }[unit];
}

function matches(text, pattern) {
  return [...text.matchAll(new RegExp(pattern, 'g'))].map((match) => ({ line: lineOf(text, match.index), call: match[0], match }));
}

/** The texts of calls, each from its name to its closing parenthesis. */
function calls(text, pattern) {
  return [...text.matchAll(pattern)].map((match) => {
    let end = match.index + match[0].length;
    if (match[0].endsWith('(')) for (let open = 1; open > 0 && end < text.length; end += 1) open += { '(': 1, ')': -1 }[text[end]] ?? 0;
    return { line: lineOf(text, match.index), call: text.slice(match.index, end) };
  });
}

function lineOf(text, at) {
  return text.slice(0, at).split('\n').length;
}

/** Breaches of rules in a text, each with its line. */
function breaches(rules, text) {
  return Object.entries(rules).flatMap(([rule, find]) => find(text).map(({ line }) => ({ line, rule })));
}

/** The test code of a file of Rust, with the lines that it has in the file. */
function rustTests(path, text) {
  const isTest = /\/tests\/|\/tests?\.rs$/.test(path);
  const begin = isTest ? 0 : text.search(/#\[cfg\(test\)\]\s*(?:#\[[^\n]*\]\s*)*mod \w+ \{/);
  if (begin < 0) return '';
  // Blank lines in place of what comes before, and of tests that measure.
  const blank = (part) => part.replace(/[^\n]/g, '');
  const tests = blank(text.slice(0, begin)) + text.slice(begin);
  return tests.replace(/#\[ignore = "measures[\s\S]*?\n( *)\}\n/g, blank);
}

const read = (path) => readFileSync(ROOT + path, 'utf8');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' }).split('\n').filter((path) => path !== '' && existsSync(ROOT + path));

for (const [language, files, rules, textOf] of [
  ['Rust', RUST, RUST_RULES, rustTests],
  ['Node and Python', SCRIPTS, SCRIPT_RULES, (_, text) => text],
]) {
  test(`the quick tier of ${language} measures nothing`, () => {
    const paths = tracked.filter((path) => files.test(path));
    assert.ok(paths.length > 20, `${paths.length} files`);
    const found = paths.flatMap((path) => breaches(rules, textOf(path, read(path))).map(({ line, rule }) => `${path}:${line}: ${rule}`));
    assert.deepEqual(found, []);
  });
}

const BAD = [
  [RUST_RULES, 'let held = read("/proc/self/smaps");'],
  [RUST_RULES, 'unsafe { libc::getrusage(0, &mut usage) };'],
  [RUST_RULES, 'assert!(began.elapsed() < Duration::from_secs(5), "slow");'],
  [RUST_RULES, 'assert!(\n    began.elapsed() <= LIMIT,\n);'],
  [RUST_RULES, 'const CEILING: Duration = Duration::from_secs(20);'],
  [RUST_RULES, 'const PATIENCE: std::time::Duration = Duration::from_millis(9_000);'],
  [SCRIPT_RULES, 'with open("/proc/self/statm") as file: pass'],
  [SCRIPT_RULES, 'const held = process.memoryUsage().rss;'],
  [SCRIPT_RULES, 'assert.ok(performance.now() - began < 500);'],
  [SCRIPT_RULES, '    assert time.monotonic() - started < 20'],
  [SCRIPT_RULES, "test('slow', { timeout: 10_000 }, () => {});"],
  [SCRIPT_RULES, 'const CEILING_MS = 30_000;'],
  [SCRIPT_RULES, 'CEILING_S = 0.4 * PATIENCE'],
  [SCRIPT_RULES, 'def until(holds, ceiling_s: float = 20) -> None:'],
  [SCRIPT_RULES, 'await asyncio.wait_for(handle, 5)'],
  [SCRIPT_RULES, 'thread.join(timeout=5)'],
  [SCRIPT_RULES, 'assert future.result(5) == 1'],
];
const GOOD = [
  [RUST_RULES, 'assert!(began.elapsed() < CEILING, "{:?}", began.elapsed());'],
  [RUST_RULES, 'assert!(began.elapsed() < Duration::from_mins(1));'],
  [RUST_RULES, 'assert!(slept.elapsed() >= SHORT);'],
  [RUST_RULES, 'const CEILING: Duration = Duration::from_mins(2);'],
  [SCRIPT_RULES, "test('slow', { timeout: 120_000 }, () => {});"],
  [SCRIPT_RULES, 'CEILING_S = 120.0 * PATIENCE'],
  [SCRIPT_RULES, 'with pytest.raises(asyncio.TimeoutError):\n    await asyncio.wait_for(handle, 0.05)'],
  [SCRIPT_RULES, 'await asyncio.wait_for(handle, CEILING_S)'],
];

test('each rule bites, and only where it should', () => {
  for (const [rules, text] of BAD) assert.notDeepEqual(breaches(rules, text), [], text);
  for (const [rules, text] of GOOD) assert.deepEqual(breaches(rules, text), [], text);
});

test('only test code of Rust counts, without what is ignored as a measurement', () => {
  const bad = 'assert!(t.elapsed() < SHORT);';
  assert.deepEqual(breaches(RUST_RULES, rustTests('core/src/a.rs', `fn f() { ${bad} }\n`)), []);
  assert.deepEqual(breaches(RUST_RULES, rustTests('core/src/a.rs', `fn f() {}\n#[cfg(test)]\nmod tests {\n    ${bad}\n}\n`)).map(({ line }) => line), [4]);
  assert.deepEqual(breaches(RUST_RULES, rustTests('core/tests/it/a.rs', `#[test]\n#[ignore = "measures time"]\nfn f() {\n    ${bad}\n}\n`)), []);
});

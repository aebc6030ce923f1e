// Processes of this system, read from /proc.
//
// In: the number of a process. Out: its descendants. A number may be reused, so a process is identified by its number
// and its start time.

import { readFileSync, readdirSync } from 'node:fs';

/** Launchers, zygotes and workers below a host, each with its parent. */
export function descendants(host) {
  const all = processes();
  const below = [];
  for (let parents = new Set([host]); parents.size > 0; ) {
    const children = all.filter(({ parent }) => parents.has(parent));
    below.push(...children);
    parents = new Set(children.map(({ pid }) => pid));
  }
  return below;
}

/** The workers among them: processes that the children of a host's children have forked. */
export function workersOf(host) {
  const below = descendants(host);
  const ofHost = below.filter(({ parent }) => parent === host).map(({ pid }) => pid);
  const zygotes = below.filter(({ parent }) => ofHost.includes(parent)).map(({ pid }) => pid);
  return below.filter(({ parent, ended }) => zygotes.includes(parent) && !ended);
}

/** Those of them that exist and have not ended. */
export function alive(some) {
  const all = processes();
  return some.filter(({ pid, began }) => all.some((other) => other.pid === pid && other.began === began && !other.ended));
}

function processes() {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      // The name, in parentheses, may contain any characters.
      const fields = readFileSync(`/proc/${name}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
      return [{ pid: Number(name), parent: Number(fields[1]), began: fields[19], ended: 'ZX'.includes(fields[0]) }];
    } catch (error) {
      // It ended meanwhile.
      if (['ENOENT', 'ESRCH'].includes(error.code)) return [];
      throw error;
    }
  });
}

// The project's pages, taken apart.
//
// In: a page of Markdown. Out: its fenced blocks, its links, its anchors, and the spans of code in its text, each with
// the line on which it stands.

import { readFileSync, readdirSync } from 'node:fs';

export const ROOT = new URL('../../', import.meta.url);

/** The pages for users: their examples are run. */
export const GUIDES = ['README.md', ...markdownIn('docs/')];

/** The pages for those who change the project: they name its files. */
export const INSIDE = ['ARCHITECTURE.md', 'SECURITY.md', 'CONTRIBUTING.md', ...markdownIn('docs/')];

/** Every page whose links must lead somewhere. */
export const PAGES = [
  ...markdownIn(''),
  ...markdownIn('docs/'),
  ...markdownIn('docs/upstream/'),
  ...readdirSync(new URL('tests/', ROOT), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => markdownIn(`tests/${name}/`).filter((page) => page.endsWith('/README.md'))),
];

/** The text of a page. */
export function read(page) {
  return readFileSync(new URL(page, ROOT), 'utf8');
}

/** The fenced blocks: their tag, the line of the fence, and the text between the fences. */
export function blocks(page) {
  return parts(page).filter((part) => part.fenced);
}

/** The links in the text: `target` is a path as the page writes it, or an anchor, or an address. */
export function links(page) {
  return proseLines(page).flatMap(({ text, line }) =>
    // Code stands for nothing but itself, but a link may have it as its text.
    [...text.replaceAll(/`[^`]*`/g, 'code').matchAll(/\]\(([^()\s]+)\)/g)].map(([, target]) => ({ target, line })),
  );
}

/** The spans of code in the text. */
export function codeSpans(page) {
  return proseLines(page).flatMap(({ text, line }) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => ({ code, line })));
}

/** The anchors of the headings, as GitHub makes them. */
export function anchors(page) {
  const found = new Set();
  for (const { text } of proseLines(page)) {
    const [, title] = text.match(/^#{1,6} (.+)$/) ?? [];
    if (title === undefined) continue;
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').trim().replaceAll(/\s/g, '-');
    let anchor = slug;
    for (let count = 1; found.has(anchor); count += 1) anchor = `${slug}-${count}`;
    found.add(anchor);
  }
  return found;
}

function proseLines(page) {
  return parts(page).filter((part) => !part.fenced);
}

/** The lines outside of fences one by one, and each fenced block as one part. */
function parts(page) {
  const found = [];
  let open = null;
  read(page)
    .split('\n')
    .forEach((text, index) => {
      const [, fence, tag] = text.match(/^(`{3,})(.*)$/) ?? [];
      if (open === null && /^\s+```/.test(text)) throw new Error(`${page}:${index + 1}: an indented fence is not looked at`);
      if (open === null && fence !== undefined) {
        open = { fenced: true, page, fence, tag: tag.trim(), line: index + 1, lines: [] };
      } else if (open !== null && text === open.fence) {
        found.push({ ...open, text: open.lines.join('\n') });
        open = null;
      } else if (open !== null) open.lines.push(text);
      else found.push({ fenced: false, text, line: index + 1 });
    });
  if (open !== null) throw new Error(`${page}:${open.line}: this fence is never closed`);
  return found;
}

function markdownIn(folder) {
  return readdirSync(new URL(folder, ROOT))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => folder + name);
}

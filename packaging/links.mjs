// The links of a page in a package, which has some files of the clone and no others.
//
// In: the text of a page in Markdown, its path in the clone. Out: the text with other words in place of links to files; those
// to addresses and within the page stay, and so does code.

import { posix } from 'node:path';

/** Fenced code, code in a line, and links, which may span lines. */
const PARTS = /^(`{3,}|~{3,})[^]*?^\1[^\S\n]*$|(?<tick>`+)[^]*?\k<tick>|!?\[(?<text>[^[\]]*)\]\((?<target>[^()\s]+)\)/gm;

/** @param {(text: string, path: string, link: string) => string} word what stands for a link to a file of the clone */
export function relinked(page, at, word) {
  return page.replaceAll(PARTS, (part, ...rest) => {
    const { text, target } = rest.at(-1);
    if (target === undefined || /^(#|[a-z]+:)/.test(target)) return part;
    return word(text, posix.join(posix.dirname(at), target.replace(/#.*/, '')), part);
  });
}

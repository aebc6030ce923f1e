// Results for people: functions of a result, which need no open notebook.
//
// In: results of `execute`, or the arguments of a call, and options. Out: texts, at once. The native side reads and checks
// everything.

import type { Args, HtmlOptions, Rendered, TerminalOptions } from '../../notebook.js';
import { Door } from '../door/door.js';
import { withPath } from './misuse.js';

/** The renderers, once one was called. */
let renderers: Door | undefined;

export function renderCall(args: Args, options?: TerminalOptions): string {
  return ask('render_call', args, options);
}

export function renderTerminal(result: Rendered, options?: TerminalOptions): string {
  return ask('render_terminal', result, options);
}

export function renderHtml(result: Rendered, options?: HtmlOptions): string {
  return ask('render_html', result, options);
}

export function toIpynb(results: readonly Rendered[]): string {
  return ask('to_ipynb', results);
}

function ask(method: string, ...args: unknown[]): string {
  return withPath(() => {
    renderers ??= new Door('notebook-renderers', {});
    return renderers.ask<string>(method, args);
  });
}

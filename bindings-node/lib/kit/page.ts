// The page of a kit, driven with Playwright.
//
// In: the host's page or context, or a function that gives one; tasks of runs. Out: their answers. The kit has judged
// each task before, and bounds and redacts each answer after. No exception leaves this module for the event loop.

import { performance } from 'node:perf_hooks';
import { emitWarning } from 'node:process';

import type { BrowserProxy } from '../../kit.js';
import { clearTimeout, setTimeout } from '../addon/event-loop.js';
import type { Door } from '../door/door.js';

/** A task of a run: its number, its kind, the time for it, and the fields of its kind. */
type PageTask = [
  number: number,
  kind: 'navigate' | 'screenshot' | 'click' | 'type' | 'read' | 'evaluate' | 'halt' | 'close',
  timeoutMs: number,
  fields: PageFields,
];

interface PageFields {
  readonly url?: string;
  readonly waitUntil?: string;
  readonly selector?: string | null;
  readonly text?: string;
  readonly clearFirst?: boolean;
  readonly fullPage?: boolean;
  readonly property?: string;
  readonly mostUnits?: number;
  readonly expression?: string;
}

/** The answer to a task. `failed` has the message as its text, `stopped` the URL where a navigation was stopped. */
interface PageAnswer {
  readonly kind: 'nothing' | 'arrived' | 'text' | 'tooLarge' | 'bytes' | 'timeout' | 'stopped' | 'failed';
  readonly text?: string;
  readonly url?: string;
  readonly title?: string;
  readonly status?: number;
  readonly bytes?: Uint8Array;
}

/** The part of Playwright's locator that is used. */
interface Locator {
  first(): Locator;
  click(options: object): Promise<unknown>;
  fill(text: string, options: object): Promise<unknown>;
  pressSequentially(text: string, options: object): Promise<unknown>;
  screenshot(options: object): Promise<Uint8Array>;
  evaluate(code: unknown, arg: unknown, options: object): Promise<unknown>;
}

/** The part of Playwright's request that is used. */
interface PlaywrightRequest {
  url(): string;
  isNavigationRequest(): boolean;
  failure(): object | null;
  headers(): Record<string, string>;
  redirectedFrom(): unknown;
  frame(): Frame;
}

/** The part of Playwright's frame that is used. */
interface Frame {
  parentFrame(): unknown;
}

/** The part of Playwright's page that is used. */
interface PlaywrightPage {
  goto(url: string, options: object): Promise<{ status(): number } | null>;
  url(): string;
  locator(selector: string): Locator;
  screenshot(options: object): Promise<Uint8Array>;
  evaluate(expression: string): Promise<unknown>;
  isClosed(): boolean;
  close(): Promise<unknown>;
  context(): PlaywrightContext;
  mainFrame(): Frame;
  waitForEvent(event: 'framenavigated', options: { predicate: (frame: Frame) => boolean; timeout: number }): Promise<unknown>;
  waitForURL(url: string | ((url: URL) => boolean), options: object): Promise<unknown>;
  on(event: 'request', listener: (request: PlaywrightRequest) => void): unknown;
  on(event: 'framenavigated', listener: (frame: Frame) => void): unknown;
  off(event: 'request', listener: (request: PlaywrightRequest) => void): unknown;
  off(event: 'framenavigated', listener: (frame: Frame) => void): unknown;
}

/** The part of Playwright's context that is used. */
interface PlaywrightContext {
  pages(): PlaywrightPage[];
  newPage(): Promise<PlaywrightPage>;
  newCDPSession(page: PlaywrightPage): Promise<ChromiumSession>;
}

/** Methods whose answers have nothing of interest. */
type SimpleMethod = 'Page.stopLoading' | 'Page.navigate' | 'Runtime.terminateExecution';

/** The outcome of an evaluation. */
interface Evaluated {
  readonly result: { readonly value?: unknown };
}

/** The part of Playwright's session of Chromium's protocol that is used. */
interface ChromiumSession {
  send(method: SimpleMethod, params?: object): Promise<unknown>;
  send(method: 'Runtime.evaluate', params: object): Promise<Evaluated>;
  send(method: 'Page.getNavigationHistory'): Promise<{ currentIndex: number; entries: { url: string }[] }>;
}

type Found = PlaywrightPage | PlaywrightContext;
type Finder = (proxy: BrowserProxy) => Found | Promise<Found>;

/** The place where a page comes from. */
export type PageSource = Found | Finder;

/** The longest wait for an answer of a page at rest, on a busy machine, too. One that computes does not answer. */
const REST_MS = 2_000;

/** How often a page is asked that is about to show another document. */
const MOST_TRIES = 5;

/** The page that Chromium shows in place of one that cannot be reached. */
const ERROR_PAGE = 'chrome-error:';

/**
 * Sessions of Chromium's protocol by their pages, which have nothing of the kind elsewhere. One is there before a page
 * computes: a later one has no answer from a script that never ends.
 */
const sessions = new WeakMap<PlaywrightPage, Promise<ChromiumSession | undefined>>();

/** The kind of a value: a page, a context, a browser, a function that gives a page, or nothing of these. */
export function kindOfSource(value: unknown): 'page' | 'context' | 'browser' | 'function' | undefined {
  if (typeof value === 'function') return 'function';
  if (typeof value !== 'object' || value === null) return undefined;
  if (typeof (value as PlaywrightPage).goto === 'function') return 'page';
  if (typeof (value as PlaywrightContext).newPage !== 'function') return undefined;
  return typeof (value as { contexts?: unknown }).contexts === 'function' ? 'browser' : 'context';
}

export class Page {
  readonly #source: PageSource;
  readonly #proxy: () => Promise<BrowserProxy>;
  readonly #door: Door;
  #found: Found | undefined;
  #opening: Promise<PlaywrightPage> | undefined;
  /** The tasks under way by their numbers. */
  readonly #works = new Map<number, Work>();

  /** The page of a kit, which tells it of tasks. The kit keeps it: one of a kit that nobody holds may be collected. */
  constructor(source: PageSource, door: Door, proxy: () => Promise<BrowserProxy>) {
    this.#source = source;
    this.#door = door;
    this.#proxy = proxy;
    const page = new WeakRef(this);
    void door.call('page', [() => page.deref()?.serve()]);
  }

  /** Waits until the page is the host's again. */
  async atRest(): Promise<void> {
    await this.#door.answer('page.rest', []);
  }

  /** Does the tasks that there are, and gives up those for which nobody waits any more. */
  serve(): void {
    for (let task = this.#next(); task; task = this.#next()) void this.#do(task);
    for (const [number, work] of this.#works) if (!this.#isAwaited(number)) work.giveUp();
  }

  #next(): PageTask | null {
    return this.#door.ask<PageTask | null>('page.next');
  }

  #isAwaited(number: number): boolean {
    return this.#door.ask<boolean>('page.is_awaited', [number]);
  }

  async #do(task: PageTask): Promise<void> {
    const [number, kind, timeoutMs] = task;
    const work = new Work(kind, timeoutMs, () => this.#isAwaited(number));
    this.#works.set(number, work);
    const timer = setTimeout(() => work.giveUp(), timeoutMs);
    let answer: PageAnswer;
    try {
      answer = await Promise.race([work.givenUp, this.#perform(work, task)]);
    } catch (error) {
      answer = failure(error);
    }
    // Playwright's own error of a call that was given up comes before the page is at rest.
    if (answer.kind === 'timeout' || work.isGivenUp) answer = await work.giveUp();
    clearTimeout(timer);
    work.end();
    this.#works.delete(number);
    try {
      this.#door.ask('page.answer', [number, answer]);
    } catch (error) {
      // It is no answer of Playwright's.
      this.#door.ask('page.answer', [number, failure(error)]);
    }
  }

  async #perform(work: Work, [, kind, , task]: PageTask): Promise<PageAnswer> {
    const page = await this.#page();
    work.begin(page, await sessionOf(page), task.url);
    const { selector } = task;
    switch (kind) {
      case 'navigate': {
        const response = await arrived(page, task.url as string, { waitUntil: task.waitUntil, ...work.bounds() });
        return { kind: 'arrived', url: page.url(), title: await titleOf(page, work.session), status: response?.status() ?? 0 };
      }
      case 'screenshot': {
        const options = { ...work.bounds(), type: 'png' };
        const bytes = await (selector === null
          ? page.screenshot({ ...options, fullPage: task.fullPage })
          : first(page, selector).screenshot(options));
        return { kind: 'bytes', bytes };
      }
      case 'click': {
        await first(page, selector).click(work.bounds());
        return { kind: 'nothing' };
      }
      case 'type': {
        const element = first(page, selector);
        if (task.clearFirst) {
          await element.fill(task.text as string, work.bounds());
        } else {
          await element.evaluate(asFunction(TO_END), undefined, work.bounds());
          await element.pressSequentially(task.text as string, work.bounds());
        }
        return { kind: 'nothing' };
      }
      case 'read': {
        const code = reading(task.property as string, task.mostUnits as number);
        const text = await first(page, selector).evaluate(asFunction(code), undefined, work.bounds());
        return typeof text === 'string' ? { kind: 'text', text } : { kind: 'tooLarge' };
      }
      case 'evaluate':
        return { kind: 'text', text: await evaluated(page, work.session, task.expression as string) };
      case 'halt':
        return { ...(await stop(page, work.session, NOBODY)), kind: 'arrived', title: '', status: 0 };
      default:
        await page.close();
        return { kind: 'nothing' };
    }
  }

  /**
   * The page: that of the host, of a context the newest one. If there is none any more, a function is called again, and
   * a context opens one. The context of `browser.newPage()` does not: its page cannot be followed by another one with the
   * same options.
   */
  #page(): Promise<PlaywrightPage> {
    // A task that is given up leaves this to the next one.
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<PlaywrightPage> {
    const found = (this.#found ??= await this.#find());
    if (!('goto' in found)) {
      const open = found.pages().filter((page) => !page.isClosed());
      return open.at(-1) ?? (await found.newPage());
    }
    if (!found.isClosed()) return found;
    this.#found = undefined;
    if (typeof this.#source === 'function') return this.#open();
    this.#found = await found.context().newPage();
    return this.#found;
  }

  async #find(): Promise<Found> {
    const source = this.#source;
    if (typeof source !== 'function') return source;
    const found = await opened(source, await this.#proxy());
    const kind = kindOfSource(found);
    if (kind === 'page' || kind === 'context') return found;
    throw new TypeError('the function of the option browser must give a page or a context of Playwright');
  }
}

/** The page of the host's function. Its error is the host's affair, to whom it goes as a warning: it may have paths. */
async function opened(source: Finder, proxy: BrowserProxy): Promise<Found> {
  try {
    return await source(proxy);
  } catch (cause) {
    const failed = 'the function of the option browser failed';
    emitWarning(new Error(cause instanceof Error ? `${failed}: ${cause.message}` : failed, { cause }));
    throw new TypeError(failed);
  }
}

/** A task under way. */
class Work {
  readonly #kind: PageTask[1];
  readonly #deadline: number;
  readonly #isAwaited: () => boolean;
  readonly #abort = new AbortController();
  /** Settles when the task is given up. */
  readonly givenUp: Promise<PageAnswer>;
  readonly #settle: (answer: PageAnswer) => void;
  #rest: Promise<PageAnswer> | undefined;
  #page: PlaywrightPage | undefined;
  #loading: Loading | undefined;
  session: ChromiumSession | undefined;

  constructor(kind: PageTask[1], timeoutMs: number, isAwaited: () => boolean) {
    let settle!: (answer: PageAnswer) => void;
    this.givenUp = new Promise((resolve) => {
      settle = resolve;
    });
    this.#kind = kind;
    this.#deadline = performance.now() + timeoutMs;
    this.#isAwaited = isAwaited;
    this.#settle = settle;
  }

  get isGivenUp(): boolean {
    return this.#rest !== undefined;
  }

  /** Notes the page, on which nothing begins for a run that has ended. */
  begin(page: PlaywrightPage, session: ChromiumSession | undefined, url?: string): void {
    this.#check();
    this.#page = page;
    this.session = session;
    if (this.#kind !== 'halt' && this.#kind !== 'close') this.#loading = new Loading(page, url);
  }

  /** It is over. */
  end(): void {
    this.#loading?.end();
  }

  /**
   * The options that end a call of Playwright: at the end of the command's time, and at once when it is given up. Playwright
   * would click or type later otherwise, in the page of the next run or of the host.
   */
  bounds(): { timeout: number; signal: AbortSignal } {
    this.#check();
    // Playwright takes 0 for no limit.
    return { timeout: Math.max(1, this.#deadline - performance.now()), signal: this.#abort.signal };
  }

  #check(): void {
    if (this.isGivenUp || !this.#isAwaited()) throw new TimeIsOver();
  }

  /**
   * Gives it up, and brings the page to rest. The orders to end a call and to stop a navigation are sent at once: before the
   * host hears of the end of the run, and may navigate itself.
   */
  giveUp(): Promise<PageAnswer> {
    if (this.#rest === undefined) {
      this.#abort.abort();
      this.#rest = this.#toRest().catch(() => ({ kind: 'timeout' }));
      void this.#rest.then(this.#settle);
    }
    return this.#rest;
  }

  async #toRest(): Promise<PageAnswer> {
    const { session } = this;
    const page = this.#page;
    if (page === undefined || session === undefined || this.#kind === 'halt' || this.#kind === 'close') return { kind: 'timeout' };
    if (this.#kind !== 'navigate' && this.#loading?.isPending) {
      // A document that never arrives is no answer to what was asked for.
      await stop(page, session, NOBODY);
      return { kind: 'timeout' };
    }
    // While code waits for its page, a navigation is the page's own.
    const others = new Navigations(page, (request) => !this.#isAwaited() && !this.#loading?.isOwn(request));
    try {
      if (this.#kind === 'navigate') return await stop(page, session, others);
      await answers(page, session, others);
      return { kind: 'timeout' };
    } catch (error) {
      // The page is judged before code sees it.
      if (error instanceof IsElsewhere && this.#kind === 'navigate') return { kind: 'nothing' };
      throw error;
    } finally {
      others.end();
    }
  }
}

/** Navigations of a page that others begin. */
interface Others {
  /** The outcome of `work`, or a rejection once somebody navigates. */
  unless<T>(work: Promise<T>): Promise<T>;
  end(): void;
}

const NOBODY: Others = { unless: (work) => work, end: () => {} };

class Navigations implements Others {
  readonly #page: PlaywrightPage;
  readonly #begun: Promise<never>;
  readonly #listener: (request: PlaywrightRequest) => void;

  constructor(page: PlaywrightPage, isOther: (request: PlaywrightRequest) => boolean) {
    let reject!: (error: Error) => void;
    this.#begun = new Promise((_, rejected) => {
      reject = rejected;
    });
    this.#begun.catch(() => {});
    this.#listener = (request) => {
      // A request with a referrer is that of a page, such as one that another page sends elsewhere.
      if (isOfPage(request) && isOther(request) && request.headers()['referer'] === undefined) reject(new IsElsewhere());
    };
    this.#page = page;
    page.on('request', this.#listener);
  }

  unless<T>(work: Promise<T>): Promise<T> {
    return Promise.race([this.#begun, work]);
  }

  end(): void {
    this.#page.off('request', this.#listener);
  }
}

/** The navigations of a page itself, as long as a task acts on it. */
class Loading {
  readonly #page: PlaywrightPage;
  readonly #onRequest: (request: PlaywrightRequest) => void;
  readonly #onArrival: (frame: Frame) => void;
  #request: PlaywrightRequest | undefined;
  /** That of the task itself. */
  #own: PlaywrightRequest | undefined;

  /** `url`: the place to which the task goes. Its request may be told of late, when the task is given up. */
  constructor(page: PlaywrightPage, url?: string) {
    this.#page = page;
    const place = url?.split('#', 1)[0];
    this.#onRequest = (request) => {
      if (!isOfPage(request)) return;
      this.#request = request;
      if (request.url() === place) this.#own ??= request;
    };
    this.#onArrival = (frame) => {
      if (frame === page.mainFrame()) this.#request = undefined;
    };
    page.on('request', this.#onRequest);
    page.on('framenavigated', this.#onArrival);
  }

  /** Whether one has begun whose document is not there. */
  get isPending(): boolean {
    return this.#request !== undefined && this.#request.failure() === null;
  }

  isOwn(request: PlaywrightRequest): boolean {
    return request === this.#own;
  }

  end(): void {
    this.#page.off('request', this.#onRequest);
    this.#page.off('framenavigated', this.#onArrival);
  }
}

/** Whether a request begins a navigation of a page itself. A redirect goes on with one. */
function isOfPage(request: PlaywrightRequest): boolean {
  try {
    return request.isNavigationRequest() && request.redirectedFrom() === null && request.frame().parentFrame() === null;
  } catch {
    // The frame is gone.
    return false;
  }
}

/** The session of a page; none elsewhere than in Chromium. */
function sessionOf(page: PlaywrightPage): Promise<ChromiumSession | undefined> {
  let session = sessions.get(page);
  if (session === undefined) {
    session = page
      .context()
      .newCDPSession(page)
      .catch(() => undefined);
    sessions.set(page, session);
  }
  return session;
}

/**
 * Stops what a page loads, and says where it is. Playwright itself has no way to stop a navigation, and Chromium lets
 * nobody evaluate while one begins; so this works in Chromium alone. Elsewhere it fails, and the kit leaves the page.
 */
async function stop(page: PlaywrightPage, session: ChromiumSession | undefined, others: Others): Promise<PageAnswer> {
  if (session === undefined) throw new Error('the browser cannot stop a page');
  for (let tries = 0; ; tries += 1) {
    const failed = await others.unless(within(REST_MS, session.send('Page.stopLoading'))).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failed instanceof IsElsewhere || failed instanceof TimeIsOver || (failed !== undefined && tries === MOST_TRIES)) throw failed;
    // A document that is about to be shown is there once the page answers. Chromium stops none at that moment.
    await answers(page, session, others);
    if (failed === undefined) break;
  }
  const { currentIndex, entries } = await others.unless(within(REST_MS, session.send('Page.getNavigationHistory')));
  const url = entries[currentIndex]?.url ?? '';
  if (page.url() !== url && !page.url().startsWith(ERROR_PAGE)) {
    // Playwright hears of a document a moment later, and would take it for one that interrupts the next navigation.
    const arrives = page.waitForURL((now) => now.href === url, { waitUntil: 'commit', timeout: REST_MS });
    await others.unless(arrives.catch(() => {}));
  }
  return { kind: 'stopped', url };
}

/**
 * Has the page answer. A script that never ends is ended. Where that does not help, since scripts begin again and again, or
 * one began before its page could be told anything, the page is left for one of another process.
 */
async function answers(page: PlaywrightPage, session: ChromiumSession, others: Others): Promise<void> {
  /** Whether there is an answer in time. An error is one, such as that of a document that another one follows. */
  const sent = async (method: SimpleMethod | 'Runtime.evaluate', params: object = {}, timeoutMs = REST_MS, note?: (error: unknown) => never): Promise<boolean> => {
    try {
      await others.unless(within(timeoutMs, session.send(method as SimpleMethod, params)).catch(note));
    } catch (error) {
      if (error instanceof IsElsewhere) throw error;
      return !(error instanceof TimeIsOver);
    }
    return true;
  };
  const zero = { expression: '0' };
  /** Whether the page itself answers in time. Chromium gives an error while documents follow each other. */
  const isHeard = async (): Promise<boolean> => {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      let isError = false;
      const note = (error: unknown): never => {
        isError = !(error instanceof TimeIsOver);
        throw error;
      };
      const asked = await sent('Runtime.evaluate', zero, REST_MS, note);
      if (!isError) return asked;
    }
    return false;
  };
  if (await isHeard()) return;
  // While a document is awaited, Chromium passes nothing on to the page. One that computes lets none arrive.
  void sent('Page.stopLoading').catch(() => {});
  if (await sent('Runtime.evaluate', zero, REST_MS / 2)) return;
  void sent('Page.stopLoading').catch(() => {});
  const isTerminated = await sent('Runtime.terminateExecution');
  // The next script may begin in a moment.
  const later = { expression: 'new Promise((done) => setTimeout(done, 50))', awaitPromise: true };
  if (isTerminated && (await sent('Runtime.evaluate', later))) return;
  await sent('Page.navigate', { url: 'data:,' });
  // Before that is there, the next one would be the old process's.
  await sent('Runtime.evaluate', zero);
  await sent('Page.navigate', { url: 'about:blank' });
  await others.unless(page.waitForURL('about:blank', { waitUntil: 'commit', timeout: REST_MS }).catch(() => {}));
}

function first(page: PlaywrightPage, selector: string | null | undefined): Locator {
  return page.locator(selector as string).first();
}

/**
 * Goes to a URL. Chromium shows a page of its own for one that cannot be reached, a moment after it has said so: the page is
 * given on once that is there, as it would interrupt the next navigation.
 */
async function arrived(page: PlaywrightPage, url: string, options: object): Promise<{ status(): number } | null> {
  const isMain = (frame: Frame): boolean => frame === page.mainFrame();
  let isShown = false;
  const note = (frame: Frame): void => {
    isShown ||= isMain(frame);
  };
  page.on('framenavigated', note);
  try {
    return await page.goto(url, options);
  } catch (error) {
    const { message } = error as Error;
    const isToShow = typeof message === 'string' && message.includes('net::ERR_') && !message.includes('net::ERR_ABORTED');
    if (isToShow && !isShown) {
      // Where there is none, the page is as it was.
      await page.waitForEvent('framenavigated', { predicate: isMain, timeout: REST_MS }).catch(() => {});
    }
    throw error;
  } finally {
    page.off('framenavigated', note);
  }
}

/**
 * The text of an expression that gives one or an object that is awaited. In Chromium no function of the page's is called on
 * the way, as Playwright's own would be.
 */
async function evaluated(page: PlaywrightPage, session: ChromiumSession | undefined, expression: string): Promise<string> {
  const text =
    session === undefined
      ? await page.evaluate(expression)
      : (await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true })).result.value;
  return typeof text === 'string' ? text : '';
}

/** A function with that text, which Playwright takes to the page. */
function asFunction(text: string): unknown {
  return Object.assign(() => {}, { toString: () => text });
}

/** The title of a page. One that has gone on meanwhile has none. */
function titleOf(page: PlaywrightPage, session: ChromiumSession | undefined): Promise<string> {
  return evaluated(page, session, TITLE).catch(() => '');
}

// These texts run in the page, which may have changed all functions: syntax alone bounds what leaves it.

/** The title of the page; none if it is longer than any title. */
const TITLE = `(() => {
  try {
    const text = document.title;
    return typeof text === 'string' && text.length <= 1048576 ? text : '';
  } catch {
    return '';
  }
})()`;

/** Moves the caret of an element to its end. Some kinds of inputs have no selection. */
const TO_END = `(element) => {
  try {
    element.focus?.();
    const end = typeof element.value === 'string' ? element.value.length : 0;
    element.setSelectionRange?.(end, end);
  } catch {}
}`;

/** Reads a property of an element as a text, or nothing if it has too many units. */
function reading(property: string, mostUnits: number): string {
  return `(element) => {
    try {
      const text = element.${property} ?? element.textContent ?? '';
      return typeof text !== 'string' ? '' : text.length > ${mostUnits} ? null : text;
    } catch {
      return '';
    }
  }`;
}

class TimeIsOver extends Error {}

/** Somebody else navigates. */
class IsElsewhere extends Error {}

/** The outcome of `work`, or a rejection when the time is over. */
function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TimeIsOver()), timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function failure(error: unknown): PageAnswer {
  if (error instanceof TimeIsOver) return { kind: 'timeout' };
  try {
    const { name, message } = error as Error;
    return name === 'TimeoutError' ? { kind: 'timeout' } : { kind: 'failed', text: String(message).slice(0, 2_000) };
  } catch {
    return { kind: 'failed', text: 'the browser failed' };
  }
}

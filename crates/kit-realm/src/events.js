// Events and aborts, as the DOM standard has them without a tree, and DOMException of Web IDL. In: listeners. Out:
// `Event, EventTarget, AbortController, AbortSignal, DOMException`. What a listener throws is logged.

const CODES = {
  __proto__: null,
  IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
  NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10,
  InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15,
  TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21,
  QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25,
};
const CODE_NAMES = [
  'INDEX_SIZE_ERR', 'DOMSTRING_SIZE_ERR', 'HIERARCHY_REQUEST_ERR', 'WRONG_DOCUMENT_ERR', 'INVALID_CHARACTER_ERR',
  'NO_DATA_ALLOWED_ERR', 'NO_MODIFICATION_ALLOWED_ERR', 'NOT_FOUND_ERR', 'NOT_SUPPORTED_ERR', 'INUSE_ATTRIBUTE_ERR',
  'INVALID_STATE_ERR', 'SYNTAX_ERR', 'INVALID_MODIFICATION_ERR', 'NAMESPACE_ERR', 'INVALID_ACCESS_ERR',
  'VALIDATION_ERR', 'TYPE_MISMATCH_ERR', 'SECURITY_ERR', 'NETWORK_ERR', 'ABORT_ERR', 'URL_MISMATCH_ERR',
  'QUOTA_EXCEEDED_ERR', 'TIMEOUT_ERR', 'INVALID_NODE_TYPE_ERR', 'DATA_CLONE_ERR',
];

class DOMException extends Error {
  #name;
  #message;

  constructor(message = '', name = 'Error') {
    super();
    this.#message = textOf(message);
    this.#name = textOf(name);
    // The text of an error that nobody caught is made without calling a getter.
    defineProperty(this, 'message', { __proto__: null, value: this.#message, configurable: true });
    defineProperty(this, 'name', { __proto__: null, value: this.#name, configurable: true });
  }

  get name() {
    return this.#name;
  }

  get message() {
    return this.#message;
  }

  get code() {
    return CODES[this.#name] ?? 0;
  }
}

const constant = (object, name, value) => {
  defineProperty(object, name, { __proto__: null, value, enumerable: true });
};

for (let at = 0; at < CODE_NAMES.length; at += 1) {
  constant(DOMException, CODE_NAMES[at], at + 1);
  constant(DOMException.prototype, CODE_NAMES[at], at + 1);
}

const PHASES = ['NONE', 'CAPTURING_PHASE', 'AT_TARGET', 'BUBBLING_PHASE'];
const AT_TARGET = 2;

const dictionary = (options, name) => {
  if (options === undefined || options === null) return { __proto__: null };
  if (!isObject(options)) throw new TypeError(join('', name, ' takes its options as an object'));
  return options;
};

class Event {
  #type;
  #bubbles;
  #cancelable;
  #composed;
  #timeStamp = now();
  #target = null;
  #current = null;
  #phase = 0;
  #isDispatched = false;
  #isStopped = false;
  #isStoppedAtOnce = false;
  #isCanceled = false;
  #isPassive = false;
  #isTrusted = false;

  constructor(type, options = undefined) {
    if (arguments.length === 0) throw new TypeError('Event takes a type');
    const { bubbles, cancelable, composed } = dictionary(options, 'Event');
    this.#type = textOf(type);
    this.#bubbles = !!bubbles;
    this.#cancelable = !!cancelable;
    this.#composed = !!composed;
  }

  get type() {
    return this.#type;
  }

  get target() {
    return this.#target;
  }

  get srcElement() {
    return this.#target;
  }

  get currentTarget() {
    return this.#current;
  }

  get eventPhase() {
    return this.#phase;
  }

  get bubbles() {
    return this.#bubbles;
  }

  get cancelable() {
    return this.#cancelable;
  }

  get composed() {
    return this.#composed;
  }

  get defaultPrevented() {
    return this.#isCanceled;
  }

  get returnValue() {
    return !this.#isCanceled;
  }

  set returnValue(value) {
    if (!value) this.preventDefault();
  }

  get cancelBubble() {
    return this.#isStopped;
  }

  set cancelBubble(value) {
    if (value) this.#isStopped = true;
  }

  get isTrusted() {
    return this.#isTrusted;
  }

  get timeStamp() {
    return this.#timeStamp;
  }

  composedPath() {
    return this.#current === null ? [] : [this.#current];
  }

  stopPropagation() {
    this.#isStopped = true;
  }

  stopImmediatePropagation() {
    this.#isStopped = true;
    this.#isStoppedAtOnce = true;
  }

  preventDefault() {
    if (this.#cancelable && !this.#isPassive) this.#isCanceled = true;
  }

  // Calls the listeners of a target, of which some may be removed meanwhile.
  static dispatch(event, target, listeners, isTrusted) {
    if (event.#isDispatched) throw new DOMException('the event is being dispatched', 'InvalidStateError');
    event.#isDispatched = true;
    event.#isTrusted = isTrusted;
    event.#target = target;
    if (!event.#isStopped) {
      event.#current = target;
      event.#phase = AT_TARGET;
      for (let at = 0; at < listeners.length && !event.#isStoppedAtOnce; at += 1) {
        const listener = listeners[at];
        if (listener.isRemoved) continue;
        if (listener.once) listener.remove();
        event.#isPassive = listener.passive;
        Event.#call(listener.callback, event, target);
        event.#isPassive = false;
      }
    }
    event.#phase = 0;
    event.#current = null;
    event.#isDispatched = false;
    event.#isStopped = false;
    event.#isStoppedAtOnce = false;
    return !event.#isCanceled;
  }

  static #call(callback, event, target) {
    try {
      if (typeof callback === 'function') return void apply(callback, target, [event]);
      const { handleEvent } = callback;
      if (typeof handleEvent !== 'function') throw new TypeError('the listener has no function handleEvent');
      return void apply(handleEvent, callback, [event]);
    } catch (error) {
      return host.uncaught(error);
    }
  }

  static isEvent(value) {
    return isObject(value) && #isDispatched in value;
  }
}

const { dispatch, isEvent } = Event;
delete Event.dispatch;
delete Event.isEvent;
for (let at = 0; at < PHASES.length; at += 1) {
  constant(Event, PHASES[at], at);
  constant(Event.prototype, PHASES[at], at);
}

class EventTarget {
  // By type, in the order of their additions.
  #listeners = new Map();

  addEventListener(type, callback, options = undefined) {
    if (arguments.length < 2) throw new TypeError('addEventListener takes a type and a listener');
    const of = textOf(type);
    const { capture, once, passive, signal } = isObject(options) ? options : { __proto__: null, capture: options };
    if (signal !== undefined && !isSignal(signal)) throw new TypeError('signal is an AbortSignal');
    if (callback === null || callback === undefined) return;
    if (!isObject(callback)) throw new TypeError('a listener is a function or an object');
    if (signal !== undefined && isAborted(signal)) return;
    const known = mapGet(this.#listeners, of) ?? newList();
    const isCapture = !!capture;
    for (let at = 0; at < known.length; at += 1) {
      if (known[at].callback === callback && known[at].capture === isCapture) return;
    }
    const remove = () => {
      listener.isRemoved = true;
      EventTarget.#drop(this, of, listener);
    };
    const listener = {
      __proto__: null, callback, capture: isCapture, once: !!once, passive: !!passive, isRemoved: false, remove,
    };
    known[known.length] = listener;
    mapSet(this.#listeners, of, known);
    if (signal !== undefined) onAbort(signal, remove);
  }

  removeEventListener(type, callback, options = undefined) {
    if (arguments.length < 2) throw new TypeError('removeEventListener takes a type and a listener');
    const isCapture = !!(isObject(options) ? options.capture : options);
    const known = mapGet(this.#listeners, textOf(type)) ?? newList();
    for (let at = 0; at < known.length; at += 1) {
      if (known[at].callback === callback && known[at].capture === isCapture) return void known[at].remove();
    }
  }

  dispatchEvent(event) {
    if (!isEvent(event)) throw new TypeError('dispatchEvent takes an Event');
    return EventTarget.#dispatch(this, event, false);
  }

  static #drop(target, type, listener) {
    const known = mapGet(target.#listeners, type);
    const kept = newList();
    for (let at = 0; at < known.length; at += 1) {
      if (known[at] !== listener) kept[kept.length] = known[at];
    }
    mapSet(target.#listeners, type, kept);
  }

  static #dispatch(target, event, isTrusted) {
    const listeners = newList();
    const known = mapGet(target.#listeners, event.type) ?? listeners;
    for (let at = 0; at < known.length; at += 1) listeners[at] = known[at];
    return dispatch(event, target, listeners, isTrusted);
  }

  static dispatchTrusted(target, event) {
    EventTarget.#dispatch(target, event, true);
  }
}

const { dispatchTrusted } = EventTarget;
delete EventTarget.dispatchTrusted;

// What `new AbortSignal` lacks, and the makers of signals have.
const MAKING = {};

class AbortSignal extends EventTarget {
  #isAborted = false;
  #reason = undefined;
  // What the kit does on an abort, before the event.
  #algorithms = newList();
  // The signals that this one aborts, and those that abort this one.
  #dependents = newList();
  #sources = newList();
  #isDependent = false;
  #handler = null;

  constructor(making = undefined) {
    if (making !== MAKING) throw new TypeError('Illegal constructor');
    super();
  }

  get aborted() {
    return this.#isAborted;
  }

  get reason() {
    return this.#reason;
  }

  get onabort() {
    return this.#handler;
  }

  set onabort(handler) {
    if (this.#handler === null && isObject(handler)) {
      apply(addEventListener, this, ['abort', (event) => {
        if (typeof this.#handler === 'function') apply(this.#handler, this, [event]);
      }]);
    }
    this.#handler = isObject(handler) ? handler : null;
  }

  throwIfAborted() {
    if (this.#isAborted) throw this.#reason;
  }

  static abort(reason = undefined) {
    const signal = new AbortSignal(MAKING);
    signal.#isAborted = true;
    signal.#reason = abortReason(reason);
    return signal;
  }

  static timeout(milliseconds) {
    const ms = trunc(+milliseconds);
    if (!(ms >= 0 && isSafeInteger(ms))) throw new TypeError('AbortSignal.timeout takes a number of milliseconds');
    const signal = new AbortSignal(MAKING);
    const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    addTimer('signal', () => AbortSignal.#abort(signal, reason), ms, []);
    return signal;
  }

  static any(signals) {
    const sources = newList();
    for (const source of signals) {
      if (!isSignal(source)) throw new TypeError('AbortSignal.any takes AbortSignals');
      sources[sources.length] = source;
    }
    const signal = new AbortSignal(MAKING);
    signal.#isDependent = true;
    for (let at = 0; at < sources.length; at += 1) {
      if (!sources[at].#isAborted) continue;
      signal.#isAborted = true;
      signal.#reason = sources[at].#reason;
      return signal;
    }
    for (let at = 0; at < sources.length; at += 1) {
      const source = sources[at];
      if (!source.#isDependent) AbortSignal.#follow(signal, source);
      for (let index = 0; source.#isDependent && index < source.#sources.length; index += 1) {
        AbortSignal.#follow(signal, source.#sources[index]);
      }
    }
    return signal;
  }

  static #follow(signal, source) {
    for (let at = 0; at < signal.#sources.length; at += 1) {
      if (signal.#sources[at] === source) return;
    }
    signal.#sources[signal.#sources.length] = source;
    source.#dependents[source.#dependents.length] = signal;
  }

  static #abort(signal, given) {
    if (signal.#isAborted) return;
    const reason = abortReason(given);
    const aborted = newList();
    aborted[0] = signal;
    for (let at = 0; at < signal.#dependents.length; at += 1) {
      if (!signal.#dependents[at].#isAborted) aborted[aborted.length] = signal.#dependents[at];
    }
    // All of them are aborted before the first listener is called.
    for (let at = 0; at < aborted.length; at += 1) {
      aborted[at].#isAborted = true;
      aborted[at].#reason = reason;
    }
    for (let at = 0; at < aborted.length; at += 1) {
      const algorithms = aborted[at].#algorithms;
      aborted[at].#algorithms = newList();
      for (let index = 0; index < algorithms.length; index += 1) algorithms[index]();
      dispatchTrusted(aborted[at], new Event('abort'));
    }
  }

  static inner = {
    __proto__: null,
    abort: (signal, reason) => AbortSignal.#abort(signal, reason),
    isSignal: (value) => isObject(value) && #isAborted in value,
    isAborted: (signal) => signal.#isAborted,
    reasonOf: (signal) => signal.#reason,
    onAbort: (signal, algorithm) => {
      signal.#algorithms[signal.#algorithms.length] = algorithm;
    },
    offAbort: (signal, algorithm) => {
      const kept = newList();
      for (let at = 0; at < signal.#algorithms.length; at += 1) {
        if (signal.#algorithms[at] !== algorithm) kept[kept.length] = signal.#algorithms[at];
      }
      signal.#algorithms = kept;
    },
  };
}

const { addEventListener } = EventTarget.prototype;
const { abort: abortSignal, isSignal, isAborted, reasonOf, onAbort, offAbort } = AbortSignal.inner;
delete AbortSignal.inner;

const abortReason = (given) =>
  given === undefined ? new DOMException('This operation was aborted', 'AbortError') : given;

class AbortController {
  #signal = new AbortSignal(MAKING);

  get signal() {
    return this.#signal;
  }

  abort(reason = undefined) {
    abortSignal(this.#signal, reason);
  }
}

likeTheWeb(DOMException, 'DOMException');
likeTheWeb(Event, 'Event');
likeTheWeb(EventTarget, 'EventTarget');
likeTheWeb(AbortSignal, 'AbortSignal');
likeTheWeb(AbortController, 'AbortController');

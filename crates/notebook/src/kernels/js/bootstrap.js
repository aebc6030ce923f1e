// Names that cells see besides the language: `display` and `print`.
//
// In: values. Out: logs: `print` calls the console, and so does `display`, with a mark that the host knows. The console
// copies values, and shows as text what cannot be copied; no other function of a session can do that. An image that is
// none throws here, where its cell can see it; the host checks images again, since code may change what this one calls.
const { display, print } = ((console, mark) => {
  'use strict';
  const { log, debug } = console;
  const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  const imageType = /^image\/[A-Za-z0-9.+-]{1,64}$/;
  const { isView } = ArrayBuffer;
  const { keys } = Object;
  const isBytes = (value) => value instanceof ArrayBuffer || isView(value);
  const shown = (value) => (typeof value === 'string' ? `'${value.slice(0, 100)}'` : value === null ? 'null' : typeof value);
  // An object with other fields, or without data, is shown as JSON.
  const isImage = (value) => {
    if (value.type !== 'image') return false;
    let count = 0;
    for (const key of keys(value)) {
      if (key !== 'type' && key !== 'data' && key !== 'mimeType') return false;
      count += key === 'data';
    }
    return count > 0;
  };
  const check = ({ mimeType, data }, place) => {
    if (typeof mimeType !== 'string' || !imageType.test(mimeType)) {
      throw new TypeError(`${place}.mimeType must be a type of image such as 'image/png', got ${shown(mimeType)}`);
    }
    if (isBytes(data)) return;
    if (typeof data !== 'string') throw new TypeError(`${place}.data must be Base64 or bytes, got ${shown(data)}`);
    if (data === '' || !base64.test(data)) throw new TypeError(`${place}.data must be Base64: this text is none`);
  };
  return {
    display(...values) {
      for (let at = 0; at < values.length; at += 1) {
        const value = values[at];
        if (value === undefined) continue;
        if (typeof value === 'object' && value !== null && isImage(value)) check(value, `values[${at}]`);
        debug(mark, typeof value, value);
      }
    },
    print(...values) {
      log(...values);
    },
  };
})(console, MARK);
null

// Randomness. In: the native `random(n)`, which gives so many bytes of the host's. Out: `crypto` with the two functions
// of Web Crypto that make random values.

const MOST_RANDOM_BYTES = 65_536;
const INTEGER_ARRAYS = new Set([
  'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array',
  'BigInt64Array', 'BigUint64Array',
]);

class Crypto {
  getRandomValues(array) {
    if (!isObject(array) || !isView(array) || !setHas(INTEGER_ARRAYS, viewKind(array))) {
      throw new DOMException('getRandomValues takes an array of integers', 'TypeMismatchError');
    }
    const bytes = bytesOf(array);
    if (bytes.length > MOST_RANDOM_BYTES) {
      throw new DOMException(join('getRandomValues gives at most ', MOST_RANDOM_BYTES, ' bytes'), 'QuotaExceededError');
    }
    if (bytes.length > 0) setBytes(bytes, natives.random(bytes.length));
    return array;
  }

  randomUUID() {
    const bytes = natives.random(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = bytesToHex(bytes);
    const first = join('', slice(hex, 0, 8), '-', slice(hex, 8, 12), '-', slice(hex, 12, 16));
    return join('', first, '-', slice(hex, 16, 20), '-', slice(hex, 20));
  }
}
const crypto = new Crypto();
defineProperty(Crypto.prototype, 'constructor', {
  __proto__: null,
  value: class Crypto {
    constructor() {
      throw new TypeError('Illegal constructor');
    }
  },
  writable: true,
  configurable: true,
});
likeTheWeb(Crypto, 'Crypto');

// Base64, as HTML has it. In: the natives `atob` and `btoa`, which take well-formed texts. Out: the same for any value,
// with errors of the web.

const converted = (convert, name, args) => {
  if (args.length === 0) throw new TypeError(join('', name, ' takes a text'));
  // A lone surrogate is no character of either side, and neither is the one that takes its place.
  const text = wellFormed(textOf(args[0]));
  try {
    return convert(text);
  } catch (error) {
    if (error.name !== 'InvalidCharacterError') throw error;
    throw new DOMException(error.message, 'InvalidCharacterError');
  }
};

const { atob, btoa } = {
  atob(data) {
    return converted(natives.atob, 'atob', arguments);
  },
  btoa(data) {
    return converted(natives.btoa, 'btoa', arguments);
  },
};

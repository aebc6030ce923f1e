// The place of a misuse.
//
// In: an act of a notebook. Out: its value; an error of misuse with its `path`.

/** The names of all options, and of all arguments, in the place of a value that cannot cross. */
const ALL = /^(?:options|arguments)(?:\[\d+\])?(?:\.|(?=:))/;

/** The value of `act()`. An error of misuse has its `path`, with which its message begins. */
export function withPath<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      const rest = error.message.replace(ALL, '');
      error.message = rest.startsWith(':') ? (error.message.startsWith('options') ? 'options' : 'args') + rest : rest;
      Object.assign(error, { path: /^[^\s:]+/.exec(error.message)?.[0] });
    }
    throw error;
  }
}

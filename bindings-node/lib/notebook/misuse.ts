// The place of a misuse.
//
// In: an act of a notebook. Out: its value; an error of misuse with its `path`.

/** The value of `act()`. An error of misuse has its `path`, with which its message begins. */
export function withPath<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      Object.assign(error, { path: /^[^\s:]+/.exec(error.message)?.[0] });
    }
    throw error;
  }
}

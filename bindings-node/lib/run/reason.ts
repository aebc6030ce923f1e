// The reason for which a caller ends a run.
//
// In: any value. Out: its text.

// The core cuts longer reasons, so more text is not copied.
const REASON_UNITS = 20_000;

/** Any reason as text; the type of one that throws when it is converted. */
export function reasonText(reason: unknown): string {
  try {
    return String(reason).slice(0, REASON_UNITS);
  } catch {
    return `a reason of type ${typeof reason}`;
  }
}

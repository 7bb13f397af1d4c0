// Betas of the Messages dialect that let a model read or write more than it does without them. They come in a header,
// and so beside what a body says.

/** In tokens; 0: not named. */
export interface BetaCeilings {
  readonly context: number;
  readonly output: number;
}

/**
 * `context-1m-2025-08-07`, `output-128k-2025-02-19`, `output-300k-2026-03-24`: the greatest of each, or null where none
 * is named, as nearly always.
 */
export function readBetaCeilings(headers: readonly string[]): BetaCeilings | null {
  let context = 0;
  let output = 0;
  for (const header of headers) {
    for (const part of header.toLowerCase().split(',')) {
      const beta = part.trim();
      if (beta.startsWith('context-')) context = Math.max(context, readSize(beta.slice('context-'.length)));
      else if (beta.startsWith('output-')) output = Math.max(output, readSize(beta.slice('output-'.length)));
    }
  }
  return context === 0 && output === 0 ? null : { context, output };
}

const UNITS: Readonly<Record<string, number>> = { k: 1_000, m: 1_000_000 };

/** `1m-...` is a million; 0 for what is no size, as in `context-management-2025-06-27`. */
function readSize(text: string): number {
  const [size = ''] = text.split('-', 1);
  const count = Number(size.slice(0, -1));
  return Number.isSafeInteger(count) ? count * (UNITS[size.slice(-1)] ?? 0) : 0;
}

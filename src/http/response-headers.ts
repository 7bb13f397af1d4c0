// The text of response headers. uWebSockets.js writes them unchecked, so this file prevents response splitting (DESIGN
// 3).

/**
 * The first header's value with the other header lines behind it. `lines`: the lines so far; null: this is the first.
 */
export function withHeader(lines: string | null, name: string, value: string): string {
  return lines === null ? value : lines + lineStart(name) + value;
}

/** What stands between two values, by the second one's name: there are few names in all responses. Bounded. */
const lineStarts = new Map<string, string>();
const LINE_STARTS_MAX = 1_000;

function lineStart(name: string): string {
  const known = lineStarts.get(name);
  if (known !== undefined) return known;
  const start = `\r\n${name}: `;
  if (lineStarts.size < LINE_STARTS_MAX) lineStarts.set(name, start);
  return start;
}

/** Whether a value contains nothing that would end its line. */
export function mayStandInHeader(value: string): boolean {
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code === CR || code === LF || code === 0) return false;
  }
  return true;
}

const CR = 0x0d;
const LF = 0x0a;

export interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  /** The body is not sent, and would have this length; null: nothing is said of it. */
  readonly unsentBytes?: number | null;
}

/**
 * A whole response behind its status line, as the value of a `connection` header: the connection ends with it. What
 * writes that header adds the end of a line, which comes behind the body and is a part of it. `isHead`: without the
 * body.
 */
export function answerText(
  { headers, body }: Answer,
  isHead: boolean,
): { readonly text: string; readonly bodyBytes: number } {
  const bytes = Buffer.byteLength(body) + LINE_END.length;
  let lines = withHeader('close', 'content-length', String(bytes));
  for (let index = 0; index < headers.length; index += 2) {
    const value = headers[index + 1] as string;
    if (mayStandInHeader(value)) lines = withHeader(lines, headers[index] as string, value);
  }
  return isHead
    ? { text: lines + LINE_END, bodyBytes: 0 }
    : { text: lines + LINE_END + LINE_END + body, bodyBytes: bytes };
}

const LINE_END = '\r\n';

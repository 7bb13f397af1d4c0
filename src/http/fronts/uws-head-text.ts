// The text of response headers for uWebSockets.js, which writes them unchecked.

import { type HeaderList, mayStandInHeader } from '../response-headers.ts';

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

/**
 * A whole response behind its status line, as the value of a `connection` header: the connection ends with it. What
 * writes that header adds the end of a line, which comes behind the body and is a part of it. `isHead`: without the
 * body.
 */
export function answerText(headers: HeaderList, body: string, isHead: boolean): string {
  let lines = withHeader('close', 'content-length', String(Buffer.byteLength(body) + LINE_END.length));
  for (let index = 0; index < headers.length; index += 2) {
    const value = headers[index + 1] as string;
    if (mayStandInHeader(value)) lines = withHeader(lines, headers[index] as string, value);
  }
  return isHead ? lines + LINE_END : lines + LINE_END + LINE_END + body;
}

const LINE_END = '\r\n';

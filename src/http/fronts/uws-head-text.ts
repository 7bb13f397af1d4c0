// The text of response headers for uWebSockets.js, which writes them unchecked.

import { type HeaderList, mayStandInHeader } from '../response-headers.ts';

/**
 * Adds a header to `lines`, which is the value of the first header with the other header lines behind it. null: this is
 * the first header.
 */
export function withHeader(lines: string | null, name: string, value: string): string {
  return lines === null ? value : lines + lineStart(name) + value;
}

/** The text between two values, by the name of the second one. Responses have few names; the map is bounded. */
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
 * A whole response after its status line, written as the value of a `connection` header, since the connection ends with
 * it. uWebSockets.js adds the end of a line to a header's value; here it comes after the body and is counted as a part
 * of the body. `isHead`: without the body.
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

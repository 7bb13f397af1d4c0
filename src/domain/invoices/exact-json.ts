// Reads a file of one or several JSON values, such as the pages of an API that were saved one behind the other. Numbers
// keep their digits: only whole numbers of up to 15 digits, which a float holds exactly, become numbers; all others
// stay text.

import { parse as findFaults, type ParseError, printParseErrorCode } from 'jsonc-parser';

/** Where a file cannot be read; lines and columns count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  readonly problem: string;
}

export type JsonValues =
  | { readonly ok: true; readonly values: readonly unknown[] }
  | { readonly ok: false; readonly fault: JsonFault };

const DEPTH_MAX = 64;
const SPACE = /[\s,]/y;
const TEXT_OR_BRACKET = /["[\]{}]/g;
const END_OF_TEXT = /[^\\](?:\\\\)*"/g;
const WHOLE = /^-?\d{1,15}$/;

/** Values are separated by white space or commas. */
export function readJsonValues(text: string): JsonValues {
  const values: unknown[] = [];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  for (;;) {
    at = skipSpace(text, at);
    if (at === text.length) return { ok: true, values };
    const ended = endOfValue(text, at);
    if (typeof ended !== 'number') return { ok: false, fault: { ...placeOf(text, ended.at), problem: ended.problem } };
    const read = parse(text, at, ended);
    if (!read.ok) return read;
    values.push(read.value);
    at = ended;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    SPACE.lastIndex = at;
    if (!SPACE.test(text)) break;
    at++;
  }
  return at;
}

/** The index after the object or array that begins at `start`, or where and why it cannot be read. */
function endOfValue(text: string, start: number): number | { readonly at: number; readonly problem: string } {
  const first = text[start];
  if (first !== '{' && first !== '[') return { at: start, problem: 'expected { or [, which begin a page of an export' };
  let depth = 0;
  let at = start;
  for (;;) {
    TEXT_OR_BRACKET.lastIndex = at;
    const found = TEXT_OR_BRACKET.exec(text);
    if (found === null) return { at: text.length, problem: 'the file ends within a page: it is cut' };
    at = found.index;
    if (found[0] === '"') {
      // The search begins at the opening quote, so that an empty text, too, has a character before its closing quote.
      END_OF_TEXT.lastIndex = at;
      const end = END_OF_TEXT.exec(text);
      if (end === null) return { at, problem: 'a text has no end: the file is cut' };
      at = END_OF_TEXT.lastIndex;
      continue;
    }
    at++;
    if (found[0] === '{' || found[0] === '[') depth++;
    else depth--;
    if (depth > DEPTH_MAX) return { at: at - 1, problem: `nested deeper than ${DEPTH_MAX}: this is no export` };
    if (depth === 0) return at;
  }
}

function parse(
  text: string,
  start: number,
  end: number,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly fault: JsonFault } {
  const page = text.slice(start, end);
  try {
    return { ok: true, value: JSON.parse(page, keepDigits as (key: string, value: unknown) => unknown) };
  } catch {
    // JSON.parse does not say where the fault is.
    const faults: ParseError[] = [];
    findFaults(page, faults, { disallowComments: true });
    const [fault = { offset: 0, error: 1 as const }] = faults;
    const problem = `not JSON: ${printParseErrorCode(fault.error)}`;
    return { ok: false, fault: { ...placeOf(text, start + fault.offset), problem } };
  }
}

/** The third argument is JSON.parse's source text access, which TypeScript's library does not describe yet. */
function keepDigits(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  return typeof value === 'number' && source !== undefined && !WHOLE.test(source) ? source : value;
}

function placeOf(text: string, at: number): Pick<JsonFault, 'line' | 'column'> {
  const before = text.slice(0, at);
  const lastBreak = before.lastIndexOf('\n');
  return { line: before.split('\n').length, column: at - lastBreak };
}

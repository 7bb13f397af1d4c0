// Writes multipart forms for tests, as browsers do, and reads them in two ways: strictly by the standard, and as the
// most lenient server might.

export interface FormEntry {
  readonly name: string;
  /** Present for a file. */
  readonly filename?: string;
  readonly headers?: readonly string[];
  readonly value: Buffer | string;
}

export interface FormFrame {
  readonly preamble?: string;
  readonly epilogue?: string;
}

export function writeForm(boundary: string, entries: readonly FormEntry[], frame: FormFrame = {}): Buffer {
  const pieces: (Buffer | string)[] = frame.preamble === undefined ? [] : [`${frame.preamble}\r\n`];
  for (const { name, filename, headers, value } of entries) {
    const file = filename === undefined ? '' : `; filename="${filename}"`;
    const lines = [`Content-Disposition: form-data; name="${name}"${file}`, ...(headers ?? [])];
    pieces.push(`--${boundary}\r\n${lines.join('\r\n')}\r\n\r\n`, value, '\r\n');
  }
  pieces.push(`--${boundary}--${frame.epilogue === undefined ? '' : `\r\n${frame.epilogue}`}`);
  return Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)));
}

export interface ReadPart {
  readonly name: string;
  readonly value: string;
  /** The position of the value, in bytes. */
  readonly start: number;
}

/** Reads by the standard: splits at CRLF and the boundary. Works on latin1, so offsets are bytes. */
export function readFormNaively(body: Buffer, boundary: string): ReadPart[] {
  const text = `\r\n${body.toString('latin1')}`;
  const parts: ReadPart[] = [];
  const delimiter = `\r\n--${boundary}`;
  let at = text.indexOf(delimiter);
  for (;;) {
    const start = at + delimiter.length;
    if (text.startsWith('--', start)) return parts;
    const end = text.indexOf(delimiter, start);
    const headersEnd = text.indexOf('\r\n\r\n', start);
    const name = /name="([^"]*)"/.exec(text.slice(start, headersEnd))?.[1] ?? '';
    parts.push({ name, value: text.slice(headersEnd + 4, end), start: headersEnd + 2 });
    at = end;
  }
}

/**
 * Reads as the most lenient server would: any line end, padding after the boundary, folded headers, single quotes or
 * none, percent-decoded names.
 */
export function readFormLeniently(body: Buffer, boundary: string): { name: string; value: string }[] {
  const literal = boundary.replace(/[^0-9A-Za-z]/g, '\\$&');
  const pieces = body
    .toString('latin1')
    .split(new RegExp(`(?:^|\\r\\n|\\n|\\r)--${literal}(?:--)?[ \\t]*(?=\\r|\\n|$)`));
  return pieces.slice(1).flatMap((piece) => {
    const content = piece.replace(/^(?:\r\n|\n|\r)/, '');
    const blank = /\r\n\r\n|\n\n|\r\r/.exec(content);
    if (blank === null) return [];
    const headers = content.slice(0, blank.index);
    const names = [...headers.matchAll(/(?:^|[\s;])name\*?\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]*))/gi)].map(
      (match) => match[1] ?? match[2] ?? match[3] ?? '',
    );
    return names.map((name) => ({
      name: unescape(name).trim().replace(/\[.*$/, ''),
      value: content.slice(blank.index + blank[0].length),
    }));
  });
}

function unescape(name: string): string {
  return name
    .replace(/\\(.)/g, '$1')
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

// Reads HTTP/1.1 requests from raw bytes, strictly, for the fake upstream: the result has the exact bytes, including
// case and order of headers.

import type { Socket } from 'node:net';

const HEAD_BYTES_MAX = 1024 * 1024;
const BODY_BYTES_MAX = 256 * 1024 * 1024;

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  /** In their original case and order. */
  readonly headers: readonly (readonly [string, string])[];
  /** The value of the only field of that name, or null; throws when it is repeated. */
  header(name: string): string | null;
  readonly body: Buffer;
  /** The number of the upstream's connection that it came on, from 0. */
  readonly connection: number;
}

/** The bytes of one connection, read in the amounts that the reader needs. */
export class ByteSource {
  #pending: Buffer = Buffer.alloc(0);
  readonly #chunks: AsyncIterator<Buffer>;

  constructor(socket: Socket) {
    this.#chunks = (socket as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** Bytes up to and including `mark`, or null at a clean end before any byte. */
  async readThrough(mark: string, bytesMax: number): Promise<Buffer | null> {
    for (;;) {
      const at = this.#pending.indexOf(mark);
      if (at !== -1) return this.#take(at + mark.length);
      if (this.#pending.length > bytesMax) throw new Error(`no ${JSON.stringify(mark)} within ${bytesMax} bytes`);
      if (!(await this.#more())) {
        if (this.#pending.length === 0) return null;
        throw new Error('the connection ended inside a request');
      }
    }
  }

  async readExactly(length: number): Promise<Buffer> {
    if (length > BODY_BYTES_MAX) throw new Error(`a body of ${length} bytes`);
    const taken: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#pending.length === 0 && !(await this.#more())) throw new Error('the connection ended inside a body');
      const piece = this.#take(Math.min(missing, this.#pending.length));
      taken.push(piece);
      missing -= piece.length;
    }
    return Buffer.concat(taken, length);
  }

  #take(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next();
    if (next.done === true) return false;
    this.#pending = this.#pending.length === 0 ? next.value : Buffer.concat([this.#pending, next.value]);
    return true;
  }
}

/**
 * The next request of the connection; null when it ended cleanly between two. Throws on anything that is not HTTP/1.1.
 */
export async function readRequest(source: ByteSource, connection: number): Promise<ReceivedRequest | null> {
  const head = await source.readThrough('\r\n\r\n', HEAD_BYTES_MAX);
  if (head === null) return null;
  const [requestLine = '', ...lines] = head.toString('latin1').slice(0, -4).split('\r\n');
  const [method = '', path = '', version = ''] = requestLine.split(' ');
  if (version !== 'HTTP/1.1') throw new Error(`not a request line: ${JSON.stringify(requestLine)}`);
  const headers = lines.map(parseField);
  const header = (name: string): string | null => {
    const found = headers.filter(([field]) => field.toLowerCase() === name);
    if (found.length > 1) throw new Error(`the request repeats ${name}`);
    return found[0]?.[1] ?? null;
  };
  return { method, path, headers, header, body: await readBody(source, header), connection };
}

function parseField(line: string): readonly [string, string] {
  const match = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*$/.exec(line);
  if (match?.[1] === undefined || match[2] === undefined)
    throw new Error(`not a header field: ${JSON.stringify(line)}`);
  return [match[1], match[2]];
}

async function readBody(source: ByteSource, header: (name: string) => string | null): Promise<Buffer> {
  const coding = header('transfer-encoding');
  const length = header('content-length');
  if (coding === null) {
    if (length !== null && !/^\d+$/.test(length)) throw new Error(`content-length ${length}`);
    return source.readExactly(Number(length ?? 0));
  }
  if (coding !== 'chunked' || length !== null) throw new Error('ambiguous body length');
  const chunks: Buffer[] = [];
  for (;;) {
    const line = (await source.readThrough('\r\n', 1024))?.toString('latin1').trim() ?? '';
    if (!/^[0-9a-fA-F]+$/.test(line)) throw new Error(`chunk size ${JSON.stringify(line)}`);
    const size = Number.parseInt(line, 16);
    const data = await source.readExactly(size);
    if ((await source.readExactly(2)).toString('latin1') !== '\r\n') throw new Error('a chunk without its end');
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(data);
  }
}

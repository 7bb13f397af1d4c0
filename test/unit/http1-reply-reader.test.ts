// Replies in whatever pieces a socket brings them: every reply is read alike whole, byte by byte, cut in two anywhere
// and cut at random, up to its fault.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HEAD_BYTES_MAX } from '../../src/upstream/connection-limits.ts';
import { ChunkedBody } from '../../src/upstream/http1/chunked-body.ts';
import { ReplyReader } from '../../src/upstream/http1/reply-reader.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';

interface Seen {
  status: number | null;
  body: string;
  ended: boolean;
  reusable: boolean;
  fault: boolean;
}

/** As a connection does it: one buffer for all reads, full of the last one's bytes. */
const READ_BUFFER = Buffer.alloc(65_536, 'x');

function readAll(bytes: Buffer, plan: SplitPlan, closes: boolean): Seen {
  const reader = new ReplyReader();
  reader.begin();
  const kept: Buffer[] = [];
  const pieces = splitBytes(bytes, plan).flatMap((piece) => splitBytes(piece, { kind: 'whole' }));
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += READ_BUFFER.length) {
      const read = piece.subarray(at, at + READ_BUFFER.length);
      READ_BUFFER.fill('x');
      read.copy(READ_BUFFER);
      reader.read(READ_BUFFER, read.length);
      if (reader.body !== null) kept.push(Buffer.from(reader.body));
    }
  }
  if (closes) reader.endOfConnection();
  const body = Buffer.concat(kept).toString('latin1');
  return {
    status: reader.head?.status ?? null,
    body,
    ended: reader.ended,
    reusable: reader.reusable,
    fault: reader.fault !== null,
  };
}

interface Case {
  readonly name: string;
  readonly bytes: string;
  readonly closes?: boolean;
  readonly status: number | null;
  readonly body?: string;
  /** Default: complete, and the connection may be kept. */
  readonly end?: 'kept' | 'complete' | 'open' | 'fault';
}

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const LENGTH_5 = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n';
const LONG = 'x'.repeat(70_000);
const EXTENSION = 'e'.repeat(4_000);

const CASES: readonly Case[] = [
  { name: 'a length', bytes: `${LENGTH_5}hello`, status: 200, body: 'hello' },
  { name: 'a length, cut', bytes: `${LENGTH_5}hell`, closes: true, status: 200, body: 'hell', end: 'fault' },
  { name: 'a length, not all there yet', bytes: `${LENGTH_5}hell`, status: 200, body: 'hell', end: 'open' },
  { name: 'a length of 0', bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', status: 200 },
  { name: '204', bytes: 'HTTP/1.1 204 No Content\r\n\r\n', status: 204 },
  { name: '304 with a length', bytes: 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', status: 304 },
  { name: 'bytes after a length', bytes: `${LENGTH_5}hello!`, status: 200, body: 'hello', end: 'complete' },
  { name: 'a second reply', bytes: `${LENGTH_5}hello${LENGTH_5}world`, status: 200, body: 'hello', end: 'complete' },
  { name: 'a body after a 204', bytes: 'HTTP/1.1 204 No Content\r\n\r\nhello', status: 204, end: 'complete' },
  {
    name: 'close',
    bytes: 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok',
    status: 200,
    body: 'ok',
    end: 'complete',
  },
  {
    name: 'until the end of the connection',
    bytes: 'HTTP/1.1 200 OK\r\n\r\nhello',
    closes: true,
    status: 200,
    body: 'hello',
    end: 'complete',
  },
  {
    name: 'until the end, which has not come',
    bytes: 'HTTP/1.1 200 OK\r\n\r\nhello',
    status: 200,
    body: 'hello',
    end: 'open',
  },
  { name: 'until the end, with nothing', bytes: 'HTTP/1.1 200 OK\r\n\r\n', closes: true, status: 200, end: 'complete' },
  { name: 'a head and no end of it', bytes: 'HTTP/1.1 200 OK\r\nx: y\r\n', closes: true, status: null, end: 'fault' },
  { name: 'nothing', bytes: '', closes: true, status: null, end: 'fault' },
  {
    name: 'interim replies',
    bytes: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${LENGTH_5}hello`,
    status: 200,
    body: 'hello',
  },
  {
    name: 'an interim reply and nothing else',
    bytes: 'HTTP/1.1 102 Processing\r\n\r\n',
    closes: true,
    status: null,
    end: 'fault',
  },
  {
    name: 'interim replies without end',
    bytes: 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(33),
    status: null,
    end: 'fault',
  },
  {
    name: 'an upgrade',
    bytes: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    status: null,
    end: 'fault',
  },
  // These are faults without an end: nothing that follows could make a reply of them.
  { name: 'a banner of another protocol', bytes: 'SSH-2.0-x\r\n', status: null, end: 'fault' },
  { name: 'a greeting that ends in LF', bytes: '220 mail\n', status: null, end: 'fault' },
  { name: 'one byte of another protocol', bytes: '\x15', status: null, end: 'fault' },
  { name: 'HTTP/2', bytes: 'HTTP/2 200\r\n', status: null, end: 'fault' },
  { name: 'small letters', bytes: 'http/1.1', status: null, end: 'fault' },
  { name: 'an empty line first', bytes: '\r\n', status: null, end: 'fault' },
  { name: 'a banner behind an interim reply', bytes: 'HTTP/1.1 102 x\r\n\r\nSSH', status: null, end: 'fault' },
  { name: 'LF in a head', bytes: 'HTTP/1.1 200 OK\nx: y\n\n', status: null, end: 'fault' },
  { name: 'CR in a head', bytes: 'HTTP/1.1 200 OK\r\nx: y\rz', status: null, end: 'fault' },
  { name: 'NUL in a head', bytes: 'HTTP/1.1 200 OK\r\nx: \0', status: null, end: 'fault' },
  { name: 'the beginning of a head', bytes: 'HTTP/', status: null, end: 'open' },
  { name: 'a head up to its last byte', bytes: 'HTTP/1.1 200 OK\r\nx:\t\xe9\r\n\r', status: null, end: 'open' },
  {
    name: 'lines that end in LF',
    bytes: 'HTTP/1.1 200 OK\ncontent-length: 5\n\nhello',
    closes: true,
    status: null,
    end: 'fault',
  },

  { name: 'chunks', bytes: `${CHUNKED}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`, status: 200, body: 'hello world' },
  {
    name: 'chunks that hold line ends',
    bytes: `${CHUNKED}8\r\n\r\n0\r\n\r\n\n\r\n0\r\n\r\n`,
    status: 200,
    body: '\r\n0\r\n\r\n\n',
  },
  { name: 'no chunks', bytes: `${CHUNKED}0\r\n\r\n`, status: 200 },
  {
    name: 'sizes with leading zeros and in both cases',
    bytes: `${CHUNKED}0000a\r\n0123456789\r\nB\r\n0123456789a\r\n000\r\n\r\n`,
    status: 200,
    body: '01234567890123456789a',
  },
  { name: 'extensions', bytes: `${CHUNKED}5;a=b;c="d;e"\r\nhello\r\n0 \t;x\r\n\r\n`, status: 200, body: 'hello' },
  { name: 'trailers', bytes: `${CHUNKED}5\r\nhello\r\n0\r\nx-checksum: 1\r\ny: 2\r\n\r\n`, status: 200, body: 'hello' },
  {
    name: 'bytes after the last chunk',
    bytes: `${CHUNKED}5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n`,
    status: 200,
    body: 'hello',
    end: 'complete',
  },
  { name: 'a long extension', bytes: `${CHUNKED}5;${EXTENSION}\r\nhello\r\n0\r\n\r\n`, status: 200, body: 'hello' },
  { name: 'chunks, cut within one', bytes: `${CHUNKED}5\r\nhel`, closes: true, status: 200, body: 'hel', end: 'fault' },
  {
    name: 'chunks, cut between two',
    bytes: `${CHUNKED}5\r\nhello\r\n`,
    closes: true,
    status: 200,
    body: 'hello',
    end: 'fault',
  },
  {
    name: 'chunks, cut before the last line end',
    bytes: `${CHUNKED}5\r\nhello\r\n0\r\n`,
    closes: true,
    status: 200,
    body: 'hello',
    end: 'fault',
  },
  {
    name: 'a chunk longer than its size',
    bytes: `${CHUNKED}4\r\nhello\r\n0\r\n\r\n`,
    status: 200,
    body: 'hell',
    end: 'fault',
  },
  { name: 'a chunk without a size', bytes: `${CHUNKED}\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a chunk with only an extension', bytes: `${CHUNKED};a=b\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size with a sign', bytes: `${CHUNKED}+5\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size with a minus', bytes: `${CHUNKED}-5\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size with 0x', bytes: `${CHUNKED}0x5\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size with an underscore', bytes: `${CHUNKED}1_0\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size with a blank before it', bytes: `${CHUNKED} 5\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size with a blank behind it', bytes: `${CHUNKED}5 \r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size that ends in LF', bytes: `${CHUNKED}5\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size that ends in CR', bytes: `${CHUNKED}5\rhello\r\n`, status: 200, end: 'fault' },
  {
    name: 'a chunk that ends in LF',
    bytes: `${CHUNKED}5\r\nhello\n0\r\n\r\n`,
    status: 200,
    body: 'hello',
    end: 'fault',
  },
  {
    name: 'a chunk that ends in CR',
    bytes: `${CHUNKED}5\r\nhello\r0\r\n\r\n`,
    status: 200,
    body: 'hello',
    end: 'fault',
  },
  { name: 'LF in an extension', bytes: `${CHUNKED}5;a\nb\r\nhello\r\n`, status: 200, end: 'fault' },
  { name: 'a size beyond all measure', bytes: `${CHUNKED}fffffffffffffffff\r\n`, status: 200, end: 'fault' },
  { name: 'a size whose zeros never end', bytes: `${CHUNKED}${'0'.repeat(17)}`, status: 200, end: 'fault' },
  { name: 'an extension beyond all measure', bytes: `${CHUNKED}5;${EXTENSION}${EXTENSION}`, status: 200, end: 'fault' },
  {
    name: 'trailers beyond all measure',
    bytes: `${CHUNKED}0\r\n${`x: ${EXTENSION}\r\n`.repeat(5)}`,
    status: 200,
    end: 'fault',
  },
  { name: 'a bare LF in the trailers', bytes: `${CHUNKED}0\r\nx: 1\n\r\n`, status: 200, end: 'fault' },
  { name: 'a bare CR in the trailers', bytes: `${CHUNKED}0\r\nx: 1\ry\r\n\r\n`, status: 200, end: 'fault' },
  { name: 'a trailer without a name', bytes: `${CHUNKED}0\r\n: 1\r\n\r\n`, status: 200, end: 'fault' },
  { name: 'a trailer without a colon', bytes: `${CHUNKED}0\r\nx\r\n\r\n`, status: 200, end: 'fault' },
  { name: 'a trailer that begins with a blank', bytes: `${CHUNKED}0\r\n x: 1\r\n\r\n`, status: 200, end: 'fault' },

  { name: 'the longest head', bytes: `${headOf(HEAD_BYTES_MAX)}hello`, status: 200, body: 'hello' },
  { name: 'a head of one byte more', bytes: `${headOf(HEAD_BYTES_MAX + 1)}hello`, status: null, end: 'fault' },
  { name: 'a head without end', bytes: `HTTP/1.1 200 OK\r\nx: ${LONG}`, status: null, end: 'fault' },
  { name: 'no head at all', bytes: LONG, status: null, end: 'fault' },
  {
    name: 'a long body',
    bytes: `HTTP/1.1 200 OK\r\ncontent-length: ${LONG.length}\r\n\r\n${LONG}`,
    status: 200,
    body: LONG,
  },
  {
    name: 'a long chunk',
    bytes: `${CHUNKED}${LONG.length.toString(16)}\r\n${LONG}\r\n0\r\n\r\n`,
    status: 200,
    body: LONG,
  },
  {
    name: 'many chunks',
    bytes: `${CHUNKED}${'1\r\nx\r\n'.repeat(5_000)}0\r\n\r\n`,
    status: 200,
    body: 'x'.repeat(5_000),
  },
];

function headOf(bytes: number): string {
  const frame = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: \r\n\r\n';
  return frame.replace('x: ', `x: ${'y'.repeat(bytes - frame.length)}`);
}

describe('replies in pieces', () => {
  for (const { name, bytes, closes = false, status, body = '', end = 'kept' } of CASES) {
    const expected: Seen = {
      status,
      body,
      ended: end === 'kept' || end === 'complete',
      reusable: end === 'kept',
      fault: end === 'fault',
    };
    test(name, () => {
      const buffer = Buffer.from(bytes, 'latin1');
      for (const plan of plansFor(buffer))
        assert.deepEqual(readAll(buffer, plan, closes), expected, JSON.stringify(plan));
    });
  }

  test('a connection is read on for the next reply as if there had been none before', () => {
    const reader = new ReplyReader();
    const replies = [
      'HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na',
      `${CHUNKED}1\r\nb\r\n0\r\n\r\n`,
      'HTTP/1.1 204 x\r\n\r\n',
      `${CHUNKED}0\r\n\r\n`,
    ];
    for (const reply of [...replies, ...replies.reverse()]) {
      reader.begin();
      assert.deepEqual([reader.head, reader.ended, reader.interimHeads], [null, false, 0]);
      reader.read(Buffer.from(reply), reply.length);
      assert.ok(reader.reusable, reply);
    }
  });

  test(
    'chunks of one read are one piece of body, moved together in its memory; what follows them stays ' + 'where it is',
    () => {
      const chunks = new ChunkedBody();
      const read = Buffer.from('3\r\nabc\r\n3\r\ndef\r\n2\r\ngh\r\n0\r\n\r\nexcess');
      const { at, content } = chunks.read(read, 0, read.length);
      assert.equal(content?.toString(), 'abcdefgh');
      assert.equal(content?.buffer, read.buffer);
      assert.equal(read.subarray(at).toString(), 'excess');
    },
  );

  test('a read in the middle of a chunk begins with content', () => {
    const chunks = new ChunkedBody();
    chunks.read(Buffer.from('6\r\nab'), 0, 5);
    const read = Buffer.from('cdef\r\n1\r\ng\r\n');
    assert.equal(chunks.read(read, 0, read.length).content?.toString(), 'abcdefg'.slice(2));
  });
});

function plansFor(bytes: Buffer): SplitPlan[] {
  const random = [1, 2, 3].map((seed): SplitPlan => ({ kind: 'random', seed, bytesMax: 40 }));
  const everywhere =
    bytes.length > 400 ? [] : Array.from({ length: bytes.length }, (_, at): SplitPlan => ({ kind: 'two', at }));
  return [{ kind: 'whole' }, { kind: 'each_byte' }, ...random, ...everywhere];
}

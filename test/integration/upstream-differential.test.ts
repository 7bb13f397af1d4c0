// Our HTTP/1.1 client beside undici's: the same bytes from the same provider, cut alike. What both take is the same
// reply; where we refuse what undici takes, or the other way round, the reason stands here.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { Client, type Dispatcher } from 'undici';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';
import { type RawProvider, startRawProvider } from '../support/raw-provider.ts';
import { callTo, HeldClock, originAt } from '../support/upstream-calls.ts';

interface Verdict {
  status: number | null;
  /** Names in lower case; the values of one name together. */
  headers: Record<string, string>;
  body: string;
  end: 'end' | 'fault';
}

const SEED = Number(process.env.TEST_SEED ?? 20_261_120);
const RUNS = 150;

let raw: RawProvider;
/** What the provider answers to a request for `/<key>`. */
const replies = new Map<string, { bytes: Buffer; plan: SplitPlan }>();
let nextKey = 0;

before(async () => {
  raw = await startRawProvider((socket, request) => {
    const reply = replies.get(/^POST \/(\d+) /.exec(request)?.[1] ?? '');
    assert.ok(reply !== undefined, request);
    void (async () => {
      for (const piece of splitBytes(reply.bytes, reply.plan)) {
        if (socket.destroyed) return;
        socket.write(piece);
        if (reply.plan.kind !== 'whole') await new Promise((resolve) => setImmediate(resolve));
      }
      socket.end();
    })();
  });
});
after(() => raw.close());

async function ours(path: string): Promise<Verdict> {
  const origin = originAt(`http://127.0.0.1:${raw.port}`, new HeldClock());
  const { status, headers, body, end } = await callTo(origin, { path }).ended;
  await origin.close();
  const gathered: Record<string, string> = {};
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    gathered[name] = Object.hasOwn(gathered, name)
      ? `${gathered[name]}|${headers[index + 1]}`
      : (headers[index + 1] as string);
  }
  return { status, headers: gathered, body, end: end === 'end' ? 'end' : 'fault' };
}

async function theirs(path: string): Promise<Verdict> {
  const client = new Client(`http://127.0.0.1:${raw.port}`, { pipelining: 1, maxHeaderSize: 65_536 });
  const verdict: Verdict = { status: null, headers: {}, body: '', end: 'fault' };
  await new Promise<void>((resolve) => {
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => undefined,
      onResponseStart: (_controller, status, headers) => {
        if (status < 200) return;
        verdict.status = status;
        for (const [name, value] of Object.entries(headers))
          verdict.headers[name] = Array.isArray(value) ? value.join('|') : String(value);
      },
      onResponseData: (_controller, chunk) => {
        verdict.body += chunk.toString('latin1');
      },
      onResponseEnd: () => {
        verdict.end = 'end';
        resolve();
      },
      onResponseError: () => resolve(),
    };
    client.dispatch({ method: 'POST', path, body: Buffer.from('{}') }, handler);
  });
  await client.destroy();
  return verdict;
}

async function both(reply: string, plan: SplitPlan): Promise<{ ours: Verdict; theirs: Verdict }> {
  const key = String(nextKey++);
  replies.set(key, { bytes: Buffer.from(reply, 'latin1'), plan });
  const [our, their] = await Promise.all([ours(`/${key}`), theirs(`/${key}`)]);
  replies.delete(key);
  return { ours: our, theirs: their };
}

const OK = 'HTTP/1.1 200 OK\r\n';
const LENGTH = `${OK}content-length: 5\r\n`;
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const ALIKE: Readonly<Record<string, string>> = {
  'a length': `${LENGTH}\r\nhello`,
  'a length, cut': `${LENGTH}\r\nhell`,
  'a longer body than declared': `${LENGTH}\r\nhello world`,
  'a second reply': `${LENGTH}\r\nhello${LENGTH}\r\nevil!`,
  'no declared length': `${OK}\r\nhello`,
  'no declared length, HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\nhello',
  'a 204': 'HTTP/1.1 204 No Content\r\n\r\n',
  'a 304 with a length': 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n',
  'a 204 with a body': 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nevil!',
  'no reason': 'HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello',
  'a code of 599': 'HTTP/1.1 599 x\r\ncontent-length: 5\r\n\r\nhello',
  'a code of 999': 'HTTP/1.1 999 x\r\ncontent-length: 5\r\n\r\nhello',
  'a code of four digits': 'HTTP/1.1 2000 OK\r\ncontent-length: 5\r\n\r\nhello',
  'early hints': `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${LENGTH}\r\nhello`,
  'an upgrade nobody asked for': 'HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello',
  'repeated headers': `${LENGTH}Set-Cookie: a\r\nset-cookie: b\r\nX: c\r\n\r\nhello`,
  'an empty value, blanks before a value, obs-text': `${LENGTH}a:\r\nb: \t c d\r\ne: caf\xe9\r\n\r\nhello`,
  'a 204 with chunks': 'HTTP/1.1 204 x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'HTTP/1.0 that would be kept': 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello',
  'an upgrade that is offered': `${LENGTH}connection: upgrade\r\nupgrade: h2c\r\n\r\nhello`,
  'DEL in a value': `${LENGTH}x: a\x7fb\r\n\r\nhello`,
  'CR CR LF': `${LENGTH}x: a\r\r\n\r\nhello`,
  'an empty length': `${OK}content-length:\r\n\r\nhello`,
  'a vertical tab before chunked': `${OK}transfer-encoding: \x0bchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  'a length beside a coding that is none': `${LENGTH}transfer-encoding: identity\r\n\r\nhello`,
  'blanks behind a chunk size': `${CHUNKED}5 \r\nhello\r\n0\r\n\r\n`,
  'a trailer without a colon': `${CHUNKED}5\r\nhello\r\n0\r\nx\r\n\r\n`,
  'a trailer that begins with a blank': `${CHUNKED}5\r\nhello\r\n0\r\nx: y\r\n z\r\n\r\n`,
  'a bare LF in the trailers': `${CHUNKED}5\r\nhello\r\n0\r\nx: 1\n\r\n`,
  '__proto__ as a name': `${LENGTH}__proto__: x\r\n\r\nhello`,
  'connection: close': `${LENGTH}connection: close\r\n\r\nhello`,
  nothing: '',
  'half a head': 'HTTP/1.1 200 OK\r\nx',
  'no HTTP': 'SSH-2.0-OpenSSH\r\n\r\n',
  'another version': 'HTTP/3.0 200 OK\r\ncontent-length: 5\r\n\r\nhello',
  'content-length twice': `${LENGTH}content-length: 6\r\n\r\nhello!`,
  'content-length twice, equal': `${LENGTH}content-length: 5\r\n\r\nhello`,
  'a list of lengths': `${OK}content-length: 5, 5\r\n\r\nhello`,
  'a length with a sign': `${OK}content-length: +5\r\n\r\nhello`,
  'a negative length': `${OK}content-length: -5\r\n\r\nhello`,
  'a length in hexadecimal': `${OK}content-length: 0x5\r\n\r\nhello`,
  'a length beyond all measure': `${OK}content-length: 99999999999999999999999\r\n\r\nhello`,
  'both framings': `${LENGTH}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  'both framings, turned': `${OK}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  'a folded line': `${LENGTH}x: a\r\n b\r\n\r\nhello`,
  'a space before the colon': `${OK}content-length : 5\r\n\r\nhello`,
  'a line without a colon': `${LENGTH}x\r\n\r\nhello`,
  'a name that is empty': `${LENGTH}: x\r\n\r\nhello`,
  'a name with a bracket': `${LENGTH}x(: y\r\n\r\nhello`,
  'NUL in a value': `${LENGTH}x: a\0b\r\n\r\nhello`,
  'a bare CR in a value': `${LENGTH}x: a\rb\r\n\r\nhello`,
  'a bare LF in a head': `${LENGTH}x: a\ny: b\r\n\r\nhello`,
  'LF for CRLF': 'HTTP/1.1 200 OK\ncontent-length: 5\n\nhello',
  'headers of 100 KB': `${LENGTH}x: ${'y'.repeat(100_000)}\r\n\r\nhello`,
  'headers of 60 KB': `${LENGTH}x: ${'y'.repeat(60_000)}\r\n\r\nhello`,
  chunks: `${CHUNKED}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`,
  'chunks, cut': `${CHUNKED}5\r\nhello\r\n6\r\n wo`,
  'chunks, cut before the last line': `${CHUNKED}5\r\nhello\r\n0\r\n`,
  'chunks with extensions and trailers': `${CHUNKED}5;a=b\r\nhello\r\n0;c="d"\r\nx: y\r\n\r\n`,
  'chunks with leading zeros': `${CHUNKED}00005\r\nhello\r\n0\r\n\r\n`,
  'a chunk longer than its size': `${CHUNKED}4\r\nhello\r\n0\r\n\r\n`,
  'a chunk size that is no number': `${CHUNKED}5g\r\nhello\r\n0\r\n\r\n`,
  'a chunk size with 0x': `${CHUNKED}0x5\r\nhello\r\n0\r\n\r\n`,
  'a chunk size with a sign': `${CHUNKED}+5\r\nhello\r\n0\r\n\r\n`,
  'no chunk size': `${CHUNKED}\r\nhello\r\n0\r\n\r\n`,
  'a chunk size that ends in LF': `${CHUNKED}5\nhello\r\n0\r\n\r\n`,
  'a chunk that ends in LF': `${CHUNKED}5\r\nhello\n0\r\n\r\n`,
  'a chunk size beyond all measure': `${CHUNKED}fffffffffffffffff\r\nhello\r\n0\r\n\r\n`,
  'bytes after the chunks': `${CHUNKED}5\r\nhello\r\n0\r\n\r\nevil`,
  'chunks in capitals': `${OK}Transfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
};

interface Difference {
  readonly example: string;
  /**
   * What replies of this kind look like: the generated ones may differ where one of these matches, and nowhere else.
   */
  readonly pattern: RegExp;
  readonly because: string;
}

/** We refuse these; undici takes them. */
const STRICTER: Readonly<Record<string, Difference>> = {
  'a coding other than chunked': {
    example: `${OK}transfer-encoding: gzip\r\n\r\nhello`,
    pattern: /\r\ntransfer-encoding:(?![ \t]*chunked[ \t]*\r\n)/i,
    because:
      'we never said that we take another (RFC 9112 7.4), and its bytes would reach the client without the ' +
      'name of their coding',
  },
  'another coding before chunked': {
    example: `${OK}transfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    pattern: /\r\ntransfer-encoding:.*,/i,
    because: 'the same',
  },
  'chunked twice': {
    example: `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    pattern: /\r\ntransfer-encoding:[^]*\r\ntransfer-encoding:/i,
    because: 'it must not be applied twice (RFC 9112 6.1)',
  },
  'chunks in HTTP/1.0': {
    example: 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    pattern: /^HTTP\/1\.0[^]*\r\ntransfer-encoding:/i,
    because: 'the framing is faulty (RFC 9112 6.1)',
  },
  'other versions and protocols': {
    example: 'ICE/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello',
    pattern: /^(?!HTTP\/1\.[01] )/,
    because: 'we speak HTTP/1.1; llhttp also reads HTTP/0.9 and 2.0, RTSP and ICE',
  },
  'an empty line before the status line': {
    example: `\r\n${LENGTH}\r\nhello`,
    pattern: /^[\r\n]/,
    because: 'it is a remnant of an earlier body: the server and we do not agree on where that ended',
  },
  'NUL in the reason': {
    example: 'HTTP/1.1 200 O\0K\r\ncontent-length: 5\r\n\r\nhello',
    pattern: /^[^\r]*[^\t\x20-\x7e\x80-\xff\r]/,
    because: 'the reason has no control characters (RFC 9112 4)',
  },
  'a length of more than 15 digits': {
    example: `${OK}content-length: 0000000000000005\r\n\r\nhello`,
    pattern: /\r\ncontent-length:[ \t]*\d{16,}/i,
    because: 'it could not be counted exactly',
  },
  'a head of exactly 64 KB of names and values': {
    example: `${LENGTH}x: ${'y'.repeat(65_500)}\r\n\r\nhello`,
    pattern: /[^\r\n]{65000,}/,
    because: 'we count the separators too',
  },
  'interim replies without end': {
    example: `${'HTTP/1.1 102 x\r\n\r\n'.repeat(33)}${LENGTH}\r\nhello`,
    pattern: /^(HTTP\/1\.1 1.*\r\n\r\n){33}/,
    because: 'each one buys time',
  },
  'a chunk size of more than 16 digits': {
    example: `${CHUNKED}00000000000000005\r\nhello\r\n0\r\n\r\n`,
    pattern: /\r\n0{10,}[0-9a-f]*\r\n/i,
    because: 'nobody pads that far',
  },
  'a chunk extension of more than 4 KB': {
    example: `${CHUNKED}5;${'a'.repeat(5_000)}\r\nhello\r\n0\r\n\r\n`,
    pattern: /;[^\r]{4000,}/,
    because: 'it is work and traffic without content',
  },
  'trailers of more than 16 KB': {
    example: `${CHUNKED}5\r\nhello\r\n0\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`,
    pattern: /\r\n0\r\n[^]{16000,}/,
    because: 'the same',
  },
};

/** We take these; undici refuses them. */
const MORE_LENIENT: Readonly<Record<string, Difference>> = {
  '100 that nobody waited for': {
    example: `HTTP/1.1 100 Continue\r\n\r\n${LENGTH}\r\nhello`,
    pattern: /HTTP\/1\.[01] 100/,
    because: 'a client must be able to read it (RFC 9110 15.2)',
  },
  'blanks behind a length': {
    example: `${OK}content-length: 5 \r\n\r\nhello`,
    pattern: /\r\ncontent-length:[^\r]*[ \t]\r\n/i,
    because: 'they are no part of the value (RFC 9110 5.5)',
  },
  'blanks before a chunk extension': {
    example: `${CHUNKED}5 ;a\r\nhello\r\n0\r\n\r\n`,
    pattern: /\r\n[0-9a-f]+[ \t]+;/i,
    because: 'they are to be read and dropped (RFC 9112 7.1.1)',
  },
};

/** Both take these, and see different things. */
const READ_OTHERWISE: Readonly<Record<string, Difference>> = {
  'blanks behind a value': {
    example: `${LENGTH}x: y \t\r\n\r\nhello`,
    pattern: /[ \t]\r\n/,
    because: 'they are no part of it (RFC 9110 5.5); undici leaves them there',
  },
  'blanks behind chunked': {
    example: `${OK}transfer-encoding: chunked\t\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    pattern: /\r\ntransfer-encoding:.*[ \t]\r\n/i,
    because: 'the same; undici reads on until the end of the connection, chunk sizes and all',
  },
};

/** Replies as servers make them. */
const soundReply = fc
  .record({
    status: fc.constantFrom('200 OK', '200', '404 Not Found', '503 x', '204 No Content', '304 x'),
    interim: fc.constantFrom('', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'),
    headers: fc.array(
      fc.tuple(
        fc.constantFrom('X-A', 'x-b', 'Set-Cookie', 'retry-after'),
        fc.string({ unit: fc.constantFrom(...'abc 1,;="\xe9'.split('')), maxLength: 12 }),
      ),
      {
        maxLength: 4,
      },
    ),
    body: fc.array(fc.string({ unit: fc.constantFrom(...'hello\r\n0:;'.split('')), maxLength: 60 }), { maxLength: 5 }),
    framing: fc.constantFrom('length', 'chunked', 'close'),
    trailers: fc.constantFrom('', 'x: y\r\n'),
    extension: fc.constantFrom('', ';a', ';a="b c"'),
  })
  .map(({ status, interim, headers, body, framing, trailers, extension }) => {
    const lines = headers.map(([name, value]) => `${name}: ${value.trim()}\r\n`).join('');
    const head = `${interim}HTTP/1.1 ${status}\r\n${lines}`;
    if (status.startsWith('204') || status.startsWith('304')) return `${head}\r\n`;
    if (framing === 'close') return `${head}\r\n${body.join('')}`;
    if (framing === 'length') return `${head}content-length: ${body.join('').length}\r\n\r\n${body.join('')}`;
    const chunks = body
      .filter((piece) => piece !== '')
      .map((piece) => `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`);
    return `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0${extension}\r\n${trailers}\r\n`;
  });

/** Sound ones with some bytes put in, left out or exchanged. */
const hostileReply = fc
  .tuple(
    soundReply,
    fc.array(
      fc.tuple(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.nat(2),
        fc.constantFrom(...'\r\n\0 \t:;,015aHx'.split(''), '\r\n', '\r\n\r\n'),
      ),
      {
        minLength: 1,
        maxLength: 3,
      },
    ),
  )
  .map(([reply, changes]) => {
    let changed = reply;
    for (const [where, removed, put] of changes) {
      const at = Math.floor(where * changed.length);
      changed = changed.slice(0, at) + put + changed.slice(at + removed);
    }
    return changed;
  });

const plan: fc.Arbitrary<SplitPlan> = fc.oneof(
  fc.constant<SplitPlan>({ kind: 'whole' }),
  fc.nat().map((seed): SplitPlan => ({ kind: 'random', seed, bytesMax: 40 })),
  fc.constant<SplitPlan>({ kind: 'each_byte' }),
);

describe('beside undici', () => {
  for (const [name, reply] of Object.entries(ALIKE)) {
    test(`alike: ${name}`, async () => {
      const plans: SplitPlan[] = [
        { kind: 'whole' },
        ...[1, 2].map((seed): SplitPlan => ({ kind: 'random', seed, bytesMax: 20 + reply.length / 20 })),
      ];
      if (reply.length < 200) plans.push({ kind: 'each_byte' });
      for (const split of plans) {
        const verdicts = await both(reply, split);
        assert.deepEqual(verdicts.ours, verdicts.theirs, JSON.stringify(split));
      }
    });
  }

  const kinds = [
    ['refused by us alone', STRICTER, ['fault', 'end']],
    ['taken by us alone', MORE_LENIENT, ['end', 'fault']],
    ['read otherwise', READ_OTHERWISE, ['end', 'end']],
  ] as const;
  for (const [kind, differences, ends] of kinds) {
    for (const [name, { example, pattern, because }] of Object.entries(differences)) {
      test(`${kind}: ${name}, because ${because}`, async () => {
        const verdicts = await both(example, { kind: 'whole' });
        assert.deepEqual([verdicts.ours.end, verdicts.theirs.end], ends);
        assert.notDeepEqual(verdicts.ours, verdicts.theirs);
        assert.match(example, pattern);
      });
    }
  }

  test(`sound replies, cut anywhere, are read alike (TEST_SEED=${SEED})`, async () => {
    const property = fc.asyncProperty(soundReply, plan, async (reply, split) => {
      const verdicts = await both(reply, split);
      assert.deepEqual(verdicts.ours, verdicts.theirs);
      assert.equal(verdicts.ours.end, 'end');
    });
    await fc.assert(property, { seed: SEED, numRuns: RUNS });
  });

  test(`hostile replies, cut anywhere, differ only where it says so above (TEST_SEED=${SEED})`, async () => {
    const property = fc.asyncProperty(hostileReply, plan, async (reply, split) => {
      const { ours: our, theirs: their } = await both(reply, split);
      const known = our.end === their.end ? READ_OTHERWISE : our.end === 'fault' ? STRICTER : MORE_LENIENT;
      if (Object.values(known).some(({ pattern }) => pattern.test(reply))) return;
      // Of two refusals only one may have seen the beginning of the reply: what counts is that it is no end.
      if (our.end === 'end' || their.end === 'end') assert.deepEqual(our, their);
    });
    await fc.assert(property, { seed: SEED, numRuns: RUNS * 4 });
  });
});

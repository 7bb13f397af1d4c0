// The smuggling cases of Http11Probe against both fronts, alone and behind nginx: what each is answered, whether that
// is what the case wants, and why where it is not. No request of one case ever reaches a handler twice.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { chooseFront, type FrontName } from '../../src/http/fronts/choose-front.ts';
import { howMany } from '../support/at-length.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { PROBE_CASES, type ProbeCase, type Wanted } from '../support/http11-probe-cases.ts';
import { HOP_HEADER, type NginxBefore, startNginxBefore } from '../support/nginx-before.ts';
import { needs } from '../support/programs.ts';
import { RawClient } from '../support/raw-client.ts';
import { finalStatuses } from '../support/raw-connection.ts';
import { pause } from '../support/waiting.ts';

/**
 * The statuses that came, and whether the connection is open behind them. `waits`: no answer so far; uWebSockets.js
 * closes the connection after ten seconds.
 */
type Outcome = string;

interface Answered {
  readonly uws: Outcome;
  readonly node: Outcome;
  /** Why one of them is not what the case wants. */
  readonly why?: string;
}

const CASES = { concurrency: true };
/** null: uWebSockets.js has a binary for this Node. */
const { missing } = await chooseFront('auto');
const needsFront = (name: FrontName): { readonly skip?: string } =>
  name === 'uws' && missing !== null ? { skip: 'uWebSockets.js has no binary here' } : {};
/** Node 24 hands on an empty `Transfer-Encoding`, refused then as a length that is not told; 22 and 26 do not. */
const TAKES_EMPTY_CODING = Number.parseInt(process.versions.node, 10) === 24;
const EMPTY_CODING = TAKES_EMPTY_CODING ? '411 closed' : '400 closed';

const both = (outcome: Outcome, why?: string): Answered => ({
  uws: outcome,
  node: outcome,
  ...(why === undefined ? {} : { why }),
});
const byParser = (uws: Outcome, why: string, node = '400 closed'): Answered => ({ uws, node, why });

const AWAITS_A_LINE =
  'the parser of uWebSockets.js takes the line for one that is not whole yet, and closes ten seconds later';
const READS_CHUNKS_LAXLY =
  'uWebSockets.js hands on the data of chunks and not their framing, so a body in chunks is the last of its connection';
const LOOKS_BEHIND_LAST_CHUNK =
  'uWebSockets.js looks for a request where trailers stand, and breaks off the answer of what is the last request';
const NO_OPTIONS = 'no route has OPTIONS: the method is refused, the body read and dropped';

/** What is not `400 closed` on both fronts. */
const ANSWERED: Readonly<Record<string, Answered>> = {
  'CL-LEADING-ZEROS': both('200 open'),
  'CL-TRAILING-SPACE': both('200 open'),
  'CL-EXTRA-LEADING-SP': both('200 open'),
  'CL-DOUBLE-ZERO': both('200 open'),
  'CL-LEADING-ZEROS-OCTAL': both('200 open'),
  'EXPECT-100-CL': both('200 open'),
  'HEAD-CL-BODY': both('200 open'),
  'OPTIONS-CL-BODY': both('405 open', NO_OPTIONS),
  'TE-SP-BEFORE-COLON': byParser('waits', AWAITS_A_LINE),
  'TE-NOT-FINAL-CHUNKED': byParser('411 closed', 'a coding that is not `chunked` leaves the request without a length'),
  'TE-HTTP10': byParser('505 closed', 'HTTP/1.0 is not served at all'),
  'TE-EMPTY-VALUE': byParser('411 closed', 'an empty coding is no length', EMPTY_CODING),
  'TE-VTAB': byParser('waits', AWAITS_A_LINE),
  'TE-FORMFEED': byParser('waits', AWAITS_A_LINE),
  'TE-NULL': byParser('waits', AWAITS_A_LINE),
  TRANSFER_ENCODING: both('200 open'),
  'TE-OBS-FOLD': byParser('waits', AWAITS_A_LINE),
  'CHUNK-BARE-SEMICOLON': byParser('waits', READS_CHUNKS_LAXLY),
  'CHUNK-SIZE-TRAILING-OWS': byParser('200 closed', READS_CHUNKS_LAXLY),
  'CHUNK-LEADING-SP': byParser('200 closed', READS_CHUNKS_LAXLY),
  'CHUNK-MISSING-TRAILING-CRLF': byParser('200 closed', READS_CHUNKS_LAXLY),
  'CHUNK-EXT-LF': byParser('waits', READS_CHUNKS_LAXLY),
  'CHUNK-SPILL': byParser('200 closed', READS_CHUNKS_LAXLY),
  'CHUNK-LF-TERM': { uws: '200 closed', node: '400 closed' },
  'CHUNK-EXT-CTRL': byParser('waits', READS_CHUNKS_LAXLY),
  'CHUNK-EXT-CR': byParser('waits', READS_CHUNKS_LAXLY),
  'CHUNK-LF-TRAILER': { uws: '200 closed', node: '400 closed' },
  'CHUNK-BARE-CR-TERM': byParser('waits', READS_CHUNKS_LAXLY),
  'TRAILER-CL': byParser('505 closed', LOOKS_BEHIND_LAST_CHUNK),
  'TRAILER-TE': byParser('505 closed', LOOKS_BEHIND_LAST_CHUNK),
  'TRAILER-HOST': byParser('505 closed', LOOKS_BEHIND_LAST_CHUNK, '200 closed'),
  'TRAILER-AUTH': byParser('505 closed', LOOKS_BEHIND_LAST_CHUNK, '200 closed'),
  'TRAILER-CONTENT-TYPE': byParser('505 closed', LOOKS_BEHIND_LAST_CHUNK, '200 closed'),
  'BARE-CR-HEADER-VALUE': byParser('waits', AWAITS_A_LINE),
  'ABSOLUTE-URI-HOST-MISMATCH': byParser('505 closed', 'uWebSockets.js takes a target that is no path for a version'),
  'CLTE-SMUGGLED-GET-TE-OBS-FOLD': byParser('waits', AWAITS_A_LINE),
  'DUPLICATE-CL-SMUGGLED-GET': { uws: 'closed', node: '400 closed' },
  'GET-CL-PREFIX-DESYNC': byParser('200 open', 'uWebSockets.js does not skip an empty line', '200 200 open'),
  'CL0-BODY-POISON': byParser('200 405 open', 'the byte that nobody announced is a part of the next method'),
  'GET-CL-BODY-DESYNC': both('200 200 open'),
  'OPTIONS-CL-BODY-DESYNC': both('405 200 open', NO_OPTIONS),
  'EXPECT-100-CL-DESYNC': both('200 200 open'),
  'OPTIONS-TE-OBS-FOLD': byParser('waits', AWAITS_A_LINE),
  'PIPELINE-SAFE': both('200 200 open'),
};
const REFUSED = both('400 closed');

const IS_SERVED = /^2\d\d$/;

/** Whether a case passes with this. */
const IS_WANTED: Readonly<Record<Wanted, (statuses: readonly string[], isClosed: boolean) => boolean>> = {
  refused: ([first], isClosed) => isRefused(first, isClosed),
  unknown: ([first], isClosed) => isRefused(first, isClosed) || first === '501',
  either: ([first = ''], isClosed) => isRefused(first, isClosed) || IS_SERVED.test(first),
  last: ([first, second], isClosed) => isRefused(first, isClosed) || (isClosed && second === undefined),
  single: ([first, second], isClosed) => second === undefined && isRefused(first, isClosed),
  clean: ([first = '', second = ''], isClosed) =>
    isRefused(first, isClosed) || (IS_SERVED.test(first) && IS_SERVED.test(second)),
  both: ([first = '', second = '']) => IS_SERVED.test(first) && IS_SERVED.test(second),
};

function isRefused(first: string | undefined, isClosed: boolean): boolean {
  return first === '400' || (isClosed && (first === undefined || first === ''));
}

/** A host of nine characters for each case, by which its handler calls are known: the declared lengths stay right. */
const hostOf = (probe: ProbeCase): string => `gate.${String(PROBE_CASES.indexOf(probe)).padStart(4, '0')}`;
const bytesOf = (probe: ProbeCase, sent: string): Buffer =>
  Buffer.from(sent.replaceAll('gate.test', hostOf(probe)), 'latin1');

interface Target {
  readonly server: HttpFront;
  /** By host: methods and paths of handler calls, in their order, and nginx's ids on them. */
  readonly calls: Map<string, { path: string; ids: readonly string[] }[]>;
}

async function startTarget(name: FrontName): Promise<Target> {
  const calls: Target['calls'] = new Map();
  const handle = (exchange: Exchange): void => {
    const host = exchange.header('host') ?? '';
    const call = { path: exchange.path, ids: exchange.headerValues(HOP_HEADER) };
    calls.set(host, [...(calls.get(host) ?? []), call]);
    const answer = (): void => exchange.answerJson(200, '{"a":1}');
    if (exchange.method !== 'post') answer();
    else exchange.body.receive({ take: (_, isLast) => (isLast ? answer() : undefined) });
  };
  const routes = ['/intended', '/follow-up', '/smuggled'].flatMap((path) => [
    { method: 'GET', answersHead: true, path, envelope: 'platform', handle } as const,
    { method: 'POST', path, envelope: 'platform', handle } as const,
  ]);
  return { server: await startHttpFront(routes, {}, (await chooseFront(name)).front), calls };
}

function outcomeOf({ received, isClosed }: RawClient): Outcome {
  const statuses = finalStatuses(received).join(' ');
  return statuses === '' && !isClosed ? 'waits' : `${statuses} ${isClosed ? 'closed' : 'open'}`.trim();
}

const POLL_MS = 10;
const UNANSWERED_MS = 20_000;

/** Sends a case, each part behind the answer to the one before, until `isDone`, or nothing more can be expected. */
async function play(port: number, probe: ProbeCase, isDone: (client: RawClient) => boolean): Promise<RawClient> {
  const client = await RawClient.open(port);
  for (const [index, sent] of probe.sends.entries()) {
    if (client.isClosed) break;
    await client.write(bytesOf(probe, sent));
    const isAnswered = (): boolean => client.isClosed || finalStatuses(client.received).length > index;
    const untilMs = performance.now() + UNANSWERED_MS;
    while (performance.now() < untilMs && !isAnswered() && !isDone(client)) await pause(POLL_MS);
  }
  const untilMs = performance.now() + UNANSWERED_MS;
  while (performance.now() < untilMs && !isDone(client)) await pause(POLL_MS);
  return client;
}

/** What was on the way on other connections is with its handler after this, and its answer written. */
async function serveAnother({ server }: Target): Promise<void> {
  for (let count = 0; count < 3; count += 1)
    assert.equal((await httpCall(`${server.url}/follow-up`, { headers: { host: 'another' } })).status, 200);
}

/** Each intended request at most once, in order; nothing else. */
function checkCalls(probe: ProbeCase, { calls }: Target): void {
  const paths = (calls.get(hostOf(probe)) ?? []).map(({ path }) => path);
  const intended = ['/intended', '/follow-up'].slice(0, probe.sends.length);
  const expected = intended.filter((path) => paths.includes(path));
  assert.deepEqual(paths, expected, 'a handler was called for what nobody sent as a request');
}

test('there are 87 cases, and a reason stands where an answer is not what its case wants, and nowhere else', () => {
  assert.equal(new Set(PROBE_CASES.map(({ id }) => id)).size, 87);
  const asWanted = { uws: 0, node: 0 };
  for (const { id, wanted } of PROBE_CASES) {
    const answered = ANSWERED[id] ?? REFUSED;
    const isWanted = (['uws', 'node'] as const).map((name) => {
      const parts = answered[name].split(' ');
      const isGood = answered[name] !== 'waits' && IS_WANTED[wanted](parts.slice(0, -1), parts.at(-1) === 'closed');
      if (isGood) asWanted[name] += 1;
      return isGood;
    });
    assert.equal(answered.why === undefined, isWanted.every(Boolean), `${id}: ${JSON.stringify(answered)}`);
  }
  // docs/install.md says so.
  assert.deepEqual(asWanted, { uws: 57, node: TAKES_EMPTY_CODING ? 84 : 85 });
});

for (const name of ['uws', 'node'] as const) {
  describe(`the cases of Http11Probe on ${name}`, { ...CASES, ...needsFront(name) }, () => {
    let target: Target;
    const waiting: RawClient[] = [];

    before(async () => {
      target = await startTarget(name);
    });
    after(async () => {
      // At length each of them is waited for: it must be closed without an answer.
      if (howMany({ short: false, long: true }))
        await Promise.all(waiting.map((client) => client.untilClosed().then(() => assert.equal(client.received, ''))));
      for (const client of waiting) client.leave();
      // Throws what a handler threw.
      await target?.server.stop();
    });

    for (const probe of PROBE_CASES) {
      test(`${probe.id}, RFC ${probe.rfc}`, async () => {
        const { [name]: expected } = ANSWERED[probe.id] ?? REFUSED;
        const client = await play(target.server.port, probe, (open) => outcomeOf(open) === expected);
        await serveAnother(target);
        const outcome = outcomeOf(client);
        if (outcome === 'waits') waiting.push(client);
        else client.leave();
        // On a machine that is slow its ten seconds may be over by now.
        const isOver = expected === 'waits' && outcome === 'closed';
        assert.equal(isOver ? 'waits' : outcome, expected, client.received);
        checkCalls(probe, target);
      });
    }
  });

  describe(`the cases of Http11Probe on ${name} behind nginx`, {
    ...CASES,
    ...needs('nginx'),
    ...needsFront(name),
  }, () => {
    let target: Target;
    let nginx: NginxBefore;

    before(async () => {
      target = await startTarget(name);
      nginx = await startNginxBefore([target.server.port]);
    });
    after(async () => {
      await nginx?.stop();
      await target?.server.stop();
    });

    // What nginx answers by itself is its own.
    for (const probe of PROBE_CASES) {
      test(`${probe.id}, RFC ${probe.rfc}`, async () => {
        const isAnswered = ({ isClosed, received }: RawClient): boolean =>
          isClosed || finalStatuses(received).length >= probe.sends.length;
        const client = await play(nginx.ports[0] as number, probe, isAnswered);
        await serveAnother(target);
        const statuses = finalStatuses(client.received);
        client.leave();
        assert.ok(statuses.length <= probe.sends.length, client.received);
        checkCalls(probe, target);
        const ids = (target.calls.get(hostOf(probe)) ?? []).map((call) => call.ids);
        assert.ok(ids.every(({ length }) => length === 1) && new Set(ids.flat()).size === ids.length, String(ids));
      });
    }
  });
}

// Measures what a warm request of 1 KB costs in our own code, from its head to the end of its reply: the whole data
// plane in this process, without sockets or system calls. A busy machine changes the figure little, so it shows a
// change to the path that the noise of a whole run would hide. Prints microseconds of CPU a request and the bytes that
// it leaves to the collector. The argument says how many requests come in one tick.

import { syncBuiltinESMExports } from 'node:module';
import net, { type OnReadOpts } from 'node:net';
import { setImmediate as tickEnd } from 'node:timers/promises';
import type { ClientRequest } from '../../src/http/fronts/front.ts';
import type { HttpResponse } from '../../src/http/fronts/load-uws.ts';
import { UwsResponse } from '../../src/http/fronts/uws-response.ts';
import type { RecordBatch } from '../../src/records/record-batch.ts';
import { FreeBatches } from '../../src/storage/spool/free-batches.ts';
import { writeHeaders } from '../../src/storage/spool/spool-format.ts';
import { median } from '../harness/median.ts';
import { requestBody } from '../load/request-bodies.ts';
import { chatCompletionBody } from '../stub/reply-bodies.ts';

const ROUNDS = 400;
const TICKS_PER_ROUND = 24;
const WARM_UP_ROUNDS = 300;
const KEY = 'tg-benchmark-0123456789abcdefghijklmnopqrstuvwxyz';
const MODEL = 'bench/json-1024';
const requestsPerTick = Number(process.argv[2] ?? 16);

/** Sockets that have received a request and not yet sent its reply. */
let asked: ProviderSocket[] = [];

/** A socket that accepts every write at once, and has the reply when told to. */
class ProviderSocket {
  readonly errored = null;
  readonly writableLength = 0;
  readonly remoteAddress = '127.0.0.1';
  private readonly onread: OnReadOpts;

  constructor({ onread }: { readonly onread: OnReadOpts }, onConnected: () => void) {
    this.onread = onread;
    setImmediate(onConnected);
  }

  on(): void {}
  setNoDelay(): void {}
  setKeepAlive(): void {}

  write(): void {
    asked.push(this);
  }

  reply(): void {
    const { buffer } = this.onread;
    REPLY.copy(buffer as Buffer);
    this.onread.callback(REPLY.length, buffer as Buffer);
  }
}

const replyBody = chatCompletionBody(1_024);
const REPLY = Buffer.concat([
  Buffer.from(
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req-1234567890abcdef\r\n' +
      `Date: Tue, 24 Nov 2026 22:00:00 GMT\r\nContent-Length: ${replyBody.length}\r\n\r\n`,
  ),
  replyBody,
]);

net.connect = ((options: { readonly onread: OnReadOpts }, onConnected: () => void) =>
  new ProviderSocket(options, onConnected)) as unknown as typeof net.connect;
syncBuiltinESMExports();
const { PlaneInProcess, modelServedBy, providerAt } = await import('../../test/support/plane-in-process.ts');
const { principalOf } = await import('../../test/support/principals.ts');

const free = new FreeBatches();
const provider = providerAt('http://127.0.0.1:9');
const plane = await PlaneInProcess.start({
  providerUrl: provider.baseUrl,
  principals: new Map([[KEY, principalOf('0190a000-0000-7000-8000-000000000001')]]),
  models: [modelServedBy(MODEL, provider, { servedBy: modelServedBy('stub-model-2026-11-20', provider).servedBy })],
  spool: {
    takeBatch: () => free.take(),
    appendBatch: (batch: RecordBatch) => {
      batch.endFrame();
      writeHeaders(batch);
      if (batch.hasRoom) free.continueBehind(batch);
      else free.release(batch);
    },
  },
});
const route = plane.routes.find(({ path }) => path === '/v1/chat/completions');
if (route === undefined) throw new Error('the route is not there');

const body = requestBody('1k', MODEL);
const arrived = body.buffer.slice(body.byteOffset, body.byteOffset + body.length) as ArrayBuffer;
const HEADERS = [
  ['host', '127.0.0.1:8080'],
  ['authorization', `Bearer ${KEY}`],
  ['user-agent', 'OpenAI/JS 6.0.0'],
  ['content-type', 'application/json'],
  ['content-length', String(body.length)],
].map(([name = '', value = '']) => [Buffer.from(name), Buffer.from(value)] as const);

/** The request's head; like uWebSockets.js, it makes new strings each time. */
const REQUEST = {
  getQuery: () => undefined,
  forEach: (take: (name: string, value: string) => void) => {
    for (const [name, value] of HEADERS) take(name.toString('latin1'), value.toString('latin1'));
  },
} as unknown as ClientRequest;

let answered = 0;

class ClientResponse {
  private take: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;

  onAborted(): void {}
  resume(): void {}
  writeHeader(): void {}
  getRemoteAddress = (): ArrayBuffer => new ArrayBuffer(4);

  cork(write: () => void): void {
    write();
  }

  onData(take: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.take = take;
  }

  sendBody(): void {
    this.take(arrived, true);
  }

  end(): void {
    answered += 1;
  }
}

async function serveRound(): Promise<void> {
  for (let tick = 0; tick < TICKS_PER_ROUND; tick++) {
    const expected = answered + requestsPerTick;
    for (let index = 0; index < requestsPerTick; index++) {
      const response = new ClientResponse();
      plane.server['accept'](
        new UwsResponse(response as unknown as HttpResponse),
        REQUEST,
        route as NonNullable<typeof route>,
      );
      response.sendBody();
    }
    while (answered < expected) {
      await tickEnd();
      const due = asked;
      asked = [];
      for (const socket of due) socket.reply();
    }
  }
}

const requests = TICKS_PER_ROUND * requestsPerTick;
for (let round = 0; round < WARM_UP_ROUNDS; round++) await serveRound();
const microseconds: number[] = [];
const bytes: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const heapBefore = process.memoryUsage().heapUsed;
  const before = process.cpuUsage();
  await serveRound();
  const { user, system } = process.cpuUsage(before);
  const grown = process.memoryUsage().heapUsed - heapBefore;
  microseconds.push((user + system) / requests);
  // The growth counts only if the collector has not run in between.
  if (grown > 0) bytes.push(grown / requests);
}
const at = (figures: readonly number[], part: number): string =>
  (figures[Math.floor(part * (figures.length - 1))] ?? Number.NaN).toFixed(2);
const times = microseconds.toSorted((one, other) => one - other);
console.log(`${requestsPerTick} requests in a tick`);
console.log(`a request   ${at(times, 0.5)} µs (least ${at(times, 0)}, a tenth below ${at(times, 0.1)})`);
console.log(`garbage     ${Math.round(median(bytes))} bytes`);
process.exit();

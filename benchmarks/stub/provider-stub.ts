// A very fast stand-in for a provider: fixed JSON replies and event streams chosen by the path's prefix, which every
// proxy under test passes on.
//   /json/<bytes>/...                           a chat completion of that many bytes
//   .../v1/systemone                            typed answers for a router, whatever the prefix
//   /events/<events>/<group>/<intervalMs>/...   a stream that sends a group of events back to back every interval,
//                                               each event in a send of its own
// Run: node benchmarks/stub/provider-stub.ts [port]. It prints the port it listens on and ends when its parent does.

import { App, type HttpResponse, us_socket_local_port as localPort } from 'uWebSockets.js';
import { endWithParent } from '../harness/end-with-parent.ts';
import { chatCompletionBody, JUDGEMENT, STREAM_TAIL, stampedEvent } from './reply-bodies.ts';

interface Stream {
  readonly response: HttpResponse;
  eventsLeft: number;
  readonly groupSize: number;
  readonly intervalMs: number;
  closed: boolean;
}

const TICK_MS = 1;

const jsonBodies = new Map<number, Uint8Array>();
/** Streams by the tick at which their next group is due. */
const dueByTick = new Map<number, Stream[]>();
let tick = 0;
let ticker: NodeJS.Timeout | null = null;
let openStreams = 0;
let phase = 0;

function sendGroup(stream: Stream): void {
  const count = Math.min(stream.groupSize, stream.eventsLeft);
  stream.eventsLeft -= count;
  for (let i = 0; i < count; i++) {
    // An uncorked write costs several sends; one cork an event makes it one send, like a provider's flush.
    stream.response.cork(() => {
      stream.response.write(stampedEvent());
    });
  }
}

function scheduleAt(dueTick: number, stream: Stream): void {
  const due = dueByTick.get(dueTick);
  if (due === undefined) dueByTick.set(dueTick, [stream]);
  else due.push(stream);
}

function advance(stream: Stream): void {
  if (stream.closed) return;
  if (stream.eventsLeft > 0) {
    sendGroup(stream);
    scheduleAt(tick + stream.intervalMs / TICK_MS, stream);
    return;
  }
  openStreams--;
  stream.closed = true;
  stream.response.cork(() => {
    stream.response.end(STREAM_TAIL);
  });
}

function runTicks(): void {
  const nowTick = Math.floor(performance.now() / TICK_MS);
  while (tick < nowTick) {
    tick++;
    const due = dueByTick.get(tick);
    if (due === undefined) continue;
    dueByTick.delete(tick);
    for (const stream of due) advance(stream);
  }
  if (openStreams === 0 && ticker !== null) {
    clearInterval(ticker);
    ticker = null;
    dueByTick.clear();
  }
}

function startStream(stream: Stream): void {
  stream.response.writeHeader('content-type', 'text/event-stream; charset=utf-8');
  stream.response.writeHeader('x-request-id', 'req_bench');
  openStreams++;
  if (ticker === null) {
    tick = Math.floor(performance.now() / TICK_MS);
    ticker = setInterval(runTicks, TICK_MS);
  }
  // The first event is sent with the head. Each stream then has its own phase, so that the groups of all streams do not
  // fall into one tick.
  stream.eventsLeft--;
  stream.response.write(stampedEvent());
  phase = (phase + 1) % stream.intervalMs;
  scheduleAt(tick + 1 + phase, stream);
}

function answerJson(response: HttpResponse, body: Uint8Array): void {
  response.writeHeader('content-type', 'application/json');
  response.writeHeader('x-request-id', 'req_bench');
  response.end(body);
}

function completionOf(bytes: number): Uint8Array {
  let body = jsonBodies.get(bytes);
  if (body === undefined) jsonBodies.set(bytes, (body = chatCompletionBody(bytes)));
  return body;
}

const app = App();
app.post('/*', (response, request) => {
  const url = request.getUrl();
  const [, kind, size, groupSize, intervalMs] = url.split('/');
  const isQuestion = url.endsWith('/v1/systemone');
  const isJson = kind === 'json';
  const stream: Stream = {
    response,
    eventsLeft: Number(size),
    groupSize: Number(groupSize),
    intervalMs: Number(intervalMs),
    closed: false,
  };
  response.onAborted(() => {
    if (!stream.closed && !isJson) openStreams--;
    stream.closed = true;
  });
  response.onData((_chunk, isLast) => {
    if (!isLast || stream.closed) return;
    if (!isJson) {
      startStream(stream);
    } else {
      stream.closed = true;
      answerJson(response, isQuestion ? JUDGEMENT : completionOf(Number(size)));
    }
  });
});
app.get('/*', (response) => {
  response.end('ok');
});

endWithParent();
app.listen('127.0.0.1', Number(process.argv[2] ?? 0), (socket) => {
  if (!socket) throw new Error('the provider stub cannot listen');
  console.log(`listening ${localPort(socket)}`);
});

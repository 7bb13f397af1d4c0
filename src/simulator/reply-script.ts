// Sends a planned reply, whole or streamed, with every fault that can be requested. An API defines the pieces; which of
// them are sent, when, and how the reply ends is the same for all and decided here.

import type { CallPlan, CallRequest, CallTally, ReplyHeaders } from './apis/api.ts';
import { rewrittenText } from './document-rewrite.ts';
import type { ReplySocket } from './reply-socket.ts';

/** A placeholder in a reply's text for bytes that are not UTF-8. */
export const INVALID_UTF8 = '\u{f8ff}invalid\u{f8ff}';
const INVALID_BYTES = Buffer.from([0xff, 0xc3, 0x28]);

/** What is sent between two checks for faults. */
export interface Round {
  readonly pieces: readonly string[];
  /**
   * Each piece is one generated token (or image): it is delayed and counted, and faults can occur between two such
   * rounds.
   */
  readonly counted: boolean;
  /** Whether the round reports the usage. */
  readonly usage?: boolean;
}

export interface ReplyScript {
  readonly tally: CallTally;
  /** The counts of generated tokens or images that are logged once the whole reply was sent. */
  readonly generated: Partial<Pick<CallTally, 'completionTokens' | 'images'>>;
  readonly reportsUsage: boolean;
  /** The number of counted rounds; a reply that is not streamed waits for all of them at once. */
  readonly pauses: number;
  /** The whole body; called when it is due. */
  whole(): string;
  /** null: the reply is not streamed. */
  readonly stream: StreamScript | null;
}

export interface StreamScript {
  opening(): Iterable<string>;
  rounds(): Iterable<Round>;
  /** What follows the last token. It sets `tally.usageSent` just before it yields the usage. */
  closing(): Iterable<string>;
  /** How the dialect reports an error in the middle of a stream. */
  error(): Iterable<string>;
}

export function scriptedCall(request: CallRequest, script: ReplyScript): CallPlan {
  return {
    tally: script.tally,
    send: (reply, headers) =>
      script.stream === null
        ? sendWhole({ request, script, reply, headers })
        : sendStream({ request, script, reply, headers }, script.stream),
  };
}

interface Sending {
  readonly request: CallRequest;
  readonly script: ReplyScript;
  readonly reply: ReplySocket;
  readonly headers: ReplyHeaders;
}

async function sendWhole({ request, script, reply, headers }: Sending): Promise<boolean> {
  const { directives } = request;
  await reply.pause((directives.delayMs ?? request.defaultDelayMs) * script.pauses);
  if (reply.closed) return false;
  const body = toBytes(rewrittenText(script.whole(), request.rewriteDocument));
  reply.start(200, { ...headers, 'content-type': 'application/json', 'content-length': body.length });
  const { cutAfter, resetAfter, stallAfter } = directives;
  const breakAfter =
    cutAfter ?? resetAfter ?? stallAfter ?? (directives.cutMidEvent === null ? null : body.length >> 1);
  if (breakAfter !== null) {
    await reply.write(body.subarray(0, Math.min(breakAfter, body.length - 1)));
    if (stallAfter === breakAfter) await reply.stall();
    else await reply.cut({ reset: resetAfter !== null });
    return false;
  }
  await reply.write(body);
  Object.assign(script.tally, script.generated, { usageSent: script.reportsUsage });
  return reply.end();
}

async function sendStream(sending: Sending, stream: StreamScript): Promise<boolean> {
  const { request, script, reply, headers } = sending;
  const { rewriteDocument, streamOpening } = request;
  reply.start(200, { ...headers, 'content-type': 'text/event-stream; charset=utf-8' });
  if (streamOpening !== undefined) await reply.write(streamOpening);
  for (const piece of stream.opening()) await reply.write(toBytes(rewrittenText(piece, rewriteDocument)));
  if (!(await sendRounds(sending, stream))) return false;
  Object.assign(script.tally, script.generated);
  for (const piece of stream.closing()) await reply.write(toBytes(rewrittenText(piece, rewriteDocument)));
  return reply.end();
}

/** False when the caller disconnected or a fault ended the stream. */
async function sendRounds({ request, script, reply }: Sending, stream: StreamScript): Promise<boolean> {
  const delayMs = request.directives.delayMs ?? request.defaultDelayMs;
  let count = 0;
  for (const { pieces, counted, usage } of stream.rounds()) {
    if (counted) {
      if (await breaksAt(count, { request, reply }, stream)) return false;
      await reply.pause(delayMs);
    }
    if (usage === true) script.tally.usageSent = true;
    for (const plain of pieces) {
      if (reply.closed) return false;
      const piece = rewrittenText(plain, request.rewriteDocument);
      if (counted && count === request.directives.cutMidEvent) {
        const bytes = toBytes(piece);
        await reply.write(bytes.subarray(0, bytes.length >> 1));
        await reply.cut({ reset: false });
        return false;
      }
      if (counted) tallyPiece(script);
      await reply.write(toBytes(piece));
    }
    if (counted) count += 1;
  }
  return !(await breaksAt(count, { request, reply }, stream)) && !reply.closed;
}

function tallyPiece({ tally, generated }: ReplyScript): void {
  if (generated.images === undefined) tally.completionTokens += 1;
  else tally.images += 1;
}

/** Executes a fault that is due after `count` rounds. */
async function breaksAt(
  count: number,
  { request, reply }: Pick<Sending, 'request' | 'reply'>,
  stream: StreamScript,
): Promise<boolean> {
  const { cutAfter, resetAfter, stallAfter, endAfter, errorAfter } = request.directives;
  if (count === stallAfter) await reply.stall();
  else if (count === cutAfter || count === resetAfter) await reply.cut({ reset: count === resetAfter });
  else if (count === endAfter) await reply.end();
  else if (count === errorAfter) {
    for (const piece of stream.error()) await reply.write(toBytes(piece));
    await reply.end();
  } else return false;
  return true;
}

function toBytes(text: string): Buffer {
  if (!text.includes(INVALID_UTF8)) return Buffer.from(text);
  const [first = '', ...rest] = text.split(INVALID_UTF8);
  return Buffer.concat([Buffer.from(first), ...rest.flatMap((part) => [INVALID_BYTES, Buffer.from(part)])]);
}

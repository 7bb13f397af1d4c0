// The reply of a provider to an exchange: head and body on the wire, and the bytes that its client must get. All of it
// is filled with the exchange's mark.

import { blocksReply, replyEvents, replyText } from './guarded.ts';
import { filled } from './marks.ts';
import type { Exchange, SentReply } from './plan.ts';

export interface RenderedReply {
  readonly head: Buffer;
  /** The body in the pieces that are written. */
  readonly wire: readonly Buffer[];
  readonly end: 'length' | 'chunked' | 'close';
  readonly sent: SentReply;
}

const EVENT_BYTES = 1_700;
const USAGE = '"usage":{"prompt_tokens":3,"completion_tokens":2,"input_tokens":3,"output_tokens":2,"total_tokens":5}';

export function renderReply(exchange: Exchange, asksForUsage: boolean): RenderedReply {
  const { wire: events, content } = exchange.isStream ? renderStream(exchange, asksForUsage) : renderDocument(exchange);
  // Only the end of the connection ends a body without a length: if it were cut, it would look whole.
  const wanted =
    exchange.providerSteps.includes('cuts its reply in the middle') && exchange.reply.framing === 'close'
      ? 'chunked'
      : exchange.reply.framing;
  const framing = exchange.isStream && wanted === 'length' ? 'chunked' : wanted;
  const sent = register(exchange, 200, content);
  const type = exchange.isStream ? 'text/event-stream' : 'application/json';
  return { ...frame(exchange, { status: 200, type, body: events, framing, pieces: exchange.reply.pieces }), sent };
}

/** A refusal by the provider, in one piece. */
export function renderRefusal(exchange: Exchange, status: number, extraHeaders = ''): RenderedReply {
  const content = Buffer.from(`{"error":{"message":"${filled(exchange.replyMark, 160).toString('latin1')}"}}`);
  const sent = register(exchange, status, content);
  return {
    ...frame(exchange, { status, type: 'application/json', body: content, framing: 'length', pieces: 1, extraHeaders }),
    sent,
  };
}

/** Registers the reply. The head names it by its index, so that its client knows what to expect. */
function register(exchange: Exchange, status: number, content: Buffer): SentReply {
  const sent = { status, content, whole: false, isBlocked: status === 200 && blocksReply(exchange) };
  exchange.replies.push(sent);
  return sent;
}

interface Framed {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
  readonly framing: 'length' | 'chunked' | 'close';
  readonly pieces: number;
  readonly extraHeaders?: string;
}

function frame(
  exchange: Exchange,
  { status, type, body, framing, pieces, extraHeaders }: Framed,
): Omit<RenderedReply, 'sent'> {
  const place = exchange.replies.length - 1;
  const framed = {
    length: `content-length: ${body.length}`,
    chunked: 'transfer-encoding: chunked',
    close: 'connection: close',
  }[framing];
  const head = `HTTP/1.1 ${status} Isolated\r\ncontent-type: ${type}\r\nx-request-id: ${exchange.replyMark}.${place}\r\nopenai-processing-ms: ${exchange.replyMark}\r\nset-cookie: s=${exchange.replyMark}\r\n${extraHeaders ?? ''}${framed}\r\n\r\n`;
  const pieceBytes = Math.max(1, Math.ceil(body.length / pieces));
  const wire: Buffer[] = [];
  for (let at = 0; at < body.length; at += pieceBytes) {
    const piece = body.subarray(at, at + pieceBytes);
    wire.push(
      framing === 'chunked' ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, CRLF]) : piece,
    );
  }
  if (framing === 'chunked') wire.push(LAST_CHUNK);
  return { head: Buffer.from(head, 'latin1'), wire, end: framing };
}

const CRLF = Buffer.from('\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

function renderDocument(exchange: Exchange): { wire: Buffer; content: Buffer } {
  const { kind, replyMark, reply } = exchange;
  const filling = filled(replyMark, Math.max(16, reply.bytes)).toString('latin1');
  const text = {
    image: `{"created":1,"data":[{"b64_json":"${filling}"}],${USAGE}}`,
    count: `{"input_tokens":3,"of":"${filling}"}`,
    systemone: `{"answers":{"q":{"type":"choice","choice":"yes","confidence":0.9,"of":"${filling}"}},${USAGE}}`,
  };
  const whole = (planted: string): string =>
    `{"id":"resp_${replyMark}","choices":[{"index":0,"message":{"role":"assistant","content":"${planted}${filling}"},"finish_reason":"stop"}],${USAGE}}`;
  const other = (text as Partial<Record<string, string>>)[kind === 'edit' ? 'image' : kind];
  const { written, arrives } = replyText(exchange);
  const wire = Buffer.from(other ?? whole(written), 'latin1');
  return { wire, content: written === arrives ? wire : Buffer.from(other ?? whole(arrives), 'latin1') };
}

function renderStream(exchange: Exchange, asksForUsage: boolean): { wire: Buffer; content: Buffer } {
  const { kind, replyMark, reply } = exchange;
  const count = Math.max(1, Math.ceil(reply.bytes / EVENT_BYTES));
  const filling = filled(replyMark, Math.min(EVENT_BYTES, Math.max(16, reply.bytes))).toString('latin1');
  const dialect =
    kind === 'messages' ? 'messages' : kind === 'responses' || kind === 'continued' ? 'responses' : 'chat';
  const { start, delta, usage, end } = {
    chat: {
      start: '',
      delta: `data: {"id":"${replyMark}","choices":[{"index":0,"delta":{"content":"#"}}]}\n\n`,
      usage: `data: {"id":"${replyMark}","choices":[],${USAGE}}\n\n`,
      end: 'data: [DONE]\n\n',
    },
    messages: {
      start:
        `event: message_start\ndata: ` +
        `{"type":"message_start","message":{"id":"${replyMark}","usage":{"input_tokens":3,"output_tokens":1}}}\n\n`,
      delta:
        `event: content_block_delta\ndata: ` +
        `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"#"}}\n\n`,
      usage:
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},' +
        '"usage":{"output_tokens":2}}\n\n',
      end: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    },
    responses: {
      start: `event: response.created\ndata: {"type":"response.created","response":{"id":"resp_${replyMark}"}}\n\n`,
      delta: `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"#"}\n\n`,
      usage: '',
      end:
        `event: response.completed\ndata: ` +
        `{"type":"response.completed","response":{"id":"resp_${replyMark}","status":"completed",${USAGE}}}\n\n`,
    },
  }[dialect];
  const saying = (text: string): string => delta.replace('#', text);
  const planted = replyEvents(exchange);
  const rest = saying(filling).repeat(count);
  const wire = start + planted.map(({ written }) => saying(written)).join('') + rest + usage + end;
  // The client does not get what only the gateway has requested.
  const usageForClient = asksForUsage && dialect === 'chat' ? '' : usage;
  const content = start + planted.map(({ arrives }) => saying(arrives)).join('') + rest + usageForClient + end;
  return { wire: Buffer.from(wire, 'latin1'), content: Buffer.from(content, 'latin1') };
}

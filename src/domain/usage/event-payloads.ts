// Reads the events of a stream of server-sent events, as far as it came, the way a client's parser does: for counting
// their texts.

import { type JsonObject, parseObject } from './countable-text.ts';

export interface EventPayload {
  readonly text: string;
  readonly event: JsonObject;
}

/** Each complete event whose data is a JSON object. */
export function* readEvents(body: string): Generator<EventPayload> {
  for (const text of eventPayloads(body)) {
    const event = parseObject(text);
    if (event !== null) yield { text, event };
  }
}

const FIELD = /^\s*(?:data|event|id|retry)?:/;

/** Whether the body is an event stream; some providers send one with another content type. */
export function beginsLikeEvents(body: string): boolean {
  return FIELD.test(body);
}

/** Whether the body is a stream without a complete event: a client's parser has passed on nothing of it. */
export function isWithinFirstEvent(body: string): boolean {
  return beginsLikeEvents(body) && eventPayloads(body).next().done === true;
}

/**
 * The `data` of each complete event. Lines end in CRLF, LF or CR; a last line without an end was cut and never reached
 * a client's parser.
 */
function* eventPayloads(body: string): Generator<string> {
  const lines = body.split(/\r\n|\r|\n/);
  lines.pop();
  let payload: string | null = null;
  for (const line of lines) {
    if (line.startsWith('data:')) {
      const text = line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5);
      payload = payload === null ? text : `${payload}\n${text}`;
    } else if (line === '' && payload !== null) {
      yield payload;
      payload = null;
    }
  }
  // Some providers end the last event with a single line end; clients accept that, so the event was delivered.
  if (payload !== null) yield payload;
}

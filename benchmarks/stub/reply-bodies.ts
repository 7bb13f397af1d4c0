// The bytes the provider stub answers with: a chat completion of a chosen size and the events of a chat stream.

const STAMP_DIGITS = 16;

/**
 * Marks the send time of an event: nanoseconds of the machine's monotonic clock, so that another process on the machine
 * can subtract.
 */
export const STAMP_MARK = '"ns":"';

const EVENT_HEAD =
  'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"stub",' +
  '"choices":[{"index":0,"delta":{"content":" and so on, "},"finish_reason":null}],';
const EVENT_TAIL = '"}\n\n';

export const STREAM_TAIL =
  'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"stub",' +
  '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' +
  'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"stub",' +
  '"choices":[],"usage":{"prompt_tokens":250,"completion_tokens":200,"total_tokens":450,' +
  '"prompt_tokens_details":{"cached_tokens":0}}}\n\n' +
  'data: [DONE]\n\n';

/** One event of about 200 bytes, stamped with the time of this call. */
export function stampedEvent(): string {
  return EVENT_HEAD + STAMP_MARK + String(process.hrtime.bigint()).padStart(STAMP_DIGITS, '0') + EVENT_TAIL;
}

/** A non-streaming chat completion with usage, padded in its content to exactly `bytes`. */
export function chatCompletionBody(bytes: number): Uint8Array {
  const head =
    '{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"stub",' +
    '"choices":[{"index":0,"message":{"role":"assistant","content":"';
  const tail =
    '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":250,"completion_tokens":200,"total_tokens":450,' +
    '"prompt_tokens_details":{"cached_tokens":0}}}';
  const filler =
    'The function returns early when the list is empty.\\n\\n```ts\\nif (items.length === 0) return ' +
    '\\"none\\";\\n```\\n';
  const room = bytes - head.length - tail.length;
  const whole = filler.repeat(Math.floor(room / filler.length));
  return Buffer.from(head + whole + ' '.repeat(room - whole.length) + tail, 'latin1');
}

/** The judgement that the classifier stub returns for every question. */
export const JUDGEMENT: Uint8Array = Buffer.from(
  '{"model":"judge-1.0.0","answers":{"tier":{"type":"choice","choice":"light","confidence":0.9,' +
    '"probabilities":{"light":0.95,"strong":0.05}}},"usage":{"input_tokens":400,"output_tokens":16}}',
);

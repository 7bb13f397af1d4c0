// Which texts of a chat-completions request and reply make up its tokens, when the provider reported none and we must count (DESIGN 4).
// Everything read here was written by a client or a provider: any shape may come, and what is not understood is left out, never thrown on.

/** Texts to tokenize, and tokens that the format adds around them. */
export interface CountableText {
  readonly texts: readonly string[];
  readonly formatTokens: number;
}

/** OpenAI's published recipe: every message is wrapped in 3 tokens, a name costs 1 more, and 3 prime the reply. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const TOKENS_OF_PRIMING = 3;

type JsonObject = Readonly<Record<string, unknown>>;

/** null when the body is not a chat-completions request. */
export function requestText(body: string): CountableText | null {
  const request = parseObject(body);
  if (request === null || !Array.isArray(request['messages'])) return null;
  const texts: string[] = [];
  let formatTokens = TOKENS_OF_PRIMING;
  for (const message of objectsOf(request['messages'])) {
    formatTokens += TOKENS_PER_MESSAGE;
    pushText(texts, message['role']);
    if (pushText(texts, message['name'])) formatTokens += TOKENS_PER_NAME;
    pushMessage(texts, message);
  }
  // How a provider words tools and schemas to its model is not public; their JSON is close, and is what the client sent.
  for (const field of ['tools', 'functions', 'response_format']) {
    if (typeof request[field] === 'object' && request[field] !== null) texts.push(JSON.stringify(request[field]));
  }
  return { texts, formatTokens };
}

/** Text of a whole or cut JSON reply; null when it is not a chat completion. */
export function responseText(body: string): CountableText | null {
  const response = parseObject(body);
  if (response === null) return cutResponseText(body);
  if (!Array.isArray(response['choices'])) return null;
  const texts: string[] = [];
  for (const choice of objectsOf(response['choices'])) {
    const message = asObject(choice['message']);
    if (message !== null) pushMessage(texts, message);
    pushText(texts, choice['text']);
  }
  return { texts, formatTokens: 0 };
}

/** Text of an event stream, whole or cut: what reached the client in complete events. null when no event of it is a chat-completions chunk. */
export function streamText(body: string): CountableText | null {
  const deltas = new Map<string, string[]>();
  let chunks = 0;
  for (const payload of eventPayloads(body)) {
    const chunk = parseObject(payload);
    if (chunk === null || !Array.isArray(chunk['choices'])) continue;
    chunks++;
    for (const choice of objectsOf(chunk['choices'])) collectDelta(deltas, choice);
  }
  // A token can span deltas, so each field's deltas are joined before they are counted.
  return chunks === 0 ? null : { texts: [...deltas.values()].map((parts) => parts.join('')), formatTokens: 0 };
}

function collectDelta(deltas: Map<string, string[]>, choice: JsonObject): void {
  const append = (key: string, text: unknown): void => {
    if (typeof text !== 'string' || text === '') return;
    const parts = deltas.get(key);
    if (parts === undefined) deltas.set(key, [text]);
    else parts.push(text);
  };
  const delta = asObject(choice['delta']);
  const at = typeof choice['index'] === 'number' ? choice['index'] : 0;
  append(`${at} text`, choice['text']);
  if (delta === null) return;
  for (const text of textsOfContent(delta['content'])) append(`${at} content`, text);
  append(`${at} reasoning`, reasoningOf(delta));
  append(`${at} refusal`, delta['refusal']);
  appendCall(append, `${at} call`, asObject(delta['function_call']));
  if (!Array.isArray(delta['tool_calls'])) return;
  for (const call of objectsOf(delta['tool_calls'])) {
    appendCall(append, `${at} call ${typeof call['index'] === 'number' ? call['index'] : 0}`, asObject(call['function']));
  }
}

function appendCall(append: (key: string, text: unknown) => void, key: string, call: JsonObject | null): void {
  append(`${key} name`, call?.['name']);
  append(`${key} arguments`, call?.['arguments']);
}

/** The `data` of each complete event. Lines end in CRLF, LF or CR; the last line without an end was cut and never reached a parser. */
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
  // Providers exist that end the last event with a single line end; clients accept it, so it was delivered.
  if (payload !== null) yield payload;
}

function pushMessage(texts: string[], message: JsonObject): void {
  // Not by spreading: a list of parts can be longer than a call has room for arguments.
  for (const text of textsOfContent(message['content'])) texts.push(text);
  pushText(texts, reasoningOf(message));
  pushText(texts, message['refusal']);
  pushCall(texts, asObject(message['function_call']));
  if (!Array.isArray(message['tool_calls'])) return;
  for (const call of objectsOf(message['tool_calls'])) pushCall(texts, asObject(call['function']) ?? asObject(call['custom']));
}

function pushCall(texts: string[], call: JsonObject | null): void {
  pushText(texts, call?.['name']);
  pushText(texts, call?.['arguments'] ?? call?.['input']);
}

/** Some providers send the same reasoning under both names; it is counted once. */
function reasoningOf(message: JsonObject): unknown {
  return message['reasoning_content'] ?? message['reasoning'];
}

/** Content is a string or a list of parts; parts that are not text (images, audio, files) have no text to count. */
function textsOfContent(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  const texts: string[] = [];
  for (const part of content as unknown[]) {
    if (typeof part === 'string') texts.push(part);
    const object = asObject(part);
    pushText(texts, object?.['text']);
    pushText(texts, object?.['refusal']);
  }
  return texts;
}

/** In a JSON reply that was cut the strings of these fields are read as far as they came. A quote inside a string is escaped, so a match is a key. */
const TEXT_FIELDS = /"(?:content|reasoning_content|refusal|arguments|text|name)"\s*:\s*"/g;

function cutResponseText(body: string): CountableText | null {
  if (!/^\s*\{/.test(body)) return null;
  const texts: string[] = [];
  const fields = new RegExp(TEXT_FIELDS);
  for (let match = fields.exec(body); match !== null; match = fields.exec(body)) {
    const end = endOfString(body, fields.lastIndex);
    pushText(texts, unescape(body.slice(fields.lastIndex, end)));
    fields.lastIndex = end;
  }
  return texts.length === 0 ? null : { texts, formatTokens: 0 };
}

function endOfString(body: string, start: number): number {
  let index = start;
  while (index < body.length && body.charCodeAt(index) !== 0x22) index += body.charCodeAt(index) === 0x5c ? 2 : 1;
  return Math.min(index, body.length);
}

/** A cut can fall inside an escape; what is left of it is dropped. */
function unescape(raw: string): string | null {
  for (const text of [raw, raw.replace(/\\(?:u[0-9a-fA-F]{0,3})?$/, '')]) {
    try {
      return JSON.parse(`"${text}"`) as string;
    } catch {
      // Not a whole string; the second reading is without the broken escape.
    }
  }
  return null;
}

function pushText(texts: string[], value: unknown): boolean {
  if (typeof value !== 'string' || value === '') return false;
  texts.push(value);
  return true;
}

function parseObject(text: string): JsonObject | null {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return null;
  }
}

function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

function objectsOf(values: readonly unknown[]): JsonObject[] {
  return values.map(asObject).filter((value) => value !== null);
}

// Sends the playground's requests. They use an inference key that is valid for fifteen minutes, because the gateway
// accepts no session on routes that generate.

import { type Answer, call, type Refusal, readRefusal } from '../api.ts';
import { ChatStream } from '../logic/chat-stream.ts';
import { parseWithAmounts } from '../logic/exact-json.ts';
import { now } from './clock.ts';
import { headerPrefix, me, organizationId } from './session.ts';

export interface Prompt {
  readonly model: string;
  readonly system: string;
  readonly text: string;
  readonly maxTokens: number;
}

export interface Reply {
  readonly text: string;
  readonly executionId: string | null;
  /** The model that served: the one that auto routing chose, or else the one that was asked for. */
  readonly model: string;
  readonly firstByteMs: number | null;
  /** Time until the reply ended; null while it is arriving. */
  readonly wholeMs: number | null;
  readonly problem: string | null;
}

/** The record of a generation (spec 2.1). Amounts are decimal texts, so that no digit is lost. */
export interface GenerationRecord {
  readonly billing_status: string;
  readonly native_tokens_prompt?: number;
  readonly native_tokens_completion?: number;
  readonly total_cost?: string;
  readonly authorized_amount?: string;
}

/** A key with less time left is not used. This is more than a minute, because `now` is up to a minute behind. */
const KEY_LEFT_MS = 90_000;
/** The current key. `of` names its person and organization: whoever signs in next on this page gets another key. */
let currentKey: { readonly key: string; readonly of: string; readonly endsAtMs: number } | null = null;

async function playgroundKey(): Promise<Answer<string>> {
  const of = `${me()?.user?.id} ${organizationId()}`;
  if (currentKey !== null && currentKey.of === of && currentKey.endsAtMs - now.value.getTime() > KEY_LEFT_MS)
    return { ok: true, data: currentKey.key };
  const made = await call('post', '/v1/console/playground-key');
  if (!made.ok) return made;
  const { key, expires_at: endsAt } = made.data.data;
  currentKey = { key, of, endsAtMs: Date.parse(endsAt) };
  return { ok: true, data: key };
}

export function bodyOf({ model, system, text, maxTokens }: Prompt) {
  const before = system === '' ? [] : [{ role: 'system', content: system }];
  return { model, stream: true, max_tokens: maxTokens, messages: [...before, { role: 'user', content: text }] };
}

/** Sends a prompt, and calls `onReply` with the reply so far after each piece. Returns the refusal, if there is one. */
export async function ask(
  prompt: Prompt,
  onReply: (reply: Reply) => void,
  signal: AbortSignal,
): Promise<Refusal | null> {
  const key = await playgroundKey();
  if (!key.ok) return key.refusal;
  const startedAtMs = performance.now();
  const elapsedMs = () => performance.now() - startedAtMs;
  let reply: Reply = {
    text: '',
    executionId: null,
    model: prompt.model,
    firstByteMs: null,
    wholeMs: null,
    problem: null,
  };
  try {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key.data}`,
        'content-type': 'application/json',
        [`${headerPrefix()}-tag`]: 'playground',
      },
      body: JSON.stringify(bodyOf(prompt)),
      credentials: 'omit',
      signal,
    });
    const executionId = response.headers.get(`${headerPrefix()}-execution-id`);
    reply = { ...reply, executionId, model: response.headers.get(`${headerPrefix()}-routed-model`) ?? prompt.model };
    if (response.status === 401) currentKey = null;
    if (!response.ok || response.body === null) return await readRefusal(response);
    const stream = new ChatStream();
    const add = ({ text, problem }: ReturnType<ChatStream['read']>) => {
      const firstByteMs = reply.firstByteMs ?? elapsedMs();
      reply = { ...reply, text: reply.text + text, problem: reply.problem ?? problem, firstByteMs };
      onReply(reply);
    };
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) add(stream.read(piece.value));
    add(stream.end());
    onReply({ ...reply, wholeMs: elapsedMs() });
  } catch (error) {
    const isEnded = error instanceof DOMException && error.name === 'AbortError';
    onReply({ ...reply, wholeMs: elapsedMs(), problem: isEnded ? 'Stopped.' : 'The reply was cut off.' });
  }
  return null;
}

const AMOUNTS = ['total_cost', 'rated_cost', 'authorized_amount'];
const RECORD_WAIT_SECONDS = 10;

/** The record once the charge is final, or as it stands after ten seconds; null if the gateway has none. */
export async function recordOf(executionId: string): Promise<GenerationRecord | null> {
  const key = await playgroundKey();
  if (!key.ok) return null;
  try {
    const response = await fetch(`/v1/generation?id=${executionId}&wait=${RECORD_WAIT_SECONDS}`, {
      headers: { authorization: `Bearer ${key.data}` },
      credentials: 'omit',
    });
    if (!response.ok) return null;
    return (parseWithAmounts(await response.text(), AMOUNTS) as { readonly data: GenerationRecord }).data;
  } catch {
    return null;
  }
}

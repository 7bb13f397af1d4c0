// The load of a kill run: clients that each note what they saw of every response, and nothing else. Each request's text is unique,
// so that the provider's log shows how often it was really called for it.

import { createHash } from 'node:crypto';
import { seededRandom } from '../support/byte-splits.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { pause } from '../support/waiting.ts';

export interface SeenResponse {
  readonly requestSha256: string;
  /** null: no response head arrived. */
  readonly executionId: string | null;
  readonly status: number | null;
  /** The client has every byte and would call it a success. */
  readonly complete: boolean;
  readonly streamed: boolean;
  /** The provider's id, from the body; null when it did not arrive. */
  readonly providerId: string | null;
  readonly usage: { readonly input: number; readonly cached: number; readonly output: number } | null;
}

export interface Load {
  readonly seen: readonly SeenResponse[];
  /** Lets every open request end, then resolves. */
  stop(): Promise<void>;
}

export function startLoad(options: { url: string; key: string; seed: number; parallel: number }): Load {
  const seen: SeenResponse[] = [];
  let stopping = false;
  let next = 0;
  const random = seededRandom(options.seed);
  const client = async (): Promise<void> => {
    while (!stopping) {
      next += 1;
      const request = makeRequest(next, options.seed, random);
      const response = await send(options.url, options.key, request);
      seen.push(response);
      // A dead gateway refuses at once; without a pause the clients would only spin.
      if (response.status === null) await pause(20);
    }
  };
  const clients = Promise.all(Array.from({ length: options.parallel }, client));
  return {
    seen,
    async stop() {
      stopping = true;
      await clients;
    },
  };
}

interface Request {
  readonly streamed: boolean;
  readonly body: string;
  readonly providerBodySha256: string;
}

function makeRequest(number: number, seed: number, random: () => number): Request {
  const streamed = random() < 0.7;
  const tokens = 1 + Math.floor(random() * 60);
  const delayMs = Math.floor(random() * 6);
  const content = `Kill run ${seed}, request ${number}. [[sim: tokens=${tokens} delay_ms=${delayMs} cached=${Math.floor(random() * 4)}]]`;
  const bodyFor = (model: string): string =>
    JSON.stringify({
      model,
      messages: [{ role: 'user', content }],
      max_tokens: 100,
      ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    });
  return { streamed, body: bodyFor('sim/small'), providerBodySha256: createHash('sha256').update(bodyFor('sim-small')).digest('hex') };
}

async function send(url: string, key: string, request: Request): Promise<SeenResponse> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const answer = await httpCall(`${url}/v1/chat/completions`, { headers, body: request.body }).catch(() => null);
  const base = { requestSha256: request.providerBodySha256, streamed: request.streamed };
  if (answer === null) return { ...base, executionId: null, status: null, complete: false, providerId: null, usage: null };
  const id = answer.headers['x-service-execution-id'];
  return { ...base, executionId: typeof id === 'string' ? id : null, status: answer.status, ...readAnswer(answer, request.streamed) };
}

function readAnswer(answer: HttpAnswer, streamed: boolean): Pick<SeenResponse, 'complete' | 'providerId' | 'usage'> {
  const text = answer.body.toString('utf8');
  const providerId = /"id": ?"(chatcmpl-sim-[^"]+)"/.exec(text)?.[1] ?? null;
  if (!answer.complete || answer.status !== 200) return { complete: false, providerId, usage: null };
  if (streamed && !text.endsWith('data: [DONE]\n\n')) return { complete: false, providerId, usage: null };
  const document = streamed ? lastEvent(text) : text;
  const { usage } = JSON.parse(document) as {
    usage: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details: { cached_tokens: number } };
  };
  const counts = { input: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens, output: usage.completion_tokens };
  return { complete: true, providerId, usage: counts };
}

/** The data of the event before `[DONE]`: the one with usage. */
function lastEvent(text: string): string {
  return text.trimEnd().split('\n\n').at(-2)?.slice('data: '.length) ?? '';
}

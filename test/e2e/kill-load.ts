// The load of a kill run: clients that each note what they saw of every response, and nothing else. Each request has a
// number of its own, in its text and as its client request id, so that the provider's log and the ledger can both be
// read request by request, also where no answer arrived.

import { createHash } from 'node:crypto';
import { Agent, request as httpRequest } from 'node:http';
import { seededRandom } from '../support/byte-splits.ts';
import type { HttpAnswer } from '../support/http-call.ts';
import { pause } from '../support/waiting.ts';
import {
  type CloakAddress,
  guardedWords,
  PROJECT_WORDS,
  readGuardrails,
  type SeenGuardrails,
} from './kill-guardrails.ts';
import { type KillOrganization, REPLY_TOKENS_MAX } from './kill-world.ts';

/** Of every request that sets a limit. */
export const OUTPUT_TOKENS_MAX = 100;

export interface SeenResponse {
  readonly organization: string;
  readonly clientRequestId: string;
  readonly requestSha256: string;
  /** null: no response head arrived. */
  readonly executionId: string | null;
  readonly status: number | null;
  /** The code of a refusal, and when it says to come again. */
  readonly refusal: string | null;
  readonly retryAfter: string | null;
  /** The client has every byte and would call it a success. */
  readonly complete: boolean;
  /** The provider's id, from the body; null when it did not arrive. */
  readonly providerId: string | null;
  readonly usage: { readonly input: number; readonly cached: number; readonly output: number } | null;
  readonly guardrails: SeenGuardrails;
}

export interface Load {
  readonly seen: readonly SeenResponse[];
  /** Requests that were served, whole or cut. */
  served(): number;
  /** Lets every open request end, then resolves. */
  stop(): Promise<void>;
}

/** A dead gateway refuses at once, and so does an empty wallet; without a pause the clients would only spin. */
const DEAD_PAUSE_MS = 20;
const REFUSED_PAUSE_MS = 50;
const STREAMED_SHARE = 0.5;

export interface LoadOptions {
  readonly url: string;
  readonly seed: number;
  readonly organizations: readonly KillOrganization[];
  readonly replyTokensMax?: number;
  /** Of the guarded ones, by slug. */
  readonly cloaks: ReadonlyMap<string, CloakAddress>;
}

export function startLoad(options: LoadOptions): Load {
  const seen: SeenResponse[] = [];
  let served = 0;
  let stopping = false;
  let next = 0;
  const random = seededRandom(options.seed);
  const client = async (organization: KillOrganization): Promise<void> => {
    // A connection of its own, which stays with one process until that dies.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!stopping) {
      next += 1;
      const response = await send(
        options.url,
        organization,
        makeRequest(
          `${options.seed}-${next}`,
          organization,
          random,
          options.cloaks.get(organization.slug),
          options.replyTokensMax,
        ),
        agent,
      );
      seen.push(response);
      if (response.status === 200) served += 1;
      if (response.status === null) await pause(DEAD_PAUSE_MS);
      else if (response.status !== 200) await pause(REFUSED_PAUSE_MS);
    }
    agent.destroy();
  };
  const clients = Promise.all(
    options.organizations.flatMap((organization) =>
      Array.from({ length: organization.clients }, () => client(organization)),
    ),
  );
  return {
    seen,
    served: () => served,
    async stop() {
      stopping = true;
      await clients;
    },
  };
}

/** How often each answer came; `roomy`: organizations that nothing limits, the answers of the others stand apart. */
export function countAnswers(seen: readonly SeenResponse[], roomy: ReadonlySet<string>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { organization, status, refusal } of seen) {
    const who = roomy.has(organization) ? '' : 'limited: ';
    const answer = `${who}${status === null ? 'no answer' : status === 200 ? '200' : `${status} ${refusal}`}`;
    counts[answer] = (counts[answer] ?? 0) + 1;
  }
  return counts;
}

/** One request of an organization outside the load, on a connection of its own. */
export async function askOnce(
  url: string,
  organization: KillOrganization,
  clientRequestId: string,
  cloak?: CloakAddress,
): Promise<SeenResponse> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const request = makeRequest(clientRequestId, organization, () => 0, cloak);
  try {
    return await send(url, organization, request, agent);
  } finally {
    agent.destroy();
  }
}

interface NumberedRequest {
  readonly id: string;
  readonly streamed: boolean;
  readonly body: string;
  readonly providerBodySha256: string;
}

/**
 * `id`: of this request alone, in its text and as its client request id. `cloak`: of an organization whose policy
 * changes what the provider is sent.
 */
export function makeRequest(
  id: string,
  { delayMsMax, setsLimit }: Pick<KillOrganization, 'delayMsMax' | 'setsLimit'>,
  random: () => number,
  cloak?: CloakAddress,
  replyTokensMax = REPLY_TOKENS_MAX,
): NumberedRequest {
  const streamed = random() < STREAMED_SHARE;
  const tokens = 1 + Math.floor(random() * replyTokensMax);
  // Half of the answers come as fast as they can.
  const delayMs = Math.max(0, Math.ceil((random() * 2 - 1) * delayMsMax));
  const content =
    `Kill run, request ${id}. [[sim: ` + `tokens=${tokens} delay_ms=${delayMs} cached=${Math.floor(random() * 4)}]]`;
  const words = cloak === undefined ? null : guardedWords(id, random);
  const bodyFor = (model: string, said: string): string =>
    JSON.stringify({
      model,
      messages: [{ role: 'user', content: content + said }],
      ...(setsLimit ? { max_tokens: OUTPUT_TOKENS_MAX } : {}),
      ...(words === null ? {} : { tools: [{ type: 'function', function: { name: 'note' } }] }),
      ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    });
  const said = words?.textFor(words.address, PROJECT_WORDS.written) ?? '';
  const forwarded =
    words === null || cloak === undefined ? '' : words.textFor(cloak(words.address), PROJECT_WORDS.masked);
  return {
    id,
    streamed,
    body: bodyFor('sim/small', said),
    providerBodySha256: createHash('sha256').update(bodyFor('sim-small', forwarded)).digest('hex'),
  };
}

export async function send(
  url: string,
  { slug, key }: Pick<KillOrganization, 'slug' | 'key'>,
  request: NumberedRequest,
  agent: Agent,
): Promise<SeenResponse> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-client-request-id': request.id,
  };
  const answer = await post(`${url}/v1/chat/completions`, headers, request.body, agent).catch(() => null);
  const asked = { organization: slug, clientRequestId: request.id, requestSha256: request.providerBodySha256 };
  if (answer === null)
    return {
      ...asked,
      executionId: null,
      status: null,
      refusal: null,
      retryAfter: null,
      complete: false,
      providerId: null,
      usage: null,
      guardrails: readGuardrails('', request.id),
    };
  const id = answer.headers['x-service-execution-id'];
  const { status } = answer;
  const said = { refusal: refusalOf(answer), retryAfter: answer.headers['retry-after'] ?? null };
  return {
    ...asked,
    executionId: typeof id === 'string' ? id : null,
    status,
    ...said,
    ...readAnswer(answer, request.streamed),
    guardrails: readGuardrails(answer.body.toString('utf8'), request.id),
  };
}

/** Rejects when the connection ends before a status line. */
function post(url: string, headers: Readonly<Record<string, string>>, body: string, agent: Agent): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { method: 'POST', agent, headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) } },
      (response) => {
        const chunks: Buffer[] = [];
        const done = (complete: boolean): void =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
            complete,
          });
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => done(response.complete));
        response.on('error', () => done(false));
      },
    );
    request.on('error', reject).end(body);
  });
}

function refusalOf({ status, body }: HttpAnswer): string | null {
  if (status === 200) return null;
  try {
    const { error } = JSON.parse(body.toString()) as { error: string | { code: string } };
    return typeof error === 'string' ? error : error.code;
  } catch {
    return null;
  }
}

function readAnswer(answer: HttpAnswer, streamed: boolean): Pick<SeenResponse, 'complete' | 'providerId' | 'usage'> {
  const text = answer.body.toString('utf8');
  const found = /"id": ?"(chatcmpl-sim-[^"]+)"/.exec(text)?.[1];
  // Of its own: a part of a string keeps all of it, and a long run would keep every body.
  const providerId = found === undefined ? null : Buffer.from(found).toString();
  if (!answer.complete || answer.status !== 200) return { complete: false, providerId, usage: null };
  if (streamed && !text.endsWith('data: [DONE]\n\n')) return { complete: false, providerId, usage: null };
  const document = streamed ? lastEvent(text) : text;
  const { usage } = JSON.parse(document) as {
    usage: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details: { cached_tokens: number } };
  };
  const counts = {
    input: usage.prompt_tokens,
    cached: usage.prompt_tokens_details.cached_tokens,
    output: usage.completion_tokens,
  };
  return { complete: true, providerId, usage: counts };
}

/** The data of the event before `[DONE]`: the one with usage. */
function lastEvent(text: string): string {
  return text.trimEnd().split('\n\n').at(-2)?.slice('data: '.length) ?? '';
}

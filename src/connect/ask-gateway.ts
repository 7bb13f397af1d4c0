// Asks a gateway as a tool would: which models a key may use, and one short request with what it cost.

import { Agent, request } from 'undici';
import type { ConnectedModel, Tool } from './tools.ts';

const ASKING_MS = 60_000;
const EXCERPT_CHARACTERS = 300;
const CHECK_MAX_TOKENS = 64;

type Fields = Readonly<Record<string, unknown>>;

export type GatewayResult<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly reason: string };

export interface CheckedRequest {
  /** The model that served. */
  readonly model: string;
  /** In USD, as the gateway writes it; null: the gateway does not say. */
  readonly cost: string | null;
  /** True: auto routing chose the model; false: the request named it. */
  readonly isRouted: boolean;
  readonly executionId: string | null;
}

interface Answer {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export async function askModels(url: string, key: string): Promise<GatewayResult<readonly ConnectedModel[]>> {
  const answer = await ask(`${url}/v1/models`, key, null);
  if (!answer.ok) return answer;
  const { data } = fieldsOf(answer.value.text);
  if (!Array.isArray(data)) return { ok: false, reason: `${url}/v1/models is no list of models` };
  return { ok: true, value: data.flatMap(readModel) };
}

/** Sends one request on the tool's own API, then asks for the record of its cost. */
export async function checkRequest(
  url: string,
  key: string,
  api: Tool['api'],
  model: string,
): Promise<GatewayResult<CheckedRequest>> {
  const { path, body } = CHECKS[api];
  const answer = await ask(`${url}/v1${path}`, key, { model, ...body });
  if (!answer.ok) return answer;
  const { headers, text } = answer.value;
  const executionId = headerEnding(headers, '-execution-id');
  const routed = headerEnding(headers, '-routed-model');
  const served = fieldsOf(text)['model'];
  const record = executionId === null ? null : await ask(`${url}/v1/generation?id=${executionId}&wait=10`, key, null);
  const cost = /"total_cost"\s*:\s*"?([\d.eE+-]+)/.exec(record?.ok === true ? record.value.text : '')?.[1];
  return {
    ok: true,
    value: {
      model: routed ?? (typeof served === 'string' ? served : model),
      cost: cost ?? null,
      isRouted: routed !== null,
      executionId,
    },
  };
}

/** Sends a Chat Completions request, and returns the text of the model's answer. */
export async function askChat(url: string, key: string, body: Fields): Promise<GatewayResult<string>> {
  const answer = await ask(`${url}/v1/chat/completions`, key, body);
  if (!answer.ok) return answer;
  const { choices } = fieldsOf(answer.value.text) as { readonly choices?: readonly { readonly message?: Fields }[] };
  const content = choices?.[0]?.message?.['content'];
  if (typeof content === 'string') return { ok: true, value: content };
  return { ok: false, reason: `${url} answers without a text: ${answer.value.text.slice(0, EXCERPT_CHARACTERS)}` };
}

const PROMPT = 'Answer with the word "connected".';
const CHECKS: Readonly<Record<Tool['api'], { readonly path: string; readonly body: Fields }>> = {
  chat_completions: {
    path: '/chat/completions',
    body: { max_tokens: CHECK_MAX_TOKENS, messages: [{ role: 'user', content: PROMPT }] },
  },
  responses: { path: '/responses', body: { max_output_tokens: CHECK_MAX_TOKENS, input: PROMPT } },
  messages: {
    path: '/messages',
    body: { max_tokens: CHECK_MAX_TOKENS, messages: [{ role: 'user', content: PROMPT }] },
  },
};

/** `body` null sends a GET. Any status but 200 becomes a reason that quotes the beginning of the answer. */
async function ask(url: string, key: string, body: Fields | null): Promise<GatewayResult<Answer>> {
  const agent = new Agent({ allowH2: false });
  try {
    const reply = await request(url, {
      dispatcher: agent,
      method: body === null ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'anthropic-version': '2023-06-01',
        ...(body === null ? {} : { 'content-type': 'application/json' }),
      },
      body: body === null ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(ASKING_MS),
    });
    const text = await reply.body.text();
    if (reply.statusCode !== 200)
      return { ok: false, reason: `${url} answers ${reply.statusCode}: ${text.slice(0, EXCERPT_CHARACTERS)}` };
    return { ok: true, value: { headers: reply.headers, text } };
  } catch (error) {
    return { ok: false, reason: `${url} cannot be asked: ${(error as Error).message}` };
  } finally {
    await agent.destroy();
  }
}

function fieldsOf(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

/** Finds a header by its ending, because the middle of its name is the installation's brand. */
function headerEnding(headers: Answer['headers'], end: string): string | null {
  const [, value] = Object.entries(headers).find(([name]) => name.startsWith('x-') && name.endsWith(end)) ?? [];
  return typeof value === 'string' ? value : null;
}

function readModel(found: unknown): ConnectedModel[] {
  const fields = (typeof found === 'object' && found !== null ? found : {}) as Fields;
  const { id, display_name: name, context_length: context, max_output_tokens: output, apis } = fields;
  if (typeof id !== 'string') return [];
  return [
    {
      id,
      name: typeof name === 'string' ? name : id,
      contextLength: typeof context === 'number' ? context : null,
      maxOutputTokens: typeof output === 'number' ? output : null,
      apis: Array.isArray(apis) ? apis.filter((api) => typeof api === 'string') : [],
    },
  ];
}

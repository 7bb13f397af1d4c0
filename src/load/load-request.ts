// The one request that a load repeats in each API, streamed or not, and how to recognize the end of its stream.

import { Buffer } from 'node:buffer';

export interface LoadRequest {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly whole: Buffer;
  readonly streamed: Buffer;
  /** The beginning of one of the lines of a stream's last event. */
  readonly endLine: string;
}

interface Api {
  readonly path: string;
  readonly endLine: string;
  readonly body: (prompt: string, maxTokens: number | null) => Readonly<Record<string, unknown>>;
}

/** A provider of Messages refuses a request without a limit. */
const MESSAGES_MAX_TOKENS = 64;

export const LOAD_APIS: Readonly<Record<string, Api>> = {
  chat_completions: {
    path: '/chat/completions',
    endLine: 'data: [DONE]',
    body: (prompt, limit) => ({
      messages: [{ role: 'user', content: prompt }],
      ...(limit === null ? {} : { max_tokens: limit }),
    }),
  },
  responses: {
    path: '/responses',
    endLine: 'event: response.completed',
    body: (prompt, limit) => ({ input: prompt, ...(limit === null ? {} : { max_output_tokens: limit }) }),
  },
  messages: {
    path: '/messages',
    endLine: 'event: message_stop',
    body: (prompt, limit) => ({
      max_tokens: limit ?? MESSAGES_MAX_TOKENS,
      messages: [{ role: 'user', content: prompt }],
    }),
  },
};

export interface LoadRequestParams {
  /** An address with or without a path; without one, the API is called below /v1. */
  readonly target: URL;
  /** A name in LOAD_APIS. */
  readonly api: string;
  readonly key: string;
  readonly model: string;
  readonly prompt: string;
  readonly maxTokens: number | null;
}

export function buildLoadRequest({ target, api, key, model, prompt, maxTokens }: LoadRequestParams): LoadRequest {
  const known = LOAD_APIS[api];
  if (known === undefined) throw new Error(`no API is called ${api}`);
  const base = target.pathname.replace(/\/+$/, '');
  const body = { model, ...known.body(prompt, maxTokens) };
  return {
    origin: target.origin,
    path: `${base === '' ? '/v1' : base}${known.path}`,
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      ...(api === 'messages' ? { 'x-api-key': key, 'anthropic-version': '2023-06-01' } : {}),
    },
    whole: Buffer.from(JSON.stringify(body)),
    streamed: Buffer.from(JSON.stringify({ ...body, stream: true })),
    endLine: known.endLine,
  };
}

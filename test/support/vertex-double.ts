// A double of Google's Vertex AI, as far as the presets vertex and vertex-anthropic call it, and of the endpoint that
// issues its tokens. It checks what Google would check: the signature of the account, the bearer, the path, the body's
// members.

import { verify } from 'node:crypto';
import { type FakeUpstream, type ReceivedRequest, type Script, startFakeUpstream } from './fake-upstream.ts';
import { SERVICE_ACCOUNT_KEY, SERVICE_ACCOUNT_PUBLIC_KEY } from './google-account-key.ts';

const ACCOUNT = 'gateway@acme-1.iam.gserviceaccount.com';
const LOCATION = '/v1/projects/acme-1/locations/global';

export interface VertexDouble {
  readonly upstream: FakeUpstream;
  /** The tokens that were issued. */
  readonly tokens: readonly string[];
  /** The JSON of the account's key. */
  readonly credentials: string;
  readonly baseUrls: { readonly vertex: string; readonly anthropic: string };
}

export async function startVertexDouble(): Promise<VertexDouble> {
  const tokens: string[] = [];
  const upstream = await startFakeUpstream((request) =>
    request.path === '/token' ? giveToken(request, upstream.url, tokens) : answer(request, tokens),
  );
  const key = {
    type: 'service_account',
    client_email: ACCOUNT,
    private_key: SERVICE_ACCOUNT_KEY,
    private_key_id: 'k1',
  };
  return {
    upstream,
    tokens,
    credentials: JSON.stringify({ ...key, token_uri: `${upstream.url}/token` }),
    baseUrls: {
      vertex: `${upstream.url}${LOCATION}/endpoints/openapi`,
      anthropic: `${upstream.url}${LOCATION}/publishers/anthropic/models`,
    },
  };
}

const json = (status: number, body: unknown): Script => ({
  status,
  headers: [['content-type', 'application/json; charset=UTF-8']],
  body: JSON.stringify(body),
});
/** An error in Google's form; its OpenAI endpoint puts errors into a list. */
const googleError = (code: number, status: string, message: string): Script =>
  json(code, [{ error: { code, message, status } }]);

function giveToken({ body }: ReceivedRequest, url: string, tokens: string[]): Script {
  const form = new URLSearchParams(body.toString());
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const signed = Buffer.from(`${header}.${claims}`);
  const { iss, aud, scope } = JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}') as Record<
    string,
    unknown
  >;
  const isSigned = verify('RSA-SHA256', signed, SERVICE_ACCOUNT_PUBLIC_KEY, Buffer.from(signature, 'base64url'));
  if (!isSigned || iss !== ACCOUNT || aud !== `${url}/token` || typeof scope !== 'string')
    return json(400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' });
  tokens.push(`ya29.double-${tokens.length + 1}`);
  return json(200, { access_token: tokens.at(-1), expires_in: 3_599, token_type: 'Bearer' });
}

function answer(request: ReceivedRequest, tokens: readonly string[]): Script {
  const [, bearer = ''] = /^Bearer (.+)$/.exec(request.header('authorization') ?? '') ?? [];
  if (!tokens.includes(bearer))
    return googleError(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
  const body = JSON.parse(request.body.toString()) as Readonly<Record<string, unknown>>;
  const { path } = request;
  if (path === `${LOCATION}/endpoints/openapi/chat/completions`) {
    if (!String(body['model']).startsWith('google/'))
      return googleError(400, 'INVALID_ARGUMENT', 'Malformed publisher');
    return json(200, {
      id: 'c1',
      object: 'chat.completion',
      model: body['model'],
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
  }
  if (body['anthropic_version'] !== 'vertex-2023-10-16')
    return json(400, anthropicError('anthropic_version: Field required'));
  if (path === `${LOCATION}/publishers/anthropic/models/count-tokens:rawPredict`)
    return typeof body['model'] === 'string'
      ? json(200, { input_tokens: 7 })
      : json(400, anthropicError('model: required'));
  if (body['model'] !== undefined) return json(400, anthropicError('model: Extra inputs are not permitted'));
  const isStream = body['stream'] === true;
  const models = `${LOCATION}/publishers/anthropic/models/claude-opus-5%4020260701`;
  if (path !== `${models}:${isStream ? 'streamRawPredict' : 'rawPredict'}`)
    return googleError(404, 'NOT_FOUND', 'Publisher Model was not found.');
  return isStream ? { headers: [['content-type', 'text/event-stream']], body: EVENTS } : json(200, MESSAGE);
}

const anthropicError = (message: string) => ({ type: 'error', error: { type: 'invalid_request_error', message } });

const MESSAGE = {
  id: 'msg_vrtx_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-5',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};

const EVENTS = [
  {
    type: 'message_start',
    message: { ...MESSAGE, content: [], stop_reason: null, usage: { input_tokens: 3, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join('');

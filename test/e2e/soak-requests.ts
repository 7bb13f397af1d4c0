// The requests of a soak, drawn from a seed: every API whole and streamed, auto routing, saved responses, look-ups,
// uploads, wrong keys, bodies and models, clients that leave, read slowly or stop reading, providers that fail. Each
// has a number of its own in its text, so that the provider's log and the ledger can be read request by request.

import { createHash } from 'node:crypto';
import { writeForm } from '../support/multipart-forms.ts';
import type { KillOrganization } from './kill-world.ts';
import { SOAK_ORGANIZATIONS } from './soak-world.ts';

/** How its client reads the reply. */
export type Reading =
  | { readonly kind: 'all' }
  | { readonly kind: 'slowly' }
  | { readonly kind: 'leaves'; readonly afterEvents: number }
  /** After the first piece it takes nothing more, until it looks again what came. */
  | { readonly kind: 'stops'; readonly forMs: number };

/** What the client must see: a whole reply, one of these statuses, or nothing that looks whole unless it is. */
export type Expected = 'whole' | 'anything' | readonly number[];

export interface SoakRequest {
  readonly id: string;
  readonly sort: string;
  readonly organization: string;
  readonly key: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly contentType: string | null;
  readonly body: Buffer | string | null;
  /** SHA-256 of what the provider may be sent for it; none: it never is. */
  readonly hashes: readonly string[];
  readonly streamed: boolean;
  readonly reading: Reading;
  readonly expected: Expected;
}

/** What earlier requests left behind for later ones to ask for. */
export interface SoakMemory {
  /** Executions, each with the organization's slug. */
  readonly executions: { readonly id: string; readonly organization: string; readonly sinceMs: number }[];
  readonly responses: { readonly id: string; readonly organization: string; readonly sinceMs: number }[];
  readonly files: { readonly id: string; readonly organization: string; readonly sinceMs: number }[];
}

type Random = () => number;

const APIS = {
  chat: { path: '/v1/chat/completions', words: (text: string) => ({ messages: [{ role: 'user', content: text }] }) },
  responses: { path: '/v1/responses', words: (text: string) => ({ input: text }) },
  messages: { path: '/v1/messages', words: (text: string) => ({ messages: [{ role: 'user', content: text }] }) },
} as const;
type TextApi = keyof typeof APIS;
const TEXT_APIS = Object.keys(APIS) as TextApi[];

const FAULTS = [
  'status=400',
  'status=500',
  'status=503',
  'status=429 retry_after=1',
  'cut_after=5',
  'reset_after=5',
  'cut_mid_event=4',
  'stall_after=4',
  'end_after=6',
  'error_after=3',
  'no_done',
  'no_usage',
  'usage=negative',
  'usage=string',
  'reset_before_reply',
  'close_before_reply',
  'blackhole',
  'split_utf8',
];
/** More than the buffers of sockets on the way take. */
const UNREAD_TOKENS = 100_000;
const EVENT_GAP_MS = 500;
const UPLOAD_BYTES_MAX = 60_000;
const BOUNDARY = 'a-boundary-of-a-soak';
const WRONG_KEY = `tg-test-nobody-${'n'.repeat(40)}`;
/** What was answered is posted well within it, also on a busy machine. */
const POSTED_MS = 10_000;

interface Draft {
  readonly id: string;
  readonly random: Random;
  readonly organization: KillOrganization;
  readonly memory: SoakMemory;
}

/** Each sort of request with its share of all. One that has nothing to ask for yet is a chat. */
const SORTS: readonly (readonly [share: number, sort: string, make: (draft: Draft) => SoakRequest | null])[] = [
  [18, 'chat', (draft) => text(draft, 'chat', {})],
  [14, 'chat streamed', (draft) => text(draft, 'chat', { streamed: true })],
  [6, 'chat streamed without usage', (draft) => text(draft, 'chat', { streamed: true, withUsage: false })],
  [7, 'responses', (draft) => text(draft, 'responses', {})],
  [2, 'responses continued', continued],
  [7, 'responses streamed', (draft) => text(draft, 'responses', { streamed: true })],
  [6, 'messages', (draft) => text(draft, 'messages', {})],
  [7, 'messages streamed', (draft) => text(draft, 'messages', { streamed: true })],
  [3, 'count tokens', countTokens],
  [4, 'embeddings', (draft) => typed(draft, '/v1/embeddings', 'embedding', (said) => ({ input: said }))],
  [4, 'systemone', (draft) => typed(draft, '/v1/systemone', 'judge', asked)],
  [1, 'images', (draft) => typed(draft, '/v1/images/generations', 'image', (prompt) => ({ prompt, quality: 'low' }))],
  [6, 'auto', (draft) => text(draft, draw(draft, TEXT_APIS), { isAuto: true, streamed: draft.random() < 0.5 })],
  [5, 'look-up', ({ memory, ...draft }) => fetched(draft, memory.executions, (id) => `/v1/generation?id=${id}`)],
  [1, 'saved response', ({ memory, ...draft }) => fetched(draft, memory.responses, (id) => `/v1/responses/${id}`)],
  [1, 'upload', upload],
  [1, 'download', ({ memory, ...draft }) => fetched(draft, memory.files, (id) => `/v1/media/${id}`)],
  [2, 'wrong key', (draft) => ({ ...refusedText(draft, {}), key: WRONG_KEY, expected: [401] })],
  [1, 'wrong body', (draft) => ({ ...refusedText(draft, {}), body: '{"model": "sim/small", ', expected: [400] })],
  [1, 'wrong model', (draft) => ({ ...refusedText(draft, { model: 'nobody' }), expected: [404] })],
  [3, 'leaves', leaves],
  [4, 'failing', failing],
];
const SHARES = SORTS.reduce((sum, [share]) => sum + share, 0);

export function drawRequest(id: string, random: Random, memory: SoakMemory): SoakRequest {
  const organization = SOAK_ORGANIZATIONS[Math.floor(random() * SOAK_ORGANIZATIONS.length)] as KillOrganization;
  const draft = { id, random, organization, memory };
  let rest = random() * SHARES;
  for (const [share, sort, make] of SORTS) {
    rest -= share;
    if (rest >= 0) continue;
    const made = make(draft);
    if (made !== null) return { ...made, sort };
    break;
  }
  return text(draft, 'chat', {});
}

/**
 * A stream of two events a second that is over before the run is; some clients leave in its midst, some read slowly.
 */
export function drawLongStream(id: string, random: Random, memory: SoakMemory, msLeft: number): SoakRequest {
  const organization = SOAK_ORGANIZATIONS[Math.floor(random() * SOAK_ORGANIZATIONS.length)] as KillOrganization;
  const draft = { id, random, organization, memory };
  const tokens = Math.max(1, Math.min(20 + Math.floor(random() * 160), Math.floor(msLeft / EVENT_GAP_MS)));
  const words = `tokens=${tokens} delay_ms=${EVENT_GAP_MS}`;
  const made = text(draft, draw(draft, TEXT_APIS), { streamed: true, words });
  const kind = random();
  if (kind < 0.1) return { ...made, sort: 'long, leaves', ...leavesAfter(Math.floor(random() * tokens)) };
  if (kind < 0.15) return { ...made, sort: 'long, reads slowly', reading: { kind: 'slowly' } };
  return { ...made, sort: 'long' };
}

/** A client that stops reading in the midst of a large stream. */
export function makeUnread(id: string, random: Random, memory: SoakMemory, forMs: number): SoakRequest {
  const organization = SOAK_ORGANIZATIONS[0] as KillOrganization;
  const words = `tokens=${UNREAD_TOKENS} delay_ms=0`;
  const made = text({ id, random, organization, memory }, 'chat', { streamed: true, model: 'impatient', words });
  return { ...made, sort: 'stops reading', reading: { kind: 'stops', forMs }, expected: 'anything' };
}

interface TextOptions {
  readonly streamed?: boolean;
  readonly withUsage?: boolean;
  readonly isAuto?: boolean;
  readonly model?: string;
  /** Directives for the provider in the place of some tokens at once. */
  readonly words?: string;
  readonly more?: Readonly<Record<string, unknown>>;
}

function text({ id, random, organization }: Draft, api: TextApi, options: TextOptions): SoakRequest {
  const { streamed = false, withUsage = true, isAuto = false } = options;
  const models = isAuto ? ['small', 'large'] : [options.model ?? (random() < 0.5 ? 'small' : 'large')];
  const directives = options.words ?? `tokens=${1 + Math.floor(random() * 60)} delay_ms=${Math.floor(random() * 6)}`;
  const said = `Soak, request ${id}. [[sim/text: ${directives}]]`;
  const limit = options.words?.includes(`tokens=${UNREAD_TOKENS}`) ? UNREAD_TOKENS : 400;
  const bodyFor = (model: string): string =>
    JSON.stringify({
      model,
      ...APIS[api].words(said),
      ...(api === 'responses' ? { max_output_tokens: limit } : { max_tokens: limit }),
      ...(streamed ? { stream: true } : {}),
      ...(streamed && withUsage && api === 'chat' ? { stream_options: { include_usage: true } } : {}),
      ...options.more,
    });
  return {
    ...sentBy(id, organization),
    path: APIS[api].path,
    body: bodyFor(isAuto ? 'service/auto' : `sim/${models[0]}`),
    hashes: models.map((model) => sha256(bodyFor(`${model}-1`))),
    streamed,
  };
}

function sentBy(id: string, { slug, key }: KillOrganization) {
  return {
    id,
    sort: 'chat',
    organization: slug,
    key,
    method: 'POST' as const,
    contentType: 'application/json',
    streamed: false,
    hashes: [],
    reading: { kind: 'all' } as Reading,
    expected: 'whole' as Expected,
  };
}

function continued(draft: Draft): SoakRequest | null {
  const previous = pick(draft, draft.memory.responses);
  return previous === null ? null : text(draft, 'responses', { more: { previous_response_id: previous } });
}

function countTokens({ id, organization }: Draft): SoakRequest {
  const bodyFor = (model: string) =>
    JSON.stringify({ model, messages: [{ role: 'user', content: `Soak, request ${id}.` }] });
  const path = '/v1/messages/count_tokens';
  return { ...sentBy(id, organization), path, body: bodyFor('sim/small'), hashes: [sha256(bodyFor('small-1'))] };
}

function typed({ id, organization }: Draft, path: string, model: string, words: (said: string) => object): SoakRequest {
  const bodyFor = (name: string) => JSON.stringify({ model: name, ...words(`Soak, request ${id}.`) });
  return { ...sentBy(id, organization), path, body: bodyFor(`sim/${model}`), hashes: [sha256(bodyFor(`${model}-1`))] };
}

function asked(state: string): object {
  const criteria = { yes: null, no: null };
  return { state, questions: { q: { type: 'choice', instructions: 'Is it?', criteria } } };
}

function fetched(
  { id, random, organization }: Omit<Draft, 'memory'>,
  kept: readonly { readonly id: string; readonly organization: string; readonly sinceMs: number }[],
  pathOf: (id: string) => string,
): SoakRequest | null {
  const found = pick({ random, organization }, kept);
  if (found === null) return null;
  const sent = sentBy(id, organization);
  return { ...sent, method: 'GET', path: pathOf(found), contentType: null, body: null };
}

/** One of the organization's own; null where there is none that everybody knows of by now. */
function pick(
  { random, organization }: Pick<Draft, 'random' | 'organization'>,
  kept: readonly { readonly id: string; readonly organization: string; readonly sinceMs: number }[],
): string | null {
  const known = performance.now() - POSTED_MS;
  const own = kept.filter((one) => one.organization === organization.slug && one.sinceMs < known);
  return own[Math.floor(random() * own.length)]?.id ?? null;
}

/** Half of them are files that were uploaded before. */
function upload({ id, random, organization }: Draft): SoakRequest {
  const number = random() < 0.5 ? String(Math.floor(random() * 30)) : id;
  const seed = createHash('sha256').update(number).digest();
  const value = Buffer.alloc(1 + Math.floor(random() * UPLOAD_BYTES_MAX), seed);
  const body = writeForm(BOUNDARY, [{ name: 'file', filename: 'a.bin', value }]);
  const contentType = `multipart/form-data; boundary=${BOUNDARY}`;
  return { ...sentBy(id, organization), path: '/v1/media/upload', contentType, body };
}

/** Never comes to a provider. */
function refusedText(draft: Draft, options: TextOptions): SoakRequest {
  return { ...text(draft, 'chat', options), hashes: [] };
}

function leaves(draft: Draft): SoakRequest {
  const tokens = 10 + Math.floor(draft.random() * 40);
  const words = `tokens=${tokens} delay_ms=10`;
  const made = text(draft, draw(draft, TEXT_APIS), { streamed: true, words });
  return { ...made, ...leavesAfter(Math.floor(draft.random() * tokens)) };
}

function leavesAfter(afterEvents: number): Pick<SoakRequest, 'reading' | 'expected'> {
  return { reading: { kind: 'leaves', afterEvents }, expected: 'anything' };
}

function failing(draft: Draft): SoakRequest {
  const api = draw(draft, TEXT_APIS);
  const words = `tokens=12 delay_ms=5 ${FAULTS[Math.floor(draft.random() * FAULTS.length)]}`;
  const made = text(draft, api, { streamed: draft.random() < 0.7, model: 'failing', words });
  return { ...made, expected: 'anything' };
}

function draw<T>({ random }: Pick<Draft, 'random'>, among: readonly T[]): T {
  return among[Math.floor(random() * among.length)] as T;
}

function sha256(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

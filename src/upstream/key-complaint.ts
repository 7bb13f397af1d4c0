// Tells from a provider's reply whether the provider refuses the key of the call. Clients must not see that the
// operator's key is refused. A 401 is a refusal by its status alone, and a 402 says that the account is out of credit;
// a 400 or 403 is a refusal only in known wordings. Wordings are looked for only in fields that the provider writes
// itself, never in text that may quote the request.

import type { Buffer } from 'node:buffer';
import type { KeyRefusalWording } from '../domain/models/provider.ts';

/** The limit of a reply that is examined; a longer one is not a complaint about a key. */
export const EXAMINED_BYTES_MAX = 16_384;

/** What is wrong: the key itself, the account's credit, or what the key may be used for. */
export type Complaint = 'key' | 'billing' | 'scope';

interface KnownWording extends Omit<KeyRefusalWording, 'status'> {
  readonly status: 400 | 401 | 403 | 404 | 429;
  /** Absent: `key`. */
  readonly means?: Complaint;
}

/** Wordings that count for every provider; a provider's configuration may add its own. */
const WORDINGS: readonly KnownWording[] = [
  // Gemini: the key is unknown, expired, reported as leaked, suspended, or not allowed for the API or from this
  // address. Some messages contain the key.
  { status: 400, in: 'word', text: 'API_KEY_INVALID' },
  { status: 400, in: 'message', text: 'API key not valid' },
  { status: 400, in: 'message', text: 'API key not found' },
  { status: 400, in: 'message', text: 'API key expired' },
  { status: 403, in: 'word', text: 'API_KEY_INVALID' },
  { status: 403, in: 'word', text: 'API_KEY_SERVICE_BLOCKED' },
  { status: 403, in: 'word', text: 'API_KEY_HTTP_REFERRER_BLOCKED' },
  { status: 403, in: 'word', text: 'API_KEY_IP_ADDRESS_BLOCKED' },
  { status: 403, in: 'word', text: 'CONSUMER_INVALID' },
  { status: 403, in: 'word', text: 'CONSUMER_SUSPENDED' },
  { status: 403, in: 'word', text: 'SERVICE_DISABLED', means: 'scope' },
  // Vertex AI: the account behind the token may not do this, or its project is not paid; messages contain the project.
  { status: 403, in: 'word', text: 'IAM_PERMISSION_DENIED', means: 'scope' },
  { status: 403, in: 'word', text: 'BILLING_DISABLED', means: 'billing' },
  { status: 403, in: 'word', text: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT', means: 'scope' },
  { status: 403, in: 'message', text: 'Permission denied: Consumer', means: 'scope' },
  { status: 403, in: 'message', text: "Method doesn't allow unregistered callers" },
  // xAI.
  { status: 400, in: 'message', text: 'Incorrect API key' },
  { status: 403, in: 'message', text: 'Incorrect API key' },
  { status: 403, in: 'message', text: 'Your team', means: 'billing' },
  // Anthropic: the key may not do this, in this workspace or at all.
  { status: 403, in: 'word', text: 'permission_error', means: 'scope' },
  { status: 400, in: 'message', text: 'This organization has been disabled' },
  { status: 400, in: 'message', text: 'Your credit balance is too low', means: 'billing' },
  // OpenAI: a restricted key, or a project without the model.
  { status: 401, in: 'message', text: 'You have insufficient permissions for this operation', means: 'scope' },
  { status: 403, in: 'message', text: 'You have insufficient permissions for this operation', means: 'scope' },
  { status: 403, in: 'message', text: 'Project `', means: 'scope' },
  { status: 403, in: 'word', text: 'invalid_api_key' },
  // OpenAI and those that speak like it: the account has spent what it may. Azure: the account has no such deployment.
  { status: 429, in: 'word', text: 'insufficient_quota', means: 'billing' },
  { status: 404, in: 'word', text: 'DeploymentNotFound', means: 'scope' },
  // Azure: the resource is closed to the network of this gateway.
  { status: 403, in: 'message', text: 'Public access is disabled', means: 'scope' },
  { status: 403, in: 'message', text: 'Access denied due to Virtual Network/Firewall rules', means: 'scope' },
  // OpenRouter.
  { status: 403, in: 'message', text: 'Key limit exceeded', means: 'billing' },
  // AWS; the last message contains the account and the role.
  { status: 403, in: 'message', text: 'Authentication failed' },
  { status: 403, in: 'message', text: 'The security token included in the request' },
  { status: 403, in: 'message', text: 'User: arn:', means: 'scope' },
  // Many other providers.
  { status: 400, in: 'word', text: 'invalid_api_key' },
  { status: 400, in: 'message', text: 'Invalid API key' },
  { status: 403, in: 'message', text: 'Invalid API key' },
  { status: 403, in: 'message', text: 'API key' },
  { status: 403, in: 'message', text: 'Your API key' },
  { status: 403, in: 'message', text: 'The API key' },
];

/**
 * Why the key of a call is refused; null: it is not. `body`: what has arrived of the reply's body; if it is incomplete,
 * the status alone decides. `own`: the wordings of this provider.
 */
export function keyRefusalOf(status: number, body: Buffer, own: readonly KeyRefusalWording[] = []): Complaint | null {
  if (status === 402) return 'billing';
  return complaintOf(status, body, own) ?? (status === 401 ? 'key' : null);
}

/**
 * Statuses of replies whose text may be about the key. With the operator's key, a 404 or 429 never gets here
 * (`mayRefuseKey`).
 */
const EXAMINED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 429]);

/**
 * What the text of a reply says about the key of its call; null: it has no known wording. An incomplete body has none.
 */
export function complaintOf(status: number, body: Buffer, own: readonly KeyRefusalWording[] = []): Complaint | null {
  if (!EXAMINED_STATUSES.has(status) || body.length > EXAMINED_BYTES_MAX) return null;
  const { words, messages } = readTexts(body);
  const found = [...WORDINGS, ...own].find((wording) => {
    if (wording.status !== status) return false;
    if (wording.in === 'word') return words.includes(wording.text);
    const beginning = wording.text.toLowerCase();
    return messages.some((message) => message.toLowerCase().startsWith(beginning));
  });
  return found === undefined ? null : ((found as KnownWording).means ?? 'key');
}

interface ErrorTexts {
  readonly words: readonly string[];
  readonly messages: readonly string[];
}

/**
 * Reads the complaint of an error body in the shapes that providers use: `{error: {...}}`, `[{error: {...}}]`, `{code,
 * error: "..."}`, `{code, message}`, `{detail}`.
 */
function readTexts(body: Buffer): ErrorTexts {
  const words: string[] = [];
  const messages: string[] = [];
  const take = (list: string[], value: unknown): void => {
    if (typeof value === 'string') list.push(value);
  };
  const whole = parse(body);
  const outer = asObject(Array.isArray(whole) ? whole[0] : whole);
  const inner = asObject(outer['error']);
  take(messages, outer['error']);
  for (const part of [outer, inner]) {
    for (const field of ['code', 'type', 'status', 'reason']) take(words, part[field]);
    for (const field of ['message', 'Message', 'detail']) take(messages, part[field]);
  }
  const details = inner['details'];
  for (const detail of Array.isArray(details) ? (details as unknown[]) : []) take(words, asObject(detail)['reason']);
  return { words, messages };
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // A body that is not JSON has no known wording.
    return null;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

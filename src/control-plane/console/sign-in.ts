// Signing in to the console: an access token or the code of a one-time link becomes a session in a cookie.
//
// The session is always a new one. A cookie that the browser has already is never taken over, and its session ends, so
// that nobody can have planted it. Only the console's own page can sign in, so no other page can sign somebody in to an
// account that is not theirs.

import { z } from 'zod';
import type { Principal } from '../../domain/identity/principal.ts';
import { type OpenedSession, SESSION_SECONDS_MAX } from '../../domain/identity/session.ts';
import { checkAgainst } from '../../domain/refusals/check-against.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import { answerOf } from '../answers.ts';
import type { OperationDescription } from '../operation.ts';
import { parseJsonBody, receiveJsonBody } from '../read-json-body.ts';
import type { ConsoleParts } from './console-parts.ts';
import { pathOfProvider } from './oidc.ts';
import { COOKIE_HEADERS, shownSession, showSession } from './session.ts';

/** Finds the principal of a credential: of an access token as a header presents it, or of a session's secret. */
export interface Identify {
  token(token: string, exchange: Exchange): Promise<Principal | Refusal> | Principal | Refusal;
  session(secret: string, exchange: Exchange): Promise<Principal | Refusal> | Principal | Refusal;
}

/** Anybody may send such a body, so it has room for a token and no more to parse. */
const BODY_BYTES_MAX = 8_192;

const body = z
  .strictObject({
    token: z.string().min(1, 'must not be empty').max(4_096, 'must be at most 4096 characters').optional(),
    link: z
      .string()
      .regex(/^tgl-[A-Za-z0-9_-]{43}$/, 'must be the code of a one-time link')
      .optional(),
  })
  .refine(({ token, link }) => (token === undefined) !== (link === undefined), 'must have either a token or a link');

export const SIGN_IN: OperationDescription = {
  id: 'signInToConsole',
  summary: 'Opens a session of the console with an access token or the code of a one-time link.',
  details:
    'For the console’s own page: it sends the header X-Tollgate-Console, and the session is in a cookie that scripts ' +
    'cannot read. A session ends after 12 hours without use and after 7 days.',
  query: null,
  body,
  answer: answerOf(shownSession),
  answerHeaders: COOKIE_HEADERS,
  status: 200,
};

export const GET_SIGN_IN: OperationDescription = {
  id: 'getConsoleSignIn',
  summary: 'Says how people sign in to the console.',
  query: null,
  body: null,
  answer: answerOf(
    z.object({
      brand: z.string(),
      oidc: z.array(z.object({ id: z.string(), display_name: z.string(), url: z.string() })),
    }),
  ),
  status: 200,
};

export function getSignIn({ built, brand, oidc }: ConsoleParts, exchange: Exchange): void {
  if (built === null) return exchange.refuse({ kind: 'not_found' });
  const providers = oidc.providers.map(({ id, display_name = id }) => ({ id, display_name, url: pathOfProvider(id) }));
  exchange.answerJson(200, JSON.stringify({ data: { brand, oidc: providers } }));
}

export async function signIn(parts: ConsoleParts, identify: Identify, exchange: Exchange): Promise<void> {
  const { built, sessions } = parts;
  if (built === null) return exchange.refuse({ kind: 'not_found' });
  if (!sessions.cookie.isOwnPage(exchange)) return exchange.refuse({ kind: 'permission_denied' });
  if (!sessions.cookie.maySignIn(exchange)) return exchange.refuse(NEEDS_TLS);
  const replaced = sessions.cookie.read(exchange);
  const arrived = await receiveJsonBody(exchange, BODY_BYTES_MAX);
  if (arrived === null) return;
  const json = 'kind' in arrived ? arrived : parseJsonBody(arrived);
  if ('kind' in json) return exchange.refuse(json);
  const checked = checkAgainst(body, json.object);
  if ('kind' in checked) return exchange.refuse(checked);
  const { token, link } = checked.value;
  const opened =
    link === undefined ? await byToken(parts, identify, token ?? '', exchange) : await byLink(parts, link, exchange);
  if ('kind' in opened) return exchange.refuse(opened);
  if (replaced !== null) await endReplaced(parts, identify, replaced, exchange);
  await answerSignedIn(parts, identify, opened, exchange);
}

const NEEDS_TLS: Refusal = {
  kind: 'conflict',
  reason: 'you can sign in over https only, or over http on the gateway’s own machine: see PUBLIC_URL',
};

async function byToken(
  { store }: ConsoleParts,
  identify: Identify,
  token: string,
  exchange: Exchange,
): Promise<OpenedSession | Refusal> {
  const principal = await identify.token(token, exchange);
  if ('kind' in principal) return principal;
  // An inference key does not sign in: it sees its own requests only, and programs have it.
  if (principal.credential !== 'token') return { kind: 'permission_denied' };
  const { userId, organizationId, apiKeyId } = principal;
  const isBootstrap = userId === null;
  const opened = await store.openSession({
    userId,
    organizationId,
    way: isBootstrap ? 'ADMIN_TOKEN' : 'access token',
    tokenId: isBootstrap ? null : apiKeyId,
    isBootstrap,
  });
  return opened ?? { kind: 'unauthorized' };
}

async function byLink(
  { store, linkLookUps }: ConsoleParts,
  code: string,
  exchange: Exchange,
): Promise<OpenedSession | Refusal> {
  const opened = await linkLookUps.run(() => store.openSessionByLink(code), TOO_MANY, exchange.source);
  return opened ?? { kind: 'unauthorized' };
}

const TOO_MANY: Refusal = { kind: 'authorization_unavailable' };

async function endReplaced(
  { store }: ConsoleParts,
  identify: Identify,
  secret: string,
  exchange: Exchange,
): Promise<void> {
  const principal = await identify.session(secret, exchange);
  if (!('kind' in principal)) await store.endSession(principal.apiKeyId);
}

async function answerSignedIn(
  parts: ConsoleParts,
  identify: Identify,
  { secret }: OpenedSession,
  exchange: Exchange,
): Promise<void> {
  const principal = await identify.session(secret, exchange);
  if ('kind' in principal) return exchange.refuse(principal);
  const headers = [
    'content-type',
    'application/json',
    'set-cookie',
    parts.sessions.cookie.set(secret, SESSION_SECONDS_MAX),
  ];
  exchange.answer(200, headers, JSON.stringify({ data: await showSession(parts, principal) }));
}

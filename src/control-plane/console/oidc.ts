// Signing in to the console by an OpenID provider (OIDC): the authorization code flow with PKCE, state and nonce. The
// browser goes to the provider and comes back; what the gateway must know then lies sealed in a cookie for ten minutes.

import type { Configuration } from 'openid-client';
import { z } from 'zod';
import { SESSION_SECONDS_MAX } from '../../domain/identity/session.ts';
import { groupsIn, type SignedInPerson, type SignInProvider } from '../../domain/identity/sign-in-provider.ts';
import type { Exchange } from '../../http/exchange.ts';
import { StoreAway } from '../../platform/store-away.ts';
import type { OperationDescription } from '../operation.ts';
import type { ConsoleParts } from './console-parts.ts';
import type { OidcParts } from './oidc-parts.ts';
import { type SignInTransaction, TRANSACTION_SECONDS } from './sealed-transaction.ts';

const PROVIDER_TIMEOUT_SECONDS = 10;

const redirecting = (id: string, summary: string): OperationDescription => ({
  id,
  summary,
  query: z.looseObject({}),
  body: null,
  answer: null,
  answerHeaders: {
    Location: z.string(),
    'Set-Cookie': z.string().optional(),
  },
  status: 303,
});
export const START_OIDC = redirecting('startOidcSignIn', 'Sends a browser to an OpenID provider to sign in there.');
export const FINISH_OIDC = redirecting('finishOidcSignIn', 'Takes a browser back from an OpenID provider, signed in.');

export function pathOfProvider(id: string): string {
  return `/v1/console/oidc/${id}`;
}

export async function startOidc({ oidc, sessions, built }: ConsoleParts, exchange: Exchange): Promise<void> {
  const provider = oidc.providers.find(({ id }) => id === exchange.parameter);
  if (provider === undefined || built === null) return exchange.refuse({ kind: 'not_found' });
  if (!sessions.cookie.maySignIn(exchange)) return sendBack(exchange, 'needs_https');
  const client = await import('openid-client');
  let configuration: Configuration | null;
  try {
    configuration = await oidc.providerCalls.run(() => discover(oidc, provider), null, exchange.source);
  } catch (fault) {
    oidc.log.warn({ err: fault, provider: provider.id }, 'an OpenID provider could not be asked about itself');
    configuration = null;
  }
  if (configuration === null) return sendBack(exchange, 'provider_unavailable');
  const [state, nonce] = [client.randomState(), client.randomNonce()];
  const verifier = client.randomPKCECodeVerifier();
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri(oidc, provider),
    response_type: 'code',
    scope: provider.scopes,
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  });
  const endsAtMs = oidc.clock.nowMs() + TRANSACTION_SECONDS * 1000;
  const sealed = oidc.transactions.seal({ provider: provider.id, state, nonce, verifier, endsAtMs });
  redirect(exchange, url.href, [sessions.cookie.setTransaction(sealed, TRANSACTION_SECONDS)]);
}

/** Whatever is wrong with the provider's answer, the browser is only sent to where it can begin anew. */
export async function finishOidc(parts: ConsoleParts, exchange: Exchange): Promise<void> {
  const { oidc, sessions, built } = parts;
  const provider = oidc.providers.find(({ id }) => id === exchange.parameter);
  if (provider === undefined || built === null) return exchange.refuse({ kind: 'not_found' });
  const sealed = sessions.cookie.readTransaction(exchange);
  const transaction = sealed === null ? null : oidc.transactions.open(sealed, oidc.clock.nowMs());
  // The cookie may belong to a sign-in that was begun later, in another tab or with another provider. That one goes on,
  // so its cookie stays.
  if (transaction === null || transaction.provider !== provider.id) return sendBack(exchange, 'expired');
  if (new URLSearchParams(exchange.query).get('state') !== transaction.state) return sendBack(exchange, 'refused');
  const forget = sessions.cookie.setTransaction('', 0);
  const person = await askWho(oidc, provider, transaction, exchange);
  if ('problem' in person) return sendBack(exchange, person.problem, [forget]);
  try {
    const opened = await openSessionOf(parts, provider, person);
    if ('problem' in opened) return sendBack(exchange, opened.problem, [forget]);
    redirect(exchange, `${oidc.publicUrl}/console`, [forget, sessions.cookie.set(opened.secret, SESSION_SECONDS_MAX)]);
  } catch (fault) {
    if (!(fault instanceof StoreAway)) throw fault;
    sendBack(exchange, 'sessions_unavailable', [forget]);
  }
}

async function openSessionOf(
  { oidc, store }: ConsoleParts,
  provider: SignInProvider,
  person: SignedInPerson,
): Promise<{ readonly secret: string } | { readonly problem: string }> {
  const found = await oidc.signIn(provider, person);
  if ('problem' in found) return found;
  const way = `OpenID provider ${provider.id}`;
  return (await store.openSession({ ...found, way, tokenId: null, isBootstrap: false })) ?? { problem: 'refused' };
}

async function askWho(
  oidc: OidcParts,
  provider: SignInProvider,
  transaction: SignInTransaction,
  { query, source }: Exchange,
): Promise<SignedInPerson | { readonly problem: string }> {
  const unavailable = { problem: 'provider_unavailable' };
  try {
    return await oidc.providerCalls.run(() => readPerson(oidc, provider, transaction, query), unavailable, source);
  } catch (fault) {
    oidc.log.warn({ err: fault, provider: provider.id }, 'a sign-in by an OpenID provider was refused');
    return fault instanceof NoUserInfo ? unavailable : { problem: 'refused' };
  }
}

/**
 * The provider gave no user information, which its ID token leaves out. The sign-in fails, since without groups the
 * person would lose what groups gave.
 */
class NoUserInfo extends Error {}

/** Throws where the state, the nonce, the issuer, the code or a signature is not what it must be, and NoUserInfo. */
async function readPerson(
  oidc: OidcParts,
  provider: SignInProvider,
  { state, nonce, verifier }: SignInTransaction,
  query: string,
): Promise<SignedInPerson> {
  const client = await import('openid-client');
  const configuration = await discover(oidc, provider);
  const tokens = await client.authorizationCodeGrant(
    configuration,
    new URL(`${redirectUri(oidc, provider)}?${query}`),
    { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true },
  );
  const claims = tokens.claims();
  if (claims === undefined) throw new Error('the provider sent no ID token');
  const isWhole = claims[provider.groups_claim] !== undefined && claims['email'] !== undefined;
  const isAsked = !isWhole && configuration.serverMetadata().userinfo_endpoint !== undefined;
  const more: Readonly<Record<string, unknown>> = isAsked
    ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub).catch((fault: unknown) => {
        throw new NoUserInfo('the provider did not tell its user information', { cause: fault });
      })
    : {};
  // The address, and whether the provider has verified it, come from one place.
  const { email, email_verified: isEmailVerified } = claims['email'] === undefined ? more : claims;
  return {
    issuer: claims.iss,
    subject: claims.sub,
    email: typeof email === 'string' ? email : null,
    isEmailVerified: isEmailVerified === true,
    groups: groupsIn({ ...more, ...claims }, provider),
  };
}

async function discover({ discovered }: OidcParts, provider: SignInProvider): Promise<Configuration> {
  const present = discovered.get(provider.id);
  if (present !== undefined) return present;
  const client = await import('openid-client');
  const { issuer, client_id, client_secret } = provider;
  // The library checks the signature of an ID token only if asked, since the token comes over TLS.
  const execute = [client.enableNonRepudiationChecks];
  // An issuer of plain http is the operator's own choice, for a provider on the machine itself.
  if (issuer.startsWith('http://')) execute.push(client.allowInsecureRequests);
  const found = await client.discovery(new URL(issuer), client_id, client_secret, undefined, {
    execute,
    timeout: PROVIDER_TIMEOUT_SECONDS,
  });
  discovered.set(provider.id, found);
  return found;
}

function redirectUri({ publicUrl }: OidcParts, { id }: SignInProvider): string {
  return `${publicUrl}${pathOfProvider(id)}/callback`;
}

function sendBack(exchange: Exchange, problem: string, cookies: readonly string[] = []): void {
  redirect(exchange, `/console#sign-in-problem=${problem}`, cookies);
}

function redirect(exchange: Exchange, location: string, cookies: readonly string[]): void {
  exchange.answer(303, ['location', location, ...cookies.flatMap((cookie) => ['set-cookie', cookie])], '');
}

// Obtains a token for a provider: from Google or Entra by one POST, for AWS without one.

import type { TokenFields, TokenSecret } from '../../domain/configuration/schema/token-schema.ts';
import type { Clock } from '../../platform/clock.ts';
import { quotesSecret } from '../../platform/quotes-secret.ts';
import { BEDROCK_TOKEN_SECONDS, makeBedrockToken } from './bedrock-token.ts';
import { makeGoogleAssertion } from './google-assertion.ts';
import { meaningOf } from './refusal-meanings.ts';

export type TokenAnswer =
  | { readonly ok: true; readonly token: string; readonly lifeSeconds: number }
  /** Why there is none: nothing in it is a secret. */
  | { readonly ok: false; readonly reason: string };

/** `body` null: there was no reply, and `reason` says why. */
export type FormAnswer =
  | { readonly status: number; readonly body: string }
  | { readonly status: null; readonly reason: string };

/** POSTs a form. Never rejects. */
export type PostForm = (url: string, form: Readonly<Record<string, string>>) => Promise<FormAnswer>;

export interface ObtainParams {
  readonly settings: TokenFields;
  readonly secret: TokenSecret;
  readonly clock: Clock;
  readonly post: PostForm;
}

export async function obtainToken({ settings, secret, clock, post }: ObtainParams): Promise<TokenAnswer> {
  const nowMs = clock.nowMs();
  if (settings.kind === 'google' && secret.kind === 'google') {
    const assertion = makeGoogleAssertion({
      account: secret.client_email,
      privateKey: secret.private_key,
      privateKeyId: secret.private_key_id,
      scope: settings.scope,
      audience: secret.token_uri,
      nowMs,
    });
    const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion };
    return readAnswer(await post(secret.token_uri, form), assertion);
  }
  if (settings.kind === 'entra' && secret.kind === 'entra') {
    const { authority, tenant, client_id, scope } = settings;
    const { client_secret } = secret;
    const form = { grant_type: 'client_credentials', client_id, client_secret, scope };
    return readAnswer(await post(`${authority}/${tenant}/oauth2/v2.0/token`, form), client_secret);
  }
  if (settings.kind === 'aws' && secret.kind === 'aws') {
    const token = makeBedrockToken({
      accessKeyId: settings.access_key_id,
      secretAccessKey: secret.secret_access_key,
      ...(secret.session_token === undefined ? {} : { sessionToken: secret.session_token }),
      region: settings.region,
      nowMs,
    });
    return { ok: true, token, lifeSeconds: BEDROCK_TOKEN_SECONDS };
  }
  return { ok: false, reason: 'the stored secret is of another kind of token' };
}

const TOKEN = /^[\x21-\x7e]{1,16384}$/;
const REASON_LENGTH_MAX = 300;
/** A token that is valid for longer is renewed after this time all the same. */
const LIFE_SECONDS_MAX = 86_400;

/**
 * Reads an answer by RFC 6749 5.1 and 5.2. `sent`: the secret that the form contained; no reason quotes it, in any
 * encoding.
 */
function readAnswer(answer: FormAnswer, sent: string): TokenAnswer {
  if (answer.status === null) return { ok: false, reason: answer.reason };
  const { status, body } = answer;
  const fields = parse(body);
  if (status !== 200) return { ok: false, reason: `answered ${status}${complaint(fields, sent)}` };
  const { access_token: token, expires_in: life } = fields;
  // Some servers write the number as a string.
  const lifeSeconds = typeof life === 'number' || typeof life === 'string' ? Number(life) : Number.NaN;
  if (typeof token !== 'string' || !TOKEN.test(token)) return { ok: false, reason: 'answered without a token' };
  if (!Number.isFinite(lifeSeconds) || lifeSeconds < 1)
    return { ok: false, reason: 'answered with a token that does not say how long it is valid' };
  return { ok: true, token, lifeSeconds: Math.min(lifeSeconds, LIFE_SECONDS_MAX) };
}

/** What the server says about the account, and in brackets what that means, where it is known. */
function complaint({ error, error_description: description }: Readonly<Record<string, unknown>>, sent: string): string {
  const said = [error, description].filter((text) => typeof text === 'string').join(': ');
  if (quotesSecret(said, sent)) return ', and repeated the secret that was sent, so its text is not shown';
  const text = said.replace(/[\s\p{Cc}]+/gu, ' ').slice(0, REASON_LENGTH_MAX);
  const meaning = meaningOf(text);
  return (text === '' ? '' : `, ${text}`) + (meaning === null ? '' : ` (${meaning})`);
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

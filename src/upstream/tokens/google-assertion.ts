// Makes what a Google service account exchanges for an access token: a signed statement of who it is (RFC 7523).

import { createSign } from 'node:crypto';

const ASSERTION_SECONDS = 3_600;

export interface AssertionParams {
  readonly account: string;
  readonly privateKey: string;
  readonly privateKeyId: string | undefined;
  readonly scope: string;
  /** The URL at which the assertion is exchanged. */
  readonly audience: string;
  readonly nowMs: number;
}

export function makeGoogleAssertion(params: AssertionParams): string {
  const { account, privateKey, privateKeyId, scope, audience, nowMs } = params;
  const issuedAt = Math.floor(nowMs / 1000);
  const header = { alg: 'RS256', typ: 'JWT', ...(privateKeyId === undefined ? {} : { kid: privateKeyId }) };
  const claims = { iss: account, scope, aud: audience, iat: issuedAt, exp: issuedAt + ASSERTION_SECONDS };
  const text = `${encoded(header)}.${encoded(claims)}`;
  return `${text}.${createSign('RSA-SHA256').update(text).sign(privateKey, 'base64url')}`;
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

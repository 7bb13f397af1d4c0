// The short-lived token that proves to the jobs process that a gateway authorized a request: HMAC-SHA-256 under
// DELEGATION_KEY over the delegation, the request's method, path and query, and its expiry.

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { type ReportDelegation, reportDelegationSchema } from '../reports/report-delegation.ts';

/** The request that a token authorizes, as it goes over the wire. */
export interface DelegatedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
}

const VERSION = 'v1';
const TOKEN = /^v1\.([1-9][0-9]{0,14})\.([A-Za-z0-9_-]{1,1000})\.([A-Za-z0-9_-]{43})$/;

/**
 * The key of an installation without DELEGATION_KEY. It is text, so that another installation can be given it as
 * DELEGATION_KEY.
 */
export function deriveDelegationKey(masterKey: Buffer): Buffer {
  const derived = Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate delegation key', 32));
  return Buffer.from(derived.toString('base64url'), 'utf8');
}

/** null: DELEGATION_KEY is not set. */
export function mintDelegationToken(
  key: Buffer | null,
  delegation: ReportDelegation,
  request: DelegatedRequest,
  expiresAtMs: number,
): string | null {
  if (key === null || key.length === 0) return null;
  const expiry = String(Math.ceil(expiresAtMs));
  const payload = Buffer.from(JSON.stringify(delegation)).toString('base64url');
  return [VERSION, expiry, payload, sign(key, expiry, payload, request).toString('base64url')].join('.');
}

export function verifyDelegationToken(
  key: Buffer,
  token: string,
  request: DelegatedRequest,
  nowMs: number,
): ReportDelegation | 'forged' | 'expired' | 'malformed' {
  const [, expiry = '', payload = '', signature = ''] = TOKEN.exec(token) ?? [];
  const presented = Buffer.from(signature, 'base64url');
  const expected = sign(key, expiry, payload, request);
  // The lengths differ only when the text was not a token at all.
  if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return 'forged';
  if (Number(expiry) <= nowMs) return 'expired';
  const delegation = reportDelegationSchema.safeParse(parseJson(Buffer.from(payload, 'base64url').toString('utf8')));
  return delegation.success ? delegation.data : 'malformed';
}

/** null: the text is not JSON, and so no delegation. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** No part can contain a line break, so two different requests never sign the same text. */
function sign(key: Buffer, expiry: string, payload: string, { method, target }: DelegatedRequest): Buffer {
  return createHmac('sha256', key)
    .update(['tollgate delegation', VERSION, expiry, payload, method, target].join('\n'))
    .digest();
}

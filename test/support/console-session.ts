// The headers and the cookie that the console's page sends, for a test that acts as a signed-in browser.

import assert from 'node:assert/strict';
import { type HttpAnswer, type HttpCall, httpCall } from './http-call.ts';

/** The headers that a browser and the console's page add to a request to their own origin. */
export const OWN_PAGE = { 'x-tollgate-console': '1', 'sec-fetch-site': 'same-origin' } as const;

export type SignIn = { readonly token: string } | { readonly link: string };

export function signIn(url: string, by: SignIn, headers: Record<string, string> = OWN_PAGE): Promise<HttpAnswer> {
  return httpCall(`${url}/v1/console/sign-in`, { method: 'POST', headers, body: JSON.stringify(by) });
}

/** The cookie as a browser sends it back. */
export async function signedIn(url: string, by: SignIn): Promise<string> {
  const answer = await signIn(url, by);
  assert.equal(answer.status, 200, answer.body.toString());
  return cookieOf(answer);
}

export function cookieOf({ headers }: HttpAnswer): string {
  return String(headers['set-cookie']?.[0]).split(';')[0] as string;
}

export function callWithSession(url: string, cookie: string, call: HttpCall = {}): Promise<HttpAnswer> {
  return httpCall(url, { ...call, headers: { ...OWN_PAGE, cookie, ...call.headers } });
}

// Who is signed in, what they may do, and in which organization they work.

import { signal } from '@preact/signals';
import { type Answer, type AnswerOf, call, type Refusal, readPages, requestsBelongTo, send } from '../api.ts';
import { signInProblem } from '../logic/sign-in-problems.ts';

export type Me = AnswerOf<'/v1/me'>['data'];
type Brand = Pick<AnswerOf<'/v1/console/session'>['data'], 'brand' | 'auto_model'>;
export type Membership = AnswerOf<'/v1/me/organizations'>['data'][number];
export type Permission =
  | 'inference'
  | 'usage.read'
  | 'team.usage.read'
  | 'org.usage.read'
  | 'org.admin'
  | 'platform.admin';

export type Session =
  | { readonly kind: 'starting' }
  | { readonly kind: 'out'; readonly reason: string | null }
  /** Nobody can say who is signed in: the session may be as good as before. */
  | { readonly kind: 'away'; readonly refusal: Refusal }
  | {
      readonly kind: 'in';
      readonly me: Me;
      readonly organizations: readonly Membership[];
      readonly brand: Brand;
      /** What has become of it since; what is typed on the screens stays until somebody has answered. */
      readonly doubt: Doubt | null;
    };

/** It has ended, or could not be ended, or another tab works in another organization, whose name is this. */
export type Doubt =
  | { readonly kind: 'ended' }
  | { readonly kind: 'kept'; readonly refusal: Refusal }
  | { readonly kind: 'elsewhere'; readonly organization: string };

const SIGNED_OUT = 401;
const USUAL_BRAND: Brand = { brand: 'Service', auto_model: 'service/auto' };

export const session = signal<Session>({ kind: 'starting' });

/** Moves when somebody has signed in again: what was refused meanwhile is read anew. */
export const entries = signal(0);

requestsBelongTo({
  organizationId: () => me()?.organization_id ?? null,
  onSignedOut: () => doubt({ kind: 'ended' }),
  onConflict: () => void lookElsewhere(),
});

function doubt(why: Doubt): void {
  if (session.value.kind === 'in' && session.value.doubt === null) session.value = { ...session.value, doubt: why };
}

/** Most conflicts are of what was changed; this one is of the session. */
async function lookElsewhere(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (!answer.ok) return;
  const { organization } = answer.data.data;
  if ((organization?.id ?? null) !== (me()?.organization_id ?? null))
    doubt({ kind: 'elsewhere', organization: organization?.display_name ?? 'no organization' });
}

/** Where another tab has signed in meanwhile. */
export async function lookAgain(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (answer.ok) await enter();
}

/** A one-time link carries its code in the fragment, which no server and no log sees; a failed sign-in its reason. */
export async function startSession(): Promise<void> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const link = fragment.get('link');
  const problem = signInProblem(fragment.get('sign-in-problem'));
  if (link !== null || problem !== null) history.replaceState(null, '', location.pathname + location.search);
  if (link !== null) {
    const opened = await signIn({ link });
    if (opened.ok) return;
    session.value = { kind: 'out', reason: 'This link does not sign in any more: each works once, for ten minutes.' };
    return;
  }
  const answer = await send({ method: 'get', address: '/v1/console/session' });
  if (answer.ok) return enter();
  session.value =
    answer.refusal.status === SIGNED_OUT ? { kind: 'out', reason: problem } : { kind: 'away', refusal: answer.refusal };
}

export async function signIn(body: { readonly token: string } | { readonly link: string }): Promise<Answer<unknown>> {
  const answer = await send({ method: 'post', address: '/v1/console/sign-in', body });
  if (answer.ok) await enter();
  return answer;
}

/** Who is not signed out is told so: the next one at this browser would be signed in. */
export async function signOut(): Promise<void> {
  const answer = await send({ method: 'delete', address: '/v1/console/session' });
  if (answer.ok || answer.refusal.status === SIGNED_OUT) session.value = { kind: 'out', reason: null };
  else doubt({ kind: 'kept', refusal: answer.refusal });
}

/** Five thousand organizations: a platform's administrator may have joined them all. */
const MEMBERSHIP_PAGES_MAX = 50;

/** Reads who is signed in, and where they may work. ADMIN_TOKEN stands for no person and has no memberships. */
export async function enter(): Promise<void> {
  const [me, named, organizations] = await Promise.all([
    call('get', '/v1/me'),
    call('get', '/v1/console/session'),
    readPages<Membership>('/v1/me/organizations', { limit: 100 }, null, MEMBERSHIP_PAGES_MAX),
  ]);
  if (!me.ok || !named.ok || !organizations.ok) {
    const refusal = [me, named, organizations].find((answer) => !answer.ok)?.refusal;
    if (refusal !== undefined) beRefused(refusal);
    return;
  }
  session.value = {
    kind: 'in',
    me: me.data.data,
    organizations: organizations.data.data,
    brand: named.data.data,
    doubt: null,
  };
  entries.value += 1;
}

/** What is shown stays as long as nobody is signed out: something may be typed into it. */
function beRefused(refusal: Refusal): void {
  if (refusal.status === SIGNED_OUT) session.value = { kind: 'out', reason: null };
  else if (session.value.kind !== 'in') session.value = { kind: 'away', refusal };
}

export async function switchOrganization(organizationId: string | null): Promise<Answer<unknown>> {
  const answer = await call('patch', '/v1/console/session', { body: { organization_id: organizationId } });
  if (answer.ok) await enter();
  return answer;
}

/** The name under which auto routing is asked for. */
export function autoModel(): string {
  return brand().auto_model;
}

/** By which the gateway names its own headers: `x-service-tag`. */
export function headerPrefix(): string {
  return `x-${brand().brand.toLowerCase()}`;
}

function brand(): Brand {
  return session.value.kind === 'in' ? session.value.brand : USUAL_BRAND;
}

export function me(): Me | null {
  return session.value.kind === 'in' ? session.value.me : null;
}

export function may(permission: Permission): boolean {
  return me()?.permissions.includes(permission) ?? false;
}

// Decides whether a request may use a route: its credential must be valid, stand for the scope that the route needs and
// have the permission in it (spec 7.6), and changes must not come too fast.

import type { ChangeMeter } from '../control-plane/change-meter.ts';
import type { ConsoleSessions } from '../control-plane/console/console-sessions.ts';
import type { RouteAccess } from '../control-plane/openapi/described-route.ts';
import type { Authorize } from '../control-plane/operation.ts';
import { permitInference, refusePlatform } from '../domain/identity/permit.ts';
import type { Principal } from '../domain/identity/principal.ts';
import { ROLE_PERMISSIONS } from '../domain/identity/roles.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Authenticator } from '../generation/identity/authenticate.ts';
import type { Exchange } from '../http/exchange.ts';

interface GuardedRoute extends RouteAccess {
  readonly path: string;
}

/** By the credential that a header presents. */
export function authorizeBy(authenticator: Authenticator, route: GuardedRoute, exchange: Exchange): Authorize {
  return () =>
    permitOn(route, exchange, authenticator.identify(exchange.authorization, exchange.apiKey, undefined, exchange));
}

/** By the credential in a header or, where there is none, by a session of the console. */
export function authorizeWithSession(
  {
    authenticator,
    console,
  }: { readonly authenticator: Authenticator; readonly console: { readonly sessions: ConsoleSessions } },
  route: GuardedRoute,
  exchange: Exchange,
): Authorize {
  const presents = exchange.authorization !== '' || exchange.apiKey !== null;
  const secret = presents ? null : console.sessions.cookie.read(exchange);
  if (secret === null) return authorizeBy(authenticator, route, exchange);
  const isElsewhere = (found: Principal | Refusal) =>
    !('kind' in found) && console.sessions.cookie.isElsewhere(found, exchange);
  return async () => {
    let found =
      route.looksUpSession === true
        ? await authenticator.lookUpSession(secret, exchange)
        : await authenticator.identifySession(secret, undefined, exchange);
    // The session may just have been moved to another organization, perhaps on another gateway, and this one has not
    // heard of it yet.
    if (isElsewhere(found)) found = await authenticator.lookUpSession(secret, exchange);
    if (isElsewhere(found)) return ELSEWHERE;
    const permitted = await permitOn(route, exchange, found);
    if (!('kind' in permitted)) console.sessions.used(permitted);
    return permitted;
  };
}

type Found = Principal | Refusal | Promise<Principal | Refusal>;

function permitOn(route: GuardedRoute, exchange: Exchange, found: Found): Found {
  return alsoRefusedBy(found, (principal) => refuseAccess(route, principal, exchange));
}

/** Counts a request that makes or changes something, once it is known that the principal may do it. */
export function meterChanges(authorize: Authorize, meter: ChangeMeter): Authorize {
  return () => alsoRefusedBy(authorize(), (principal) => meter.take(principal));
}

/** A further check of a principal that was found; waits only where the principal is waited for. */
export function alsoRefusedBy(found: Found, refuse: (principal: Principal) => Refusal | null): Found {
  const check = (one: Principal | Refusal) => ('kind' in one ? one : (refuse(one) ?? one));
  return found instanceof Promise ? found.then(check) : check(found);
}

/** null: the principal may use the route. */
function refuseAccess(
  { path, permission, scope }: GuardedRoute,
  principal: Principal,
  exchange: Exchange,
): Refusal | null {
  const lacking = permission !== null && !principal.permissions.includes(permission);
  switch (scope) {
    case 'none':
      return lacking ? DENIED : null;
    case 'person':
      return lacking || !isPerson(principal) ? DENIED : null;
    case 'member':
      if (principal.organizationId === null) return UNRESOLVED;
      return lacking || !isPerson(principal) ? DENIED : null;
    case 'platform':
      return refusePlatform(principal);
    case 'key': {
      const permitted = permitInference(principal);
      return 'kind' in permitted ? permitted : null;
    }
    case 'organization':
      if (principal.organizationId === null) return UNRESOLVED;
      return lacking ? DENIED : null;
    case 'team': {
      if (principal.organizationId === null) return UNRESOLVED;
      if (!lacking || permission === null) return null;
      const role = principal.teamPermissions.get(teamIn(path, exchange));
      return role !== undefined && ROLE_PERMISSIONS[role].includes(permission) ? null : DENIED;
    }
  }
}

function isPerson({ credential, userId }: Principal): boolean {
  return credential !== 'key' && userId !== null;
}

const ELSEWHERE: Refusal = {
  kind: 'conflict',
  reason: 'the page that asks shows another person or organization than the session has',
};
const UNRESOLVED: Refusal = { kind: 'scope_required' };
const DENIED: Refusal = { kind: 'permission_denied' };

function teamIn(path: string, exchange: Exchange): string {
  const names = path.split('/').filter((segment) => segment.startsWith(':'));
  return exchange.parameters[names.indexOf(':teamId')]?.toLowerCase() ?? '';
}

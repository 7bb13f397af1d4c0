// The rows of the route table that concern a person: who they are, their access tokens and their own inference keys.

import * as keys from '../control-plane/identity/keys.ts';
import { getMe } from '../control-plane/identity/me.ts';
import * as organizations from '../control-plane/identity/organizations.ts';
import * as tokens from '../control-plane/identity/tokens.ts';
import { type ControlPlaneRow, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

export function personalRows(parts: RouteParts): ControlPlaneRow[] {
  return [...personRows(parts), ...inferenceKeyRows(parts)];
}

function personRows({ identity }: RouteParts): ControlPlaneRow[] {
  const any = { permission: null, scope: 'none' } as const;
  const person = { permission: null, scope: 'person' } as const;
  return [
    row('GET', '/v1/me', any, getMe()),
    row('GET', '/v1/me/tokens', person, tokens.listMyTokens(identity)),
    row('POST', '/v1/me/tokens', person, tokens.createMyToken(identity)),
    row('DELETE', '/v1/me/tokens/:tokenId', person, tokens.revokeMyToken(identity)),
    row('GET', '/v1/me/organizations', person, organizations.listMyOrganizations(identity)),
    row('PUT', '/v1/me/active-organization', person, tokens.setMyActiveOrganization(identity)),
  ];
}

/** A member's own inference keys in the active organization. */
function inferenceKeyRows({ identity }: RouteParts): ControlPlaneRow[] {
  const own = { permission: 'inference', scope: 'member' } as const;
  const keysPath = '/v1/me/keys';
  const key = `${keysPath}/:keyId`;
  const mine = keys.MY_KEYS;
  return [
    row('GET', keysPath, own, keys.listMyKeys(identity)),
    row('POST', keysPath, own, keys.createMyKey(identity)),
    row('GET', key, own, keys.getKey(identity, mine)),
    row('PATCH', key, own, keys.updateKey(identity, mine)),
    row('DELETE', key, own, keys.revokeKey(identity, mine)),
    row('POST', `${key}/rotate`, own, keys.rotateKey(identity, mine)),
  ];
}

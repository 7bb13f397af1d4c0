// The rows of the route table about money: credit, deposits, wallets, and the webhook that is told of charges.

import { getCredits } from '../control-plane/billing/credits.ts';
import { getCurrentLimits } from '../control-plane/billing/current-limits.ts';
import * as deposits from '../control-plane/billing/deposits.ts';
import * as wallets from '../control-plane/billing/wallets.ts';
import * as webhooks from '../control-plane/billing/webhooks.ts';
import { ACTIVE, NAMED, type Tenancy } from '../control-plane/identity/tenancy.ts';
import type { RouteAccess } from '../control-plane/openapi/described-route.ts';
import {
  ACTIVE_ORGANIZATION_PATH,
  type ControlPlaneRow,
  ORGANIZATION_ADMIN,
  ORGANIZATION_PATH,
  PLATFORM_ADMIN,
  row,
} from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

export function billingRows(parts: RouteParts): ControlPlaneRow[] {
  return [...moneyRows(parts), ...webhookRows(parts)];
}

function moneyRows({ billing, identity }: RouteParts): ControlPlaneRow[] {
  const payer = { permission: 'usage.read', scope: 'organization' } as const;
  return [
    row('GET', '/v1/billing/credits', payer, getCredits(billing)),
    row('GET', '/v1/billing/deposits', payer, deposits.listDeposits(billing)),
    row('POST', '/v1/billing/deposits', PLATFORM_ADMIN, deposits.postDeposit(billing)),
    row('GET', '/v1/usage/limits/current', payer, getCurrentLimits(billing)),
    row('GET', `${ORGANIZATION_PATH}/wallets`, PLATFORM_ADMIN, wallets.listWallets(billing, identity)),
    row('PATCH', `${ORGANIZATION_PATH}/wallets/:walletId`, PLATFORM_ADMIN, wallets.freezeWallet(billing)),
  ];
}

function webhookRows({ billing, webhookTargets }: RouteParts): ControlPlaneRow[] {
  const rowsAt = (path: string, access: RouteAccess, tenancy: Tenancy): ControlPlaneRow[] => [
    row('GET', path, access, webhooks.getWebhook(billing, tenancy)),
    row('PUT', path, access, webhooks.setWebhook(billing, webhookTargets, tenancy)),
    row('DELETE', path, access, webhooks.removeWebhook(billing, tenancy)),
    row('POST', `${path}/rotate-secret`, access, webhooks.rotateWebhookSecret(billing, tenancy)),
    row('POST', `${path}/redeliver`, access, webhooks.redeliverWebhooks(billing, tenancy)),
  ];
  return [
    ...rowsAt(`${ACTIVE_ORGANIZATION_PATH}/webhook`, ORGANIZATION_ADMIN, ACTIVE),
    ...rowsAt(`${ORGANIZATION_PATH}/webhook`, PLATFORM_ADMIN, NAMED),
  ];
}

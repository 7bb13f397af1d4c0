// The table of all screens: address, name, group, permission and component. The navigation is built from it.

import type { ComponentType } from 'preact';
import type { Permission } from '../state/session.ts';
import { Audit } from './audit.tsx';
import { Catalog } from './catalog/catalog.tsx';
import { Connect } from './connect.tsx';
import { Guardrails } from './guardrails/guardrails.tsx';
import { PlatformGuardrails } from './guardrails/platform-guardrails.tsx';
import { Keys } from './keys.tsx';
import { Limits } from './limits.tsx';
import { LiveFigures } from './live.tsx';
import { Media } from './media.tsx';
import { Operation } from './operation.tsx';
import { Organizations } from './organizations.tsx';
import { Overview } from './overview.tsx';
import { People } from './people.tsx';
import { Playground } from './playground.tsx';
import { ProviderKeys } from './provider-keys.tsx';
import { Requests } from './requests/requests.tsx';
import { Policies } from './routing/policies.tsx';
import { RoutingReport } from './routing/routing.tsx';
import { UsageAndSpend } from './usage.tsx';
import { Webhook } from './webhook.tsx';

export interface Screen {
  readonly id: string;
  readonly name: string;
  readonly group: 'Observe' | 'Build' | 'Manage' | 'Platform';
  readonly permission: Permission;
  readonly view: ComponentType;
}

export const SCREENS: readonly Screen[] = [
  { id: 'overview', name: 'Overview', group: 'Observe', permission: 'usage.read', view: Overview },
  { id: 'requests', name: 'Requests', group: 'Observe', permission: 'usage.read', view: Requests },
  { id: 'usage', name: 'Usage and spend', group: 'Observe', permission: 'usage.read', view: UsageAndSpend },
  { id: 'routing', name: 'Routing', group: 'Observe', permission: 'usage.read', view: RoutingReport },
  { id: 'connect', name: 'Connect', group: 'Build', permission: 'inference', view: Connect },
  { id: 'playground', name: 'Playground', group: 'Build', permission: 'inference', view: Playground },
  { id: 'keys', name: 'Keys', group: 'Build', permission: 'inference', view: Keys },
  { id: 'people', name: 'Members and teams', group: 'Manage', permission: 'org.admin', view: People },
  { id: 'limits', name: 'Limits and budgets', group: 'Manage', permission: 'org.admin', view: Limits },
  { id: 'provider-keys', name: 'Own provider keys', group: 'Manage', permission: 'org.admin', view: ProviderKeys },
  { id: 'guardrails', name: 'Guardrails', group: 'Manage', permission: 'org.admin', view: Guardrails },
  { id: 'media', name: 'Media', group: 'Manage', permission: 'org.admin', view: Media },
  { id: 'webhook', name: 'Webhook', group: 'Manage', permission: 'org.admin', view: Webhook },
  { id: 'audit', name: 'Audit', group: 'Manage', permission: 'org.admin', view: Audit },
  { id: 'live', name: 'Live', group: 'Platform', permission: 'platform.admin', view: LiveFigures },
  { id: 'organizations', name: 'Organizations', group: 'Platform', permission: 'platform.admin', view: Organizations },
  { id: 'catalog', name: 'Catalog', group: 'Platform', permission: 'platform.admin', view: Catalog },
  { id: 'policies', name: 'Routing policies', group: 'Platform', permission: 'platform.admin', view: Policies },
  {
    id: 'platform-guardrails',
    name: 'Platform guardrails',
    group: 'Platform',
    permission: 'platform.admin',
    view: PlatformGuardrails,
  },
  { id: 'operation', name: 'Jobs and drift', group: 'Platform', permission: 'platform.admin', view: Operation },
];

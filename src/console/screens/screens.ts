// Every screen: its address, its name, who may see it, and what draws it. The navigation is made of this table.

import type { ComponentType } from 'preact';
import type { Permission } from '../state/session.ts';
import { Overview } from './overview.tsx';
import { Requests } from './requests.tsx';
import { RoutingReport } from './routing.tsx';
import { UsageAndSpend } from './usage.tsx';

export interface Screen {
  readonly id: string;
  readonly name: string;
  readonly group: 'Observe' | 'Manage' | 'Build' | 'Platform' | 'Operate';
  readonly permission: Permission;
  readonly view: ComponentType;
}

export const SCREENS: readonly Screen[] = [
  { id: 'overview', name: 'Overview', group: 'Observe', permission: 'usage.read', view: Overview },
  { id: 'requests', name: 'Requests', group: 'Observe', permission: 'usage.read', view: Requests },
  { id: 'usage', name: 'Usage and spend', group: 'Observe', permission: 'usage.read', view: UsageAndSpend },
  { id: 'routing', name: 'Routing', group: 'Observe', permission: 'usage.read', view: RoutingReport },
];

// What is shown of an organization, and what can be changed of it.

import type { Role } from './roles.ts';

export interface Organization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly billing: 'prepaid' | 'none';
  /** The organization's wallet is frozen: no new credit is lent, requests are refused with billing_frozen. */
  readonly frozen: boolean;
  readonly createdAtMs: number;
}

/** An organization as one of its members knows it. */
export interface OwnOrganization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly role: Role;
}

/** What is absent stays. */
export interface OrganizationChange {
  readonly displayName?: string | undefined;
  readonly billing?: 'prepaid' | 'none' | undefined;
  readonly frozen?: boolean | undefined;
}

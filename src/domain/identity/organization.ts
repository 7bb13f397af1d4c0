// An organization as it is shown, and what can be changed of it.

import type { Role } from './roles.ts';

export interface Organization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly billing: 'prepaid' | 'none';
  /** The organization's wallet is frozen: no new credit is leased, and requests are refused with billing_frozen. */
  readonly frozen: boolean;
  readonly createdAtMs: number;
}

/** An organization as it is shown to one of its members. */
export interface OwnOrganization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly role: Role;
}

/** A field that is absent is left unchanged. */
export interface OrganizationChange {
  readonly displayName?: string | undefined;
  readonly billing?: 'prepaid' | 'none' | undefined;
  readonly frozen?: boolean | undefined;
}

// Who a credential stands for, once it is known to be good (spec 5; DESIGN 5).

/** Permissions by name; roles grant them, routes require them. */
export type Permission = 'inference' | 'usage.read' | 'team.usage.read' | 'org.usage.read' | 'org.admin' | 'platform.admin';

export interface Principal {
  readonly apiKeyId: string;
  readonly organizationId: string;
  readonly teamId: string | null;
  readonly userId: string | null;
  /** The wallet that pays; null when the organization is not billed. */
  readonly walletId: string | null;
  /** A billed organization ("prepaid"): every request needs a bounded price and a hold. */
  readonly billed: boolean;
  readonly permissions: readonly Permission[];
  /** Epoch milliseconds after which the credential is refused; null for never. */
  readonly expiresAtMs: number | null;
}

// What is shown of a person's access token, what names one, and what can be asked for.

export interface Token {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly prefix: string;
  readonly activeOrganizationId: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly revokedAtMs: number | null;
}

export interface TokenWithSecret extends Token {
  /** Known here and nowhere else: to be shown once. */
  readonly secret: string;
}

export interface TokenOrder {
  readonly userId: string;
  readonly name: string;
  /** 60 to 31,536,000 (a year). */
  readonly lifetimeSeconds: number;
  readonly organizationId?: string | null | undefined;
}

/** `userId` null: whoever's it is (platform administrators and the command line). */
export interface TokenName {
  readonly tokenId: string;
  readonly userId: string | null;
}

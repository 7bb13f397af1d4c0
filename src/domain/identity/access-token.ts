// The access token of a person: its shown form, its reference, and the parameters to create one.

export interface Token {
  readonly id: string;
  /** null: a session without a person. */
  readonly userId: string | null;
  readonly name: string;
  readonly prefix: string;
  readonly activeOrganizationId: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly revokedAtMs: number | null;
}

export interface TokenWithSecret extends Token {
  /** Returned once, at creation; only its hash is stored. */
  readonly secret: string;
}

export interface CreateTokenParams {
  readonly userId: string;
  readonly name: string;
  /** 60 to 31,536,000 (a year). */
  readonly lifetimeSeconds: number;
  readonly organizationId?: string | null | undefined;
}

/** `userId` null means that the token's owner does not matter: for platform administrators and the command line. */
export interface TokenReference {
  readonly tokenId: string;
  readonly userId: string | null;
}

// A team as it is shown, and how it is referred to.

export interface Team {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly createdAtMs: number;
}

/** Identifies a team within its organization. */
export interface TeamReference {
  readonly organizationId: string;
  readonly teamId: string;
}

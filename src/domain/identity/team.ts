// What is shown of a team, and what names one.

export interface Team {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly createdAtMs: number;
}

/** Names a team and its tenant. */
export interface TeamName {
  readonly organizationId: string;
  readonly teamId: string;
}

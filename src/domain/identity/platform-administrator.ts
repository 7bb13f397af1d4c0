// What is shown of a person who administers the whole installation.

export interface PlatformAdministrator {
  readonly userId: string;
  readonly email: string;
  readonly createdAtMs: number;
}

// A person who administers the whole installation, as it is shown.

export interface PlatformAdministrator {
  readonly userId: string;
  readonly email: string;
  readonly createdAtMs: number;
}

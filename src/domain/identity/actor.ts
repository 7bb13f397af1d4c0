// Who made an audited change, as the audit log shows it.

export interface Actor {
  /** `bootstrap`: the holder of ADMIN_TOKEN. */
  readonly kind: 'token' | 'cli' | 'bootstrap';
  /** null for `cli` and `bootstrap`. */
  readonly userId: string | null;
  /** A name that a reader recognizes: an email, a login, a setting's name. Never a secret. */
  readonly label: string;
}

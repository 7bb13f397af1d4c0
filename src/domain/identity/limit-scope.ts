// Whose requests a usage limit counts.

export type LimitScope =
  | { readonly kind: 'organization'; readonly organizationId: string }
  | { readonly kind: 'team'; readonly organizationId: string; readonly teamId: string }
  | { readonly kind: 'user'; readonly organizationId: string; readonly userId: string }
  | { readonly kind: 'key'; readonly organizationId: string; readonly keyId: string };

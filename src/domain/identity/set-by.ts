// Who set a usage limit or a list of models. The settings of both parties apply, so an organization can only tighten
// what the platform set.

/**
 * `platform`: through the operator's file, command line and routes. `organization`: through its own administrators, or
 * a member for their own keys.
 */
export type SetBy = 'platform' | 'organization';

// Who set a ceiling: a limit on use, or a list of models. What both set holds, so that an organization can only tighten
// what the platform set.

/**
 * `platform`: the operator's file, command line and routes. `organization`: its own administrators, and members for
 * keys of their own.
 */
export type SetBy = 'platform' | 'organization';

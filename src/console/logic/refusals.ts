// Advice on what a person can do about a refusal, by its HTTP status.

export interface Advice {
  readonly title: string;
  readonly advice: string;
  readonly mayRepeat: boolean;
}

const MAY_BE_DONE = 'The change may have been made: check before you send it again.';

/** The message where no answer came (`none`) or its body was cut off (`broken`). A change may have been made then. */
export function noAnswerMessage(method: string, how: 'none' | 'broken'): string {
  const words = how === 'none' ? 'The gateway does not answer. Is it running?' : 'The answer was cut off.';
  return method === 'get' ? words : `${words} ${MAY_BE_DONE}`;
}

/** `status` 0: no answer came. `permission`: the permission that the screen needs. */
export function adviceOn(status: number, permission: string): Advice {
  if (status === 0)
    return {
      title: 'No answer',
      advice: 'The gateway could not be reached. Is it running, and is the network up?',
      mayRepeat: true,
    };
  if (status === 403)
    return {
      title: 'Not permitted',
      advice: `This needs the permission ${permission}. ${WHO_GIVES[permission] ?? 'An administrator can give it.'}`,
      mayRepeat: false,
    };
  if (status === 404)
    return {
      title: 'Not found',
      advice: 'It does not exist, was removed, or belongs to somebody else.',
      mayRepeat: true,
    };
  if (status === 409 || status === 412)
    return {
      title: 'Changed by somebody else',
      advice: 'Somebody else has changed it. Load it again, then repeat your change.',
      mayRepeat: true,
    };
  if (status === 429) return { title: 'Too many requests', advice: 'Wait a moment, then try again.', mayRepeat: true };
  if (status >= 500)
    return {
      title: 'Not available now',
      advice: 'The reports or the database do not answer. Requests are still served, and nothing is lost.',
      mayRepeat: true,
    };
  return { title: 'Refused', advice: 'The gateway did not accept this.', mayRepeat: false };
}

const WHO_GIVES: Readonly<Record<string, string>> = {
  'org.admin': 'Owners and administrators of the organization have it.',
  'org.usage.read': 'Every member of the organization has it.',
  'team.usage.read': 'Owners and administrators of the team have it.',
  'platform.admin': 'Administrators of the installation have it: tollgate administrator add --user EMAIL.',
  'usage.read': 'Choose an organization first.',
};

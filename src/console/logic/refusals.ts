// Advice on what a person can do about a refusal, by its HTTP status.

export interface Advice {
  readonly title: string;
  readonly advice: string;
  readonly mayRepeat: boolean;
}

const MAY_BE_DONE = 'What was sent may have been done all the same: look before you send it again.';

/** The message where no answer came (`none`) or its body was cut off (`broken`). A change may have been made then. */
export function noAnswerMessage(method: string, how: 'none' | 'broken'): string {
  const words = how === 'none' ? 'The gateway does not answer. Is it running?' : 'The answer broke off.';
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
      advice: 'It is not here, or not yours, or was removed.',
      mayRepeat: true,
    };
  if (status === 409 || status === 412)
    return {
      title: 'Changed meanwhile',
      advice: 'Somebody else changed it. Look at it again, then repeat your change.',
      mayRepeat: true,
    };
  if (status === 429) return { title: 'Too many questions', advice: 'Wait a moment.', mayRepeat: true };
  if (status >= 500)
    return {
      title: 'Not available now',
      advice: 'Reports or database do not answer now. Requests are served all the same, and nothing is lost.',
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

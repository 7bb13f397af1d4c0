// The scopes of directives that more than one API shares: none at all, and `[[sim/text: ...]]` for whatever generates
// text.

import { UNSCOPED } from '../directives.ts';

export const TEXT_SCOPES: readonly string[] = [UNSCOPED, 'text'];

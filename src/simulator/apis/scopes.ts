// The scopes of directives that several APIs share: no scope, and `[[sim/text: ...]]` for all that generate text.

import { UNSCOPED } from '../directives.ts';

export const TEXT_SCOPES: readonly string[] = [UNSCOPED, 'text'];

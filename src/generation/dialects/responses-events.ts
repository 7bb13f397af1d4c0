// Lists the events that end a Responses stream: with an answer, with an incomplete one, or without one (spec 4.1).

import { TerminalEvents } from '../sse/terminal-events.ts';

export const INCOMPLETE = 'response.incomplete';
export const FAILED = 'response.failed';
export const FAILING_EVENTS: readonly string[] = [FAILED, 'error'];
export const TERMINAL_EVENTS = new TerminalEvents(['response.completed', INCOMPLETE, ...FAILING_EVENTS]);

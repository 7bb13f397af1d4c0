// Finds the end of a Chat Completions stream, `data: [DONE]`, at almost no cost for ordinary chunks.

import { EventStreamEnd, type StreamEnd, type StreamProgress } from './stream-end.ts';
import { DONE, LINE_FEED } from './syntax.ts';
import { TerminalEvents } from './terminal-events.ts';

const CHAT_TERMINAL_EVENTS = new TerminalEvents([]);
const CLOSE_BRACE = 0x7d;

export class ChatStreamEnd implements StreamEnd {
  private readonly lines = new EventStreamEnd(CHAT_TERMINAL_EVENTS);

  get endedBy(): string | null {
    return this.lines.endedBy;
  }

  /**
   * Skips the lines of nearly every chunk: one that consists of whole events, ends in JSON and contains no `[DONE]`.
   * Few providers send anything after `[DONE]`.
   */
  feed(chunk: Buffer): StreamProgress {
    const last = chunk.length - 1;
    if (
      this.lines.isBetweenLines &&
      chunk[last] === LINE_FEED &&
      chunk[last - 1] === LINE_FEED &&
      chunk[last - 2] === CLOSE_BRACE &&
      !chunk.includes(DONE)
    )
      return 'open';
    return this.lines.feed(chunk);
  }
}

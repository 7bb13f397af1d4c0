// Reads the text, or the error, out of a streamed chat completion as its pieces arrive.

export interface ChatEvent {
  /** The text to append to the reply. */
  readonly text: string;
  /** The error with which the provider or the gateway ended the stream; null if there is none. */
  readonly problem: string | null;
}

/** The pieces of a stream may be cut anywhere. `read` returns what a piece adds to the reply. */
export class ChatStream {
  private rest = '';

  read(piece: string): ChatEvent {
    const lines = (this.rest + piece).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? '';
    return lines.map(eventOf).reduce(joined, NOTHING);
  }

  /** Reads the last line of the stream if it has no line break. */
  end(): ChatEvent {
    const last = this.rest;
    this.rest = '';
    return eventOf(last);
  }
}

const NOTHING: ChatEvent = { text: '', problem: null };

function joined(before: ChatEvent, next: ChatEvent): ChatEvent {
  return { text: before.text + next.text, problem: before.problem ?? next.problem };
}

function eventOf(line: string): ChatEvent {
  if (!line.startsWith('data:')) return NOTHING;
  const data = line.slice('data:'.length).trim();
  if (data === '' || data === '[DONE]') return NOTHING;
  const event = parsed(data);
  if (event === null) return NOTHING;
  const { error, choices } = event;
  if (error !== undefined && error !== null) return { text: '', problem: messageOf(error) };
  const content = choices?.[0]?.delta?.content;
  return { text: isText(content) ? content : '', problem: null };
}

interface Completion {
  readonly error?: unknown;
  readonly choices?: readonly { readonly delta?: { readonly content?: unknown } }[];
}

function parsed(data: string): Completion | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'object' ? (value as Completion | null) : null;
  } catch {
    return null;
  }
}

function messageOf(error: unknown): string {
  const message = typeof error === 'object' ? (error as { message?: unknown } | null)?.message : error;
  return isText(message) ? message : 'The stream ended with an error.';
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

// The text and the outcome of a streamed chat completion, read event by event as its bytes arrive.

export interface ChatEvent {
  /** What the reply goes on with. */
  readonly text: string;
  /** What the provider or the gateway ended the stream with instead of the rest of the reply. */
  readonly problem: string | null;
}

/** Takes pieces of a stream as they come, cut anywhere; gives what each added. */
export class ChatStream {
  private rest = '';

  read(piece: string): ChatEvent {
    const lines = (this.rest + piece).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? '';
    return lines.map(eventOf).reduce(joined, NOTHING);
  }

  /** What the last line, which had no end, says. */
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

// Collects the texts that a model wrote in the items of a Responses output, from whole items and from the events of a
// stream. A stream repeats a text up to four times (its deltas, its own end, its item's end, the response's end); each
// text is counted once, from the longest version.

import { asObject, type JsonObject, objectsOf } from './countable-text.ts';

/** One text of an item: its field and, where the field is a list, its place there. */
interface WrittenText {
  readonly field: string;
  readonly place: number;
  readonly text: string;
}

interface StreamedText {
  readonly deltas: string[];
  whole: string;
}

type ItemTexts = Map<string, StreamedText>;

/** Which text of its item an event continues or ends, and the field in which an ending event carries the text. */
interface TextEvent {
  readonly field: string;
  readonly placeIn?: string;
  readonly endsWith: string;
}

const TEXT_EVENTS: ReadonlyMap<string, TextEvent> = new Map([
  ['output_text', { field: 'content', placeIn: 'content_index', endsWith: 'text' }],
  ['refusal', { field: 'content', placeIn: 'content_index', endsWith: 'refusal' }],
  ['reasoning_text', { field: 'content', placeIn: 'content_index', endsWith: 'text' }],
  ['reasoning_summary_text', { field: 'summary', placeIn: 'summary_index', endsWith: 'text' }],
  ['function_call_arguments', { field: 'arguments', endsWith: 'arguments' }],
  ['mcp_call_arguments', { field: 'arguments', endsWith: 'arguments' }],
  ['custom_tool_call_input', { field: 'input', endsWith: 'input' }],
  ['code_interpreter_call_code', { field: 'code', endsWith: 'code' }],
  ['shell_call_command', { field: 'commands', placeIn: 'command_index', endsWith: 'command' }],
  ['apply_patch_call_operation_diff', { field: 'diff', endsWith: 'diff' }],
]);

export class ResponsesOutput {
  private readonly items = new Map<string, ItemTexts>();

  get isEmpty(): boolean {
    return this.items.size === 0;
  }

  /** Takes in an event of the output; other events are ignored. */
  addEvent(type: string, event: JsonObject): void {
    if (type === 'response.output_item.added' || type === 'response.output_item.done') {
      const item = asObject(event['item']);
      if (item !== null) this.addItem(placeOfItem(event['output_index'], item['id']), item);
      return;
    }
    const [, name = '', step] = /^response\.(\w+)\.(delta|done)$/.exec(type) ?? [];
    const known = TEXT_EVENTS.get(name);
    const text = known === undefined ? null : event[step === 'delta' ? 'delta' : known.endsWith];
    if (known === undefined || typeof text !== 'string' || text === '') return;
    const place = known.placeIn === undefined ? 0 : event[known.placeIn];
    const streamed = this.textAt(
      placeOfItem(event['output_index'], event['item_id']),
      known.field,
      typeof place === 'number' ? place : 0,
    );
    if (step === 'delta') streamed.deltas.push(text);
    else streamed.whole = text;
  }

  addOutput(output: unknown): void {
    objectsOf(output).forEach((item, index) => this.addItem(String(index), item));
  }

  private addItem(at: string, item: JsonObject): void {
    for (const { field, place, text } of writtenTexts(item)) this.textAt(at, field, place).whole = text;
  }

  private textAt(at: string, field: string, place: number): StreamedText {
    const item = this.items.get(at) ?? new Map<string, StreamedText>();
    this.items.set(at, item);
    const streamed = item.get(`${field} ${place}`) ?? { deltas: [], whole: '' };
    item.set(`${field} ${place}`, streamed);
    return streamed;
  }

  /** A summary repeats reasoning: if the reasoning itself was shown, its summary is not counted. */
  texts(): string[] {
    const texts: string[] = [];
    for (const item of this.items.values()) {
      const keys = [...item.keys()];
      const isReasoningShown = keys.some((key) => key.startsWith('content '));
      for (const key of keys) {
        if (isReasoningShown && key.startsWith('summary ')) continue;
        const { deltas, whole } = item.get(key) as StreamedText;
        // A token can span deltas, so they are joined before counting. An item may begin with a part of the text that
        // its deltas continue.
        const streamed = deltas.join('');
        texts.push(streamed.length > whole.length ? streamed : whole);
      }
    }
    return texts;
  }
}

/** The texts of one item that the model wrote, in a reply or sent back in a later request. */
export function textsOfItem(item: JsonObject): string[] {
  const output = new ResponsesOutput();
  output.addOutput([item]);
  return output.texts();
}

function placeOfItem(index: unknown, id: unknown): string {
  return typeof index === 'number' ? String(index) : typeof id === 'string' ? `id ${id}` : '0';
}

/** Results that came from elsewhere (`output`, `results`, the base64 of an image) were not written by the model. */
function writtenTexts(item: JsonObject): WrittenText[] {
  const written: WrittenText[] = [];
  const add = (field: string, text: unknown, place = 0): void => {
    if (typeof text === 'string' && text !== '') written.push({ field, place, text });
  };
  const addParts = (field: string, parts: unknown): void => {
    add(field, parts);
    if (!Array.isArray(parts)) return;
    parts.forEach((part: unknown, place) =>
      add(field, typeof part === 'string' ? part : (asObject(part)?.['text'] ?? asObject(part)?.['refusal']), place),
    );
  };
  addParts('content', item['content']);
  addParts('summary', item['summary']);
  for (const field of ['name', 'input', 'code']) add(field, item[field]);
  // The arguments of tool searches are not a string.
  const callArguments = asObject(item['arguments']);
  add('arguments', callArguments === null ? item['arguments'] : JSON.stringify(callArguments));
  add('diff', asObject(item['operation'])?.['diff']);
  const action = asObject(item['action']);
  if (Array.isArray(action?.['commands'])) addParts('commands', action['commands']);
  else if (action !== null) add('action', JSON.stringify(action));
  addParts('queries', item['queries']);
  return written;
}

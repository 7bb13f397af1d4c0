// A planned call of the Images API: its body, and the events of a stream with partial images.

import type { Directives } from '../directives.ts';
import { makePng } from '../image-files.ts';
import type { Json } from '../json-fields.ts';
import { INVALID_UTF8, type ReplyScript, type Round, type StreamScript } from '../reply-script.ts';
import { wrongCounts } from '../wrong-counts.ts';
import type { CallTally } from './api.ts';

const CREATED = 1_700_000_000; // Fixed: a reply depends on its request alone.
const PARTIAL_IMAGES_MAX = 3;
/** The tokens of one image, as OpenAI counts them for 1024 x 1024. */
const OUTPUT_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160 };

export interface ImagePlan {
  readonly json: Json;
  readonly directives: Directives;
  readonly tally: CallTally;
  readonly images: number;
  readonly textTokens: number;
  readonly imageTokens: number;
  /** A model from before the gpt-image family: it can return addresses, and reports no usage. */
  readonly old: boolean;
  readonly edit: boolean;
  readonly seed: number;
}

export class ImageScript implements ReplyScript, StreamScript {
  readonly tally: CallTally;
  readonly generated: { readonly images: number; readonly completionTokens: number };
  readonly reportsUsage: boolean;
  readonly pauses: number;
  readonly stream: StreamScript | null;
  private readonly plan: ImagePlan;
  private readonly look: Json;
  private readonly outputTokens: number;

  constructor(plan: ImagePlan) {
    const { json } = plan;
    const named = (value: unknown, unless: string): string =>
      typeof value === 'string' && value !== 'auto' ? value : unless;
    const quality = named(json.quality, 'high');
    this.plan = plan;
    this.look = {
      background: named(json.background, 'opaque'),
      output_format: named(json.output_format, 'png'),
      quality,
      size: named(json.size, '1024x1024'),
    };
    this.outputTokens = (OUTPUT_TOKENS[quality] ?? OUTPUT_TOKENS.high ?? 0) * plan.images;
    this.tally = plan.tally;
    this.generated = { images: plan.images, completionTokens: plan.old ? 0 : this.outputTokens };
    this.reportsUsage = plan.directives.usage !== 'none' && !plan.old;
    this.pauses = plan.images;
    this.stream = json.stream === true ? this : null;
  }

  whole(): string {
    const { images, old, json, directives } = this.plan;
    const revised = directives.invalidUtf8 ? { revised_prompt: INVALID_UTF8 } : {};
    const data = Array.from({ length: images }, (_, index) =>
      old && json.response_format !== 'b64_json'
        ? { url: `https://images.invalid/${this.plan.seed}-${index}.png` }
        : { b64_json: this.image(index), ...revised },
    );
    if (old) return `${JSON.stringify({ created: CREATED, data }, null, 2)}\n`;
    const { background, ...look } = this.look;
    return `${JSON.stringify({ created: CREATED, background, data, ...look, ...this.usageField() }, null, 2)}\n`;
  }

  *opening(): Generator<string> {}

  /** Yields each image: first its partial images, then the image itself. */
  *rounds(): Generator<Round> {
    const { images, json } = this.plan;
    const partials =
      typeof json.partial_images === 'number' ? Math.min(Math.max(0, json.partial_images), PARTIAL_IMAGES_MAX) : 0;
    for (let image = 0; image < images; image += 1) {
      for (let index = 0; index < partials; index += 1) {
        yield {
          pieces: [
            this.event('partial_image', { b64_json: this.image(image + 100 + index), partial_image_index: index }),
          ],
          counted: false,
        };
      }
      // The last image reports the usage of all of them.
      const usage = image === images - 1 ? this.usageField() : {};
      yield {
        pieces: [this.event('completed', { b64_json: this.image(image), ...usage })],
        counted: true,
        usage: usage.usage !== undefined,
      };
    }
  }

  *closing(): Generator<string> {}

  *error(): Generator<string> {
    const error = {
      type: 'image_generation_server_error',
      code: 'server_error',
      message: 'The server had an error while processing your request.',
      param: null,
    };
    yield `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`;
  }

  private image(index: number): string {
    return makePng(this.plan.seed + index, this.plan.directives.bytes).toString('base64');
  }

  private event(what: 'partial_image' | 'completed', fields: Json): string {
    const type = `${this.plan.edit ? 'image_edit' : 'image_generation'}.${what}`;
    return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields, created_at: CREATED, ...this.look })}\n\n`;
  }

  private usageField(): Json {
    if (!this.reportsUsage) return {};
    const { textTokens, imageTokens, directives } = this.plan;
    const input = textTokens + imageTokens;
    const honest = {
      input_tokens: input,
      input_tokens_details: { image_tokens: imageTokens, text_tokens: textTokens },
      output_tokens: this.outputTokens,
      output_tokens_details: { image_tokens: this.outputTokens, text_tokens: 0 },
      total_tokens: input + this.outputTokens,
    };
    if (directives.usage === null) return { usage: honest };
    return {
      usage: {
        ...honest,
        ...wrongCounts(directives.usage, { counts: ['input_tokens', 'output_tokens'], total: 'total_tokens' }),
      },
    };
  }
}

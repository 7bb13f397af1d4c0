// The Images API: generations from JSON, edits from a form or from JSON; both return small PNGs and their usage.

import { createHash } from 'node:crypto';
import { UNSCOPED } from '../directives.ts';
import { seedFrom } from '../generated-text.ts';
import { wholeImageKind } from '../image-files.ts';
import { countTokens, isObject, type Json, objectsIn } from '../json-fields.ts';
import { type FormPart, readMultipart } from '../multipart.ts';
import { scriptedCall } from '../reply-script.ts';
import { type Api, type CallRequest, emptyTally, type Planned, type ReceivedPart } from './api.ts';
import { ImageScript } from './image-events.ts';
import { invalid, modelError, NOT_JSON, OPENAI_UNAUTHENTICATED, renderOpenaiError } from './openai-errors.ts';

const IMAGES_MAX = 10;
const INPUT_IMAGES_MAX = 16;
/** Fields that only older models accept; those of the gpt-image family always answer with base64 data. */
const REFUSED_FIELDS = ['response_format', 'input_fidelity'];
const EXAMPLE_REPLY: Json = { data: [{ b64_json: 'aGk=' }] };
/** Fields of a form whose text is a number in the JSON form. */
const FORM_NUMBERS: readonly string[] = ['n', 'partial_images', 'output_compression'];

const COMMON = {
  family: 'openai',
  idPrefix: 'img_',
  unauthenticated: OPENAI_UNAUTHENTICATED,
  readText: ({ json }) => (typeof json?.prompt === 'string' ? json.prompt : ''),
  renderError: renderOpenaiError,
} as const satisfies Partial<Api>;

export const imageGenerations: Api = {
  ...COMMON,
  name: 'image_generations',
  scopes: [UNSCOPED, 'image_generations', 'images'],
  plan: (request) => plan(request, []),
  example: { request: (prompt) => ({ prompt }), reply: EXAMPLE_REPLY },
};

export const imageEdits: Api = {
  ...COMMON,
  name: 'image_edits',
  scopes: [UNSCOPED, 'image_edits', 'images'],
  readForm,
  plan(request) {
    const { json } = request;
    const images = json === null ? [] : objectsIn(json.images);
    if (json !== null && images.length === 0)
      return invalid("Missing required parameter: 'image'.", 'image', 'missing_required_parameter');
    if (images.length > INPUT_IMAGES_MAX) return invalid(`Too many images: at most ${INPUT_IMAGES_MAX}.`, 'image');
    const broken = images.findIndex((image) => !isUsable(image));
    if (broken !== -1) return invalidImage(`images[${broken}].image_url`);
    if (json !== null && isObject(json.mask) && imageKindOf(json.mask) !== 'png') return invalidImage('mask');
    return plan(request, images);
  },
  example: {
    request: (prompt) => ({ prompt, images: [{ image_url: 'https://pictures.test/cat.png' }] }),
    reply: EXAMPLE_REPLY,
  },
};

function plan(request: CallRequest, inputImages: readonly Json[]): Planned {
  const { json, directives } = request;
  if (json === null) return invalid(NOT_JSON);
  const error = modelError(json);
  if (error !== null) return { ok: false, error };
  if (typeof json.prompt !== 'string')
    return invalid("Missing required parameter: 'prompt'.", 'prompt', 'missing_required_parameter');
  const images = json.n ?? 1;
  if (typeof images !== 'number' || !Number.isInteger(images))
    return invalid("Invalid type for 'n': expected an integer.", 'n', 'invalid_type');
  const tooFew = images < 1 ? { is: 'below minimum', code: 'integer_below_min_value', wants: '>= 1' } : null;
  const wrong =
    images > IMAGES_MAX ? { is: 'above maximum', code: 'integer_above_max_value', wants: `<= ${IMAGES_MAX}` } : tooFew;
  if (wrong !== null)
    return invalid(
      `Invalid 'n': integer ${wrong.is} value. Expected a value ${wrong.wants}, but got ${images} instead.`,
      'n',
      wrong.code,
    );
  const old = String(json.model).startsWith('dall-e');
  const refused = REFUSED_FIELDS.find((field) => !old && json[field] !== undefined);
  if (refused !== undefined) return invalid(`Unknown parameter: '${refused}'.`, refused, 'unknown_parameter');
  const textTokens = countTokens([json.prompt]);
  const imageTokens = inputImages.reduce((sum, image) => sum + tokensOfImage(image), 0);
  const tally = { ...emptyTally(), promptTokens: textTokens + imageTokens };
  const script = new ImageScript({
    json,
    directives,
    tally,
    images,
    textTokens,
    imageTokens,
    old,
    edit: inputImages.length > 0,
    seed: seedFrom(request.body),
  });
  return { ok: true, plan: scriptedCall(request, script) };
}

function invalidImage(param: string): Planned {
  const error = {
    status: 400,
    message: 'Invalid image data.',
    type: 'image_generation_user_error',
    param,
    code: 'invalid_image_file',
  };
  return { ok: false, error };
}

/** Converts a form to the JSON form; the bytes of a file go under `file`. */
function readForm(
  body: Buffer,
  contentType: string,
): { json: Json; parts: readonly ReceivedPart[] } | null | undefined {
  if (!/^multipart\/form-data\b/i.test(contentType)) return readJsonForm(body);
  const parts = readMultipart(body, contentType);
  if (parts === null) return null;
  const fields: Record<string, unknown> = {};
  const images: Json[] = [];
  for (const { name, filename, content } of parts) {
    if (filename === null) fields[name] = fieldValue(name, content.toString('utf8'));
    else if (name === 'mask') fields.mask = { file: content };
    else if (name === 'image' || name === 'image[]') images.push({ file: content });
  }
  return { json: { ...fields, images }, parts: parts.map(receivedPart) };
}

/** undefined: it is not a JSON object, which the server then reports. */
function readJsonForm(body: Buffer): { json: Json; parts: readonly ReceivedPart[] } | undefined {
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(json)) return undefined;
  const named = [
    ...objectsIn(json.images).map((image, index) => ({ name: `images[${index}]`, image })),
    ...objectsIn([json.mask]).map((image) => ({ name: 'mask', image })),
  ];
  const parts = named.flatMap(({ name, image }) => {
    const content = fileOf(image);
    const contentType = /^data:([^;,]+)/.exec(String(image.image_url))?.[1] ?? null;
    return content === null ? [] : [receivedPart({ name, filename: null, contentType, content })];
  });
  return { json, parts };
}

function receivedPart({ name, filename, contentType, content }: FormPart): ReceivedPart {
  return {
    name,
    filename,
    contentType,
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
  };
}

function fieldValue(name: string, text: string): unknown {
  if (FORM_NUMBERS.includes(name) && /^-?\d+$/.test(text)) return Number(text);
  return name === 'stream' ? text === 'true' : text;
}

/**
 * A file that is given by address or id is not fetched and counts as present, except for the one kind that real clients
 * send wrongly.
 */
function isUsable(image: Json): boolean {
  if (fileOf(image) !== null) return imageKindOf(image) !== null;
  if (typeof image.file_id === 'string') return true;
  return (
    typeof image.image_url === 'string' && /^https?:\/\//.test(image.image_url) && !/\.svg$/i.test(image.image_url)
  );
}

function imageKindOf(image: Json): string | null {
  const file = fileOf(image);
  return file === null ? null : wholeImageKind(file);
}

function fileOf(image: Json): Buffer | null {
  if (Buffer.isBuffer(image.file)) return image.file;
  const encoded =
    typeof image.image_url === 'string' ? /^data:[^,]*;base64,(.*)$/s.exec(image.image_url)?.[1] : undefined;
  return encoded === undefined ? null : Buffer.from(encoded, 'base64');
}

/** The fixed rule: one token for every 256 started bytes of the file, 64 when only an address or id is given. */
function tokensOfImage(image: Json): number {
  const file = fileOf(image);
  return file === null ? 64 : Math.max(1, Math.ceil(file.length / 256));
}

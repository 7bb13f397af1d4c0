// Imports LiteLLM's configuration file: its deployments become providers and models of our file, and everything that is
// not taken over is listed with its line and the reason.

import { parseWithoutEnvironment } from '../configuration/parse-without-environment.ts';
import type { PresetName } from '../configuration/presets.ts';
import { modelNameSchema } from '../configuration/schema/name-schemas.ts';
import type { ModelText, ProviderText } from '../configuration-text/entry-text.ts';
import { isForText, planModel } from '../configuration-text/plan-model.ts';
import { wholeFileText } from '../configuration-text/whole-file.ts';
import type { ListedModel } from '../list-prices/listed-model.ts';
import { APIS } from '../models/apis.ts';
import { KeyVariables } from './key-variables.ts';
import { type Field, fieldOf, namedVariables, readLitellmFile, textOf } from './litellm-file.ts';
import { importHeaders } from './litellm-headers.ts';
import { type ImportNote, reasonOf } from './litellm-notes.ts';
import { importPrice } from './litellm-prices.ts';
import { findProvider, type ImportedProvider } from './litellm-providers.ts';
import { ProviderNames } from './provider-names.ts';

export interface ImportParams {
  readonly fileName: string;
  readonly nowMs: number;
  /** The name of the list of prices, with its version and date. */
  readonly source: string;
  readonly findListed: (
    provider: { preset: PresetName | null; baseUrl: string | null },
    model: string,
  ) => ListedModel | null;
}

export type Imported =
  | { readonly ok: true; readonly text: string; readonly models: number; readonly notes: readonly ImportNote[] }
  | { readonly ok: false; readonly error: string };

export function importLitellm(text: string, params: ImportParams): Imported {
  const file = readLitellmFile(text, params.fileName);
  if (!file.ok) return file;
  const models = fieldOf(file.root, 'model_list');
  if (models === undefined)
    return { ok: false, error: `${params.fileName}: has no model_list, so it is no configuration of LiteLLM` };
  if (!models.isList) return { ok: false, error: `${params.fileName}:${models.line}: model_list must be a list` };
  const named = namedVariables(text);
  const keys = new KeyVariables(named);
  const first = new Import(file.root, params, keys);
  const conflicts = keys.conflicts();
  // Only after all entries are read is it known which of them rely on a variable that another entry's key was given.
  const reading =
    conflicts.length === 0 ? first : new Import(file.root, params, new KeyVariables([...named, ...conflicts]));
  const imported = {
    intro: [
      `Imported from LiteLLM's ${params.fileName} by "tollgate import litellm", which listed what it left out.`,
      'See what it would change: tollgate apply FILE --dry-run. Try its keys: tollgate doctor --config FILE.',
    ],
    providers: reading.providers.list,
    models: [...reading.models.values()],
    organization: 'main',
  };
  const notes = [...file.notes, ...reading.notes].toSorted((one, other) => one.line - other.line);
  return { ok: true, text: wholeFileText(imported), models: imported.models.length, notes };
}

interface Placed {
  readonly id: string;
  readonly order: number;
  readonly model: ModelText;
  readonly line: number;
  readonly named: string;
}

const NOT_SERVED_MODES = /^(?!chat$|responses$|embedding$|completion$)/;

class Import {
  readonly notes: ImportNote[] = [];
  readonly providers = new ProviderNames();
  readonly models = new Map<string, ModelText>();
  private readonly keys: KeyVariables;
  private readonly root: Field;
  private readonly params: ImportParams;

  constructor(root: Field, params: ImportParams, keys: KeyVariables) {
    this.root = root;
    this.params = params;
    this.keys = keys;
    const entries = fieldOf(root, 'model_list')?.items ?? [];
    const placed = entries.flatMap((entry, at) => this.readEntry(entry, at));
    for (const one of placed.toSorted((one, other) => one.order - other.order)) this.place(one);
    this.readAliases();
    for (const section of root.fields) this.readSection(section);
  }

  private note(line: number, what: string, why: string): void {
    this.notes.push({ line, what, why });
  }

  private readEntry(entry: Field, at: number): Placed[] {
    const what = `model_list[${at}]`;
    const id = textOf(entry, 'model_name');
    const params = this.withCredential(fieldOf(entry, 'litellm_params'));
    if (id === null || params === undefined) {
      this.note(entry.line, what, 'it has no model_name or no litellm_params');
      return [];
    }
    const named = `${what} ${id}`;
    const mode = textOf(fieldOf(entry, 'model_info'), 'mode') ?? 'chat';
    const why = whyUnserved(id, mode);
    const found = why === null ? findProvider(params, this.keys) : { why };
    if ('why' in found) {
      this.note(entry.line, named, found.why);
      return [];
    }
    if (!isForText(found.providerModel)) {
      this.note(entry.line, named, 'is no model for text: write its entry by hand (docs/configuration.md)');
      return [];
    }
    const listedBefore = this.notes.length;
    for (const note of found.notes) this.note(params.line, named, note);
    const { model, provider } = this.readModel(entry, params, { id, found, named });
    const [mistake] = mistakesOf(provider, model);
    if (mistake !== undefined) {
      this.notes.length = listedBefore;
      this.note(entry.line, named, `is left out, ${mistake}`);
      return [];
    }
    this.providers.add(provider);
    const order = Number(textOf(params, 'order') ?? 0);
    return [{ id, order: Number.isFinite(order) ? order : 0, model, line: entry.line, named }];
  }

  /** Adds the values of the entry's named credential; the entry's own values override them. */
  private withCredential(params: Field | undefined): Field | undefined {
    const name = textOf(params, 'litellm_credential_name');
    if (params === undefined || name === null) return params;
    const credential = fieldOf(this.root, 'credential_list')?.items.find(
      (one) => textOf(one, 'credential_name') === name,
    );
    const own = new Set(params.fields.map((field) => field.name));
    const added = fieldOf(credential, 'credential_values')?.fields.filter((field) => !own.has(field.name)) ?? [];
    if (credential === undefined)
      this.note(params.line, `litellm_credential_name ${name}`, 'credential_list has no entry of this name');
    return { ...params, fields: [...params.fields, ...added] };
  }

  private readModel(
    entry: Field,
    params: Field,
    { id, found, named }: { readonly id: string; readonly found: ImportedProvider; readonly named: string },
  ): { readonly model: ModelText; readonly provider: ProviderText } {
    const info = fieldOf(entry, 'model_info');
    const shared = this.sharedFields(params, named);
    const provider = this.providers.find(credentialName(params) ?? found.name, { ...found.fields, ...shared.fields });
    const costs = importPrice([...params.fields, ...(info?.fields ?? [])]);
    for (const { field, why } of costs.notes) this.note(field.line, `${named} ${field.name}`, why);
    const baseModel = textOf(info, 'base_model') ?? textOf(params, 'base_model');
    const listed = this.findListed(found, baseModel);
    const plan = planModel({
      id,
      provider: { id: provider.id, preset: found.preset },
      providerModel: found.providerModel,
      apis: found.apis,
      listed,
      limits: limitsOf(params, info),
      source: this.params.source,
      nowMs: this.params.nowMs,
    });
    const { deployment, model } = plan;
    for (const note of plan.endNotes) this.note(entry.line, named, note);
    const hasCosts = Object.keys(costs.words).length > 0;
    const prices = hasCosts
      ? [{ ...(deployment.prices.length === 1 ? deployment.prices[0] : {}), ...costs.words }]
      : deployment.prices;
    const kind = textOf(info, 'mode') === 'embedding' ? 'embedding' : model.kind;
    const apis = kind === model.kind ? deployment.apis : (['embeddings'] as const);
    this.checkPrice(prices, kind, { line: entry.line, named });
    const paths = apis.filter((api) => api !== 'count_tokens').map((api) => APIS[api].path);
    if (kind === 'text' && paths.length > 0 && !apis.includes('chat_completions'))
      this.note(
        entry.line,
        named,
        `is served on ${paths.join(' and ')} alone: LiteLLM also converts other APIs, Tollgate does not`,
      );
    const known = [
      ...found.taken,
      ...shared.taken,
      ...costs.taken,
      ...LIMITS,
      'order',
      'litellm_credential_name',
      'base_model',
    ];
    this.listRest(params, named, known);
    this.listRest(entry, named, ['model_name', 'litellm_params', 'model_info']);
    this.listRest(info, `${named} model_info`, [...known, 'id', 'mode', 'base_model', ...costs.taken]);
    const isComplete = isPriced(prices, kind);
    const source = hasCosts
      ? `Prices: ${this.params.fileName}${listed === null ? '' : `, and ${this.params.source}`}.`
      : deployment.source;
    const written = {
      ...deployment,
      apis,
      prices: isComplete ? prices : [],
      source: isComplete ? source : 'price: MISSING. Without one it serves only organizations that are not billed.',
    };
    return { provider, model: { ...model, kind, deployments: [written] } };
  }

  private checkPrice(
    prices: readonly object[],
    kind: ModelText['kind'],
    { line, named }: { readonly line: number; readonly named: string },
  ): void {
    if (isPriced(prices, kind)) return;
    const [first = {}] = prices;
    const missing = 'input' in first ? 'the price of its output' : 'its price';
    this.note(line, named, `${missing} is not known: only organizations that are not billed can use it`);
  }

  private findListed(found: ImportedProvider, baseModel: string | null): ListedModel | null {
    const { findListed } = this.params;
    const at = { preset: found.pricedAs, baseUrl: found.baseUrl };
    if (baseModel === null) return findListed(at, found.providerModel);
    // base_model may begin with its provider.
    return findListed(at, baseModel) ?? findListed(at, baseModel.slice(baseModel.indexOf('/') + 1));
  }

  /** The fields that belong to the provider: its timeout and headers. */
  private sharedFields(params: Field, named: string): { fields: Readonly<Record<string, unknown>>; taken: string[] } {
    const seconds = textOf(params, 'timeout') ?? this.usualTimeout();
    const timeoutMs = Math.round(Number(seconds ?? 0) * 1_000);
    const isTimeout = Number.isSafeInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= 86_400_000;
    const headers = [fieldOf(params, 'extra_headers'), fieldOf(params, 'headers')].flatMap(
      (field) => field?.fields ?? [],
    );
    const sent = importHeaders(headers, this.keys);
    for (const { field, why } of sent.notes) this.note(field.line, `${named} header ${field.name}`, why);
    return {
      fields: {
        ...(Object.keys(sent.headers).length === 0 ? {} : { headers: sent.headers }),
        ...(isTimeout ? { timeouts: { total_ms: timeoutMs } } : {}),
      },
      taken: ['timeout', 'extra_headers', 'headers'],
    };
  }

  private usualTimeout(): string | null {
    const ofRouter = textOf(fieldOf(this.root, 'router_settings'), 'timeout');
    return ofRouter ?? textOf(fieldOf(this.root, 'litellm_settings'), 'request_timeout');
  }

  private place({ id, model, line, named }: Placed): void {
    const present = this.models.get(id);
    if (present === undefined) {
      this.models.set(id, model);
      return;
    }
    const [added] = model.deployments;
    const isSame = present.deployments.some(
      ({ provider, providerModel }) => provider === added?.provider && providerModel === added.providerModel,
    );
    if (isSame) return this.note(line, named, 'is the same deployment once more');
    if (present.kind !== model.kind) return this.note(line, named, 'is of another kind than the model of this name');
    this.models.set(id, {
      ...present,
      contextLength: smallest(present.contextLength, model.contextLength),
      maxOutputTokens: smallest(present.maxOutputTokens, model.maxOutputTokens),
      deployments: [...present.deployments, ...model.deployments],
    });
  }

  private readAliases(): void {
    for (const section of ['router_settings', 'litellm_settings']) {
      const aliases = fieldOf(fieldOf(this.root, section), 'model_group_alias');
      if (aliases?.isList === true)
        this.note(aliases.line, `${section}.model_group_alias`, 'it is not a mapping of names');
      for (const alias of aliases?.fields ?? []) {
        const target = typeof alias.value === 'string' ? alias.value : textOf(alias, 'model');
        const model = this.models.get(target ?? '');
        const what = `${section}.model_group_alias ${alias.name}`;
        if (model === undefined) this.note(alias.line, what, `there is no imported model "${target}"`);
        else if (this.isTaken(alias.name)) this.note(alias.line, what, 'a model has this name');
        else if (!modelNameSchema.safeParse(alias.name).success)
          this.note(alias.line, what, 'is not a valid name of a model');
        else this.models.set(model.id, { ...model, aliases: [...model.aliases, alias.name] });
      }
    }
  }

  private isTaken(name: string): boolean {
    return this.models.has(name) || [...this.models.values()].some(({ aliases }) => aliases.includes(name));
  }

  private readSection(section: Field): void {
    if (section.name === 'model_list' || section.name === 'credential_list') return;
    if (section.fields.length === 0 || section.name === 'environment_variables') {
      if (section.value !== null) this.note(section.line, section.name, reasonOf(section.name));
      return;
    }
    this.listRest(section, section.name, ['model_group_alias', 'request_timeout', 'timeout']);
  }

  private listRest(parent: Field | undefined, what: string, known: readonly string[]): void {
    for (const { name, line, value } of parent?.fields ?? [])
      if (!known.includes(name) && value !== null)
        this.note(line, `${what}${what === parent?.name ? '.' : ' '}${name}`, reasonOf(name));
  }
}

/** The mistakes that `tollgate apply` would report for a file with only this provider and model. */
function mistakesOf(provider: ProviderText, model: ModelText): readonly string[] {
  const text = wholeFileText({ intro: [], providers: [provider], models: [model], organization: 'main' });
  const { mistakes } = parseWithoutEnvironment(text, {}, 'later');
  return mistakes.map((mistake) => mistake.replace(/^[^:]*:\d+: (?:(?:providers|models)\[0\]\.)?/, ''));
}

const LIMITS = ['max_input_tokens', 'max_output_tokens'];

function limitsOf(
  params: Field,
  info: Field | undefined,
): { contextLength: number | null; maxOutputTokens: number | null } {
  const count = (...names: readonly (readonly [Field | undefined, string])[]): number | null => {
    const found = names
      .map(([field, name]) => Number(textOf(field, name)))
      .find((value) => Number.isSafeInteger(value) && value > 0);
    return found ?? null;
  };
  return {
    contextLength: count([info, 'max_input_tokens'], [params, 'max_input_tokens']),
    maxOutputTokens: count([info, 'max_output_tokens'], [params, 'max_output_tokens'], [info, 'max_tokens']),
  };
}

function credentialName(params: Field): string | null {
  return textOf(params, 'litellm_credential_name');
}

function whyUnserved(id: string, mode: string): string | null {
  if (id.includes('*')) return 'wildcards: each model has an entry of its own ("tollgate models add")';
  if (!modelNameSchema.safeParse(id).success)
    return 'its name is not valid: it must be 1 to 200 visible ASCII characters without spaces';
  if (mode === 'image_generation') return 'images are priced by image: write its entry by hand (docs/configuration.md)';
  return NOT_SERVED_MODES.test(mode) ? `models of mode ${mode} are not served` : null;
}

function isPriced(prices: readonly object[], kind: ModelText['kind']): boolean {
  return prices.length > 0 && prices.every((price) => 'input' in price && (kind !== 'text' || 'output' in price));
}

function smallest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}
